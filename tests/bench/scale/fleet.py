"""The objects of one measurement, and what is seen of them."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ots_emulator import Emulator
from ots_tunnel.credentials import static_credentials
from ots_tunnel.model import Credentials, KeyColumn, KeyType
from ots_tunnel.tables import AsyncTableAdmin, TableSchema
from tests.bench.scale.cluster import CORE, MERGE, TUNNELS, Api, Document
from tests.bench.scale.service import KEY_ID, KEY_SECRET, Place
from tests.support.operator.objects import tunnel_object

SECRETS = ("source-credentials", "sink-credentials")
#: Objects that are created at once.
AT_ONCE = 16
#: Seconds between two looks.
PAUSE = 0.02


class Fleet:
    """Objects, each with a tunnel, a destination and one worker of its own, in namespaces of fifty.

    Args:
        endpoint: of the service, as the objects name it.
        own_secrets: every object has Secrets of its own, instead of sharing those of its namespace.
    """

    def __init__(self, api: Api, places: list[Place], endpoint: str, *, own_secrets: bool = False) -> None:
        self._api = api
        self._places = places
        self._endpoint = endpoint
        self._own_secrets = own_secrets
        self._ready: set[str] = set()
        self.last_change = time.monotonic()
        self.texts: dict[str, str] = {}
        """Name -> message of Ready, of objects that are not ready."""

    @property
    def ready(self) -> int:
        """Objects that are Ready."""
        return len(self._ready)

    async def run(self) -> None:
        """Follow the objects until cancelled."""
        await self._api.follow(f"{TUNNELS}/tablestoretunnels", self._changed)

    async def create(self, emulator: Emulator) -> None:
        """Make namespaces, Secrets, tables and objects."""
        for _, group in itertools.groupby(self._places, lambda place: place.namespace):
            places = list(group)
            await self._api.call("POST", f"{CORE}/namespaces", {"metadata": {"name": places[0].namespace}})
            await self._create_tables(emulator, places)
            for place in places if self._own_secrets else places[:1]:
                for name in SECRETS:
                    await self._create_secret(place, name)
        turns = asyncio.Semaphore(AT_ONCE)

        async def create(place: Place) -> None:
            async with turns:
                path = f"{TUNNELS}/namespaces/{place.namespace}/tablestoretunnels"
                await self._api.call("POST", path, self.document(place))

        async with asyncio.TaskGroup() as creating:
            for place in self._places:
                creating.create_task(create(place))

    async def scale(self, place: Place, replicas: int) -> None:
        """Ask for another number of workers of one object."""
        path = f"{TUNNELS}/namespaces/{place.namespace}/tablestoretunnels/{place.name}"
        await self._api.call("PATCH", path, {"spec": {"replicas": replicas}}, MERGE)

    def document(self, place: Place) -> Document:
        """One object."""
        source, sink = ({"secretRef": {"name": self._secret(place, name)}} for name in SECRETS)
        made = tunnel_object(
            place.name,
            source__endpoint=self._endpoint,
            source__instance=place.instance,
            source__table=place.table,
            source__credentials=source,
            source__tunnel__name=place.name,
            source__tunnel__type="Stream",
            sink__tablestore__endpoint=self._endpoint,
            sink__tablestore__instance=place.instance,
            sink__tablestore__table=place.destination,
            sink__tablestore__credentials=sink,
        )
        made["metadata"]["namespace"] = place.namespace
        return made

    def _secret(self, place: Place, name: str) -> str:
        return f"{place.name}-{name}" if self._own_secrets else name

    async def _create_secret(self, place: Place, name: str) -> None:
        data = {"accessKeyId": KEY_ID, "accessKeySecret": KEY_SECRET}
        body: dict[str, Any] = {"metadata": {"name": self._secret(place, name)}, "stringData": data}
        await self._api.call("POST", f"{CORE}/namespaces/{place.namespace}/secrets", body)

    @staticmethod
    async def _create_tables(emulator: Emulator, places: list[Place]) -> None:
        keys = static_credentials(Credentials(KEY_ID, KEY_SECRET))
        admin = AsyncTableAdmin.connect(emulator.endpoint, places[0].instance, keys)
        try:
            for name in dict.fromkeys(place.table for place in places):
                await admin.create(TableSchema(name, (KeyColumn("id", KeyType.STRING),), max_versions=1))
        finally:
            await admin.close()

    def _changed(self, kind: str, found: Document) -> None:
        name, conditions = found["metadata"]["name"], (found.get("status") or {}).get("conditions") or ()
        ready = next((each for each in conditions if each["type"] == "Ready"), None)
        self.last_change = time.monotonic()
        if kind != "DELETED" and ready is not None and ready["status"] == "True":
            self._ready.add(name)
            self.texts.pop(name, None)
        else:
            self._ready.discard(name)
            self.texts[name] = "" if ready is None else f"{ready['reason']}: {ready['message']}"


async def until(reached: Callable[[], bool], seconds: float, what: str, explain: Callable[[], str] = str) -> float:
    """Wait for a state; seconds that it took.

    Raises:
        RuntimeError: not in time.
    """
    began = time.monotonic()
    while not reached():
        if time.monotonic() - began > seconds:
            raise RuntimeError(f"not within {seconds:.0f} s: {what} {explain()}")
        await asyncio.sleep(PAUSE)
    return time.monotonic() - began


def logged(path: Path, action: str) -> bool:
    """Whether a log has a line with this action."""
    lines = path.read_text(errors="replace").splitlines() if path.exists() else []
    return any(json.loads(line).get("action") == action for line in lines if line.startswith("{"))
