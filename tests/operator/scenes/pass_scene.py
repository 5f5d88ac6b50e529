"""Scene for tests that drive the operator's passes one by one, on an API server and an emulator with a filled table."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from ots_emulator import Emulator
from ots_tunnel.model import Action, Credentials, KeyColumn, KeyType
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.tables import RowWrite, TableAdmin, TableSchema
from ots_tunnel_operator.concerns import Concerns
from ots_tunnel_operator.deletion.deleter import Deleter
from ots_tunnel_operator.kube.client import Kube
from ots_tunnel_operator.kube.kinds import TUNNEL
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.metrics import OperatorMetrics
from ots_tunnel_operator.runtime import Runtime, elder_of
from ots_tunnel_operator.settings import Settings
from tests.support.kube.api_server import ApiServer
from tests.support.operator.objects import tunnel_object

KEYS = Credentials("test-id", "test-secret")
SETTINGS = Settings(
    worker_image="worker:1",
    poll_seconds=0.0,
    wait_seconds=0.05,
    gap_seconds=0.0,
    call_seconds=5.0,
    status_seconds=0.0,
)
#: Most passes until a scene must have reached an expected state.
PASSES = 40


def table_admin(emulator: Emulator) -> TableAdmin:
    return TableAdmin(emulator.endpoint, "demo", lambda: KEYS)


def fill(emulator: Emulator, table: str, rows: int = 10, **options: Any) -> None:
    admin = table_admin(emulator)
    admin.create(TableSchema(table, (KeyColumn("pk", KeyType.STRING),), max_versions=3, **options))
    admin.write(table, [RowWrite(Action.PUT, (("pk", f"k{n}"),), (Column("a", n),)) for n in range(rows)])
    admin.close()


@dataclass
class PassScene:
    """One namespace, one emulator, one operator."""

    api: ApiServer
    emulator: Emulator
    kube: Kube
    runtime: Runtime
    namespace: str
    caches: dict[str, LoopCache] = field(default_factory=dict)

    def document(self, name: str = "flights-copy", **changes: Any) -> dict[str, Any]:
        endpoint = {"source__endpoint": self.emulator.endpoint}
        if "sink__tablestore__endpoint" not in changes:
            endpoint["sink__tablestore__endpoint"] = self.emulator.endpoint
        found = tunnel_object(name, **(endpoint | changes))
        found["metadata"]["namespace"] = self.namespace
        return found

    def apply(self, name: str = "flights-copy", **changes: Any) -> None:
        self.api.must("apply", "--server-side", "-f", "-", document=self.document(name, **changes))

    def secret(self, name: str = "ots-credentials", identifier: str = "test-id", value: str = "test-secret") -> None:
        literals = [f"--from-literal=accessKeyId={identifier}", f"--from-literal=accessKeySecret={value}"]
        self.api.must("-n", self.namespace, "create", "secret", "generic", name, *literals)

    def read(self, kind: str, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.api.must("-n", self.namespace, "get", kind, name, "-o", "json"))
        return found

    def names(self, kind: str) -> list[str]:
        found = json.loads(self.api.must("-n", self.namespace, "get", kind, "-o", "json"))
        return sorted(item["metadata"]["name"] for item in found["items"])

    def status(self, name: str = "flights-copy") -> dict[str, Any]:
        return dict(self.read("ott", name).get("status") or {})

    def condition(self, kind: str, name: str = "flights-copy") -> tuple[str, str, str]:
        found = next(item for item in self.status(name)["conditions"] if item["type"] == kind)
        return found["status"], found["reason"], found["message"]

    def stored(self) -> dict[str, Any]:
        """Names of the emulator's tables and tunnels."""
        (instance,) = self.emulator.call("state")["instances"]
        tunnels = sorted(tunnel["name"] for tunnel in instance["tunnels"])
        return {"tables": sorted(table["name"] for table in instance["tables"]), "tunnels": tunnels}

    async def step(self, name: str = "flights-copy") -> None:
        """Run one pass over an object, as its daemon does."""
        body = await self.kube.get(TUNNEL, self.namespace, name)
        assert body is not None
        cache = self.caches.setdefault(body["metadata"]["uid"], LoopCache())
        others = Concerns()
        for item in await self.kube.list(TUNNEL, self.namespace, ""):
            others.changed(item)

        await self.runtime.reconciler(lambda resource: elder_of(resource, others)).step(self.namespace, name, cache)

    async def until(self, happened: Callable[[], bool], name: str = "flights-copy") -> None:
        """Run passes until a condition holds; fails after `PASSES`."""
        for _ in range(PASSES):
            if happened():
                return
            await self.step(name)
        raise AssertionError(f"not after {PASSES} passes; {json.dumps(self.status(name))}")

    async def running(self, name: str = "flights-copy") -> None:
        """Run passes until the workers' Deployment exists."""
        await self.until(lambda: name in self.names("deployments"), name)
        await self.step(name)

    async def delete(self, name: str = "flights-copy", settings: Settings = SETTINGS) -> None:
        """Request the deletion, carry out the policy and release the object."""
        self.api.must("-n", self.namespace, "patch", "ott", name, "--type=merge", "-p", FINALIZER)
        self.api.must("-n", self.namespace, "delete", "ott", name, "--wait=false")
        cache = LoopCache()
        await Deleter(self.kube, settings, OperatorMetrics()).finish(self.namespace, name, cache)
        await cache.close()

    async def close(self) -> None:
        for cache in self.caches.values():
            await cache.close()


FINALIZER = json.dumps({"metadata": {"finalizers": ["ots-tunnel.dev/finalizer"]}})


@asynccontextmanager
async def open_scene(api: ApiServer, emulator: Emulator) -> AsyncIterator[PassScene]:
    """Open a scene in a new namespace."""
    namespace = f"t-{uuid.uuid4().hex[:8]}"
    api.must("create", "namespace", namespace)
    kube = await Kube.connect()
    runtime = Runtime(SETTINGS, OperatorMetrics())
    await runtime.open(kube, watch=False)
    scene = PassScene(api, emulator, kube, runtime, namespace)
    try:
        yield scene
    finally:
        await scene.close()
        await runtime.close()
        api.kubectl("delete", "namespace", namespace, "--wait=false")
