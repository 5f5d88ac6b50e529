"""Scene for tests that drive passes one by one on the model of the API server, with the real operator and emulator."""

from __future__ import annotations

import asyncio
import base64
import itertools
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from ots_emulator import Emulator
from ots_emulator.settings import Settings as EmulatorSettings
from ots_tunnel_operator.deletion.deleter import Deleter
from ots_tunnel_operator.kube.cluster import Cluster
from ots_tunnel_operator.kube.kinds import SECRET, TUNNEL, Manifest
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.metrics import OperatorMetrics
from ots_tunnel_operator.runtime import Runtime
from ots_tunnel_operator.settings import Settings
from tests.operator.scenes.pass_scene import KEYS, PASSES, SETTINGS, fill
from tests.simulation.apiserver.api import Api
from tests.simulation.apiserver.client import ModelCluster
from tests.simulation.apiserver.garbage import orphans
from tests.simulation.apiserver.store import Store
from tests.support.operator.objects import tunnel_object

NAME = "flights-copy"
COPY = "flights_copy"
#: Cell versions that any table accepts, so that a table fits as a destination.
ANY_VERSION = 9_223_372_036_854


class ModelScene:
    """One model of the API server, one emulator, one operator."""

    def __init__(self, emulator: Emulator) -> None:
        self.emulator = emulator
        self.store = Store()
        uids = itertools.count(1)
        self.api = Api(self.store, time.time, lambda: f"{next(uids):08d}-uid")
        self.kube = ModelCluster(self.api)
        self.runtime = Runtime(SETTINGS, OperatorMetrics())
        self.caches: dict[str, LoopCache] = {}

    async def open(self) -> None:
        keys = {"accessKeyId": KEYS.access_key_id, "accessKeySecret": KEYS.access_key_secret}
        data = {name: base64.b64encode(value.encode()).decode() for name, value in keys.items()}
        metadata = {"name": "ots-credentials", "namespace": "default"}
        await self.kube.create(SECRET, {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})
        await self.runtime.open(self.kube, watch=False)

    async def create(self, **changes: Any) -> None:
        place = {"source__endpoint": self.emulator.endpoint, "sink__tablestore__endpoint": self.emulator.endpoint}
        await self.kube.create(TUNNEL, tunnel_object(NAME, **(place | changes)))

    async def edit(self, spec: Manifest) -> None:
        await self.kube.patch(TUNNEL, "default", NAME, {"spec": spec})

    async def object(self) -> Manifest:
        found = await self.kube.get(TUNNEL, "default", NAME)
        assert found is not None
        return found

    async def status(self) -> Manifest:
        return (await self.object()).get("status") or {}

    async def reason(self, kind: str) -> str:
        conditions = (await self.status()).get("conditions") or ()
        return next((str(found["reason"]) for found in conditions if found["type"] == kind), "")

    async def steps(self, count: int = 1, runtime: Runtime | None = None) -> None:
        """Run passes over the object."""
        for _ in range(count):
            uid = (await self.object())["metadata"]["uid"]
            cache = self.caches.setdefault(uid, LoopCache(uid))
            await (runtime or self.runtime).reconciler(lambda of: None).step("default", NAME, cache)

    async def until(self, happened: Callable[[], bool]) -> None:
        """Run passes until a condition holds; the emulator may take a moment for each."""
        for _ in range(PASSES):
            if happened():
                return
            await self.steps()
            await asyncio.sleep(0.05)
        raise AssertionError(f"not after {PASSES} passes: {await self.status()}")

    async def delete(
        self, settings: Settings = SETTINGS, kube: Cluster | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        """Delete the object and carry out its policy, as an operator that has just started."""
        await self.kube.delete(TUNNEL, "default", NAME)
        await self.finish(settings, kube, clock)

    async def finish(
        self, settings: Settings = SETTINGS, kube: Cluster | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        """Carry out the policy of a deleted object."""
        cache = LoopCache()
        await Deleter(kube or self.kube, settings, OperatorMetrics(), clock).finish("default", NAME, cache)
        await cache.close()

    def collect(self) -> None:
        """Do as the garbage collector does."""
        for key in orphans(self.store):
            self.api.finalize(key)

    def names(self, kind: str) -> list[str]:
        return sorted(name for found, _, name in self.store.objects if found == kind)

    def events(self) -> dict[str, str]:
        """Messages of the events by reason."""
        return {
            str(found["reason"]): str(found["message"])
            for key, found in self.store.objects.items()
            if key[0] == "Event"
        }

    def tunnels(self, emulator: Emulator | None = None) -> list[str]:
        (instance,) = (emulator or self.emulator).call("state")["instances"]
        return sorted(tunnel["name"] for tunnel in instance["tunnels"])

    async def close(self) -> None:
        for cache in self.caches.values():
            await cache.close()
        await self.runtime.close()


@asynccontextmanager
async def open_model_scene(**settings: Any) -> AsyncIterator[ModelScene]:
    """Open a scene with a table of flights; `settings` are the emulator's."""
    with Emulator(settings=EmulatorSettings(**settings)) as emulator:
        fill(emulator, "flights")
        scene = ModelScene(emulator)
        await scene.open()
        try:
            yield scene
        finally:
            await scene.close()
