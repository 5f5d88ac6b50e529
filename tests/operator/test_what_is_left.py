"""A deletion leaves nothing behind that it could have deleted, and says what it leaves (docs/architecture.md 3.6)."""

from __future__ import annotations

import asyncio
import base64
import time
from dataclasses import replace
from typing import Any

import pytest

from ots_emulator import Emulator
from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.snapshot.record import DONE_KEY, LIST_KEY
from ots_tunnel.transport.aio import AioTransport
from ots_tunnel_operator import names
from ots_tunnel_operator.kube.errors import KubeError
from ots_tunnel_operator.kube.kinds import CONFIG_MAP, DEPLOYMENT, POD, SPARK_APPLICATION, TUNNEL, Kind, Manifest
from ots_tunnel_operator.times import timestamp
from tests.operator.scenes.model_scene import NAME, ModelScene, open_model_scene
from tests.operator.scenes.pass_scene import KEYS, SETTINGS, fill

pytestmark = pytest.mark.timeout(120)

SNAPSHOT = f"{NAME}-snapshot"


async def test_workers_drain_although_the_operator_was_away_for_longer_than_a_deletion_may_take(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with open_model_scene() as scene:
        await scene.create(deletionPolicy="Delete")
        await scene.until(lambda: bool(scene.names("Deployment")))
        pod = {"metadata": {"name": "w-1", "namespace": "default", "labels": names.labels(NAME, names.ROLE_WORKER)}}
        await scene.kube.create(POD, pod | {"spec": {"nodeName": "n", "containers": []}})
        await scene.kube.patch(POD, "default", "w-1", {"status": {"phase": "Running"}}, "status")

        patch = scene.kube.patch

        async def drain(kind: Kind, namespace: str, name: str, change: Manifest, subresource: str = "") -> Manifest:
            if kind is DEPLOYMENT:
                asyncio.get_running_loop().call_later(0.2, scene.api.finalize, ("Pod", "default", "w-1"))
            return await patch(kind, namespace, name, change, subresource)

        monkeypatch.setattr(scene.kube, "patch", drain)
        await scene.delete(replace(SETTINGS, delete_seconds=600.0), clock=lambda: time.time() + 660)

        assert scene.tunnels() == []


async def test_a_tunnel_at_an_earlier_endpoint_is_told_when_it_is_left_behind() -> None:
    async with open_model_scene() as scene:
        with Emulator() as other:
            fill(other, "flights")
            await scene.create(deletionPolicy="Delete", replicas=0)
            await scene.until(lambda: bool(scene.names("Deployment")))
            await scene.edit({"source": {"endpoint": other.endpoint}})

            await scene.delete(replace(SETTINGS, delete_seconds=0.5, wait_seconds=0.1))

            assert scene.tunnels() == [NAME]
            assert scene.emulator.endpoint in scene.events()["TunnelLeftBehind"]


async def test_a_creation_under_way_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    create, sent = TunnelClient.create_tunnel, asyncio.Event()
    going_on = asyncio.Event()

    async def in_the_service(*values: Any) -> None:
        await going_on.wait()
        client = TunnelClient(scene.emulator.endpoint, "demo", lambda: KEYS, AioTransport(scene.emulator.endpoint))
        await create(client, *values)
        await client.close()

    async def send(_client: TunnelClient, *values: Any, **_options: Any) -> Any:
        tasks.append(asyncio.create_task(in_the_service(*values)))
        sent.set()
        return await asyncio.shield(tasks[0])

    tasks: list[asyncio.Task[None]] = []
    listed = TunnelClient.list_tunnels

    async def list_once_before(client: TunnelClient, table: str) -> Any:
        found = await listed(client, table)
        going_on.set()
        return found

    async with open_model_scene() as scene:
        monkeypatch.setattr(TunnelClient, "create_tunnel", send)
        await scene.create(deletionPolicy="Delete", replicas=0)
        under_way = asyncio.create_task(scene.steps())
        await sent.wait()
        under_way.cancel()
        await asyncio.gather(under_way, return_exceptions=True)
        monkeypatch.setattr(TunnelClient, "list_tunnels", list_once_before)

        await scene.delete()
        await asyncio.gather(*tasks)

        assert scene.tunnels() == []


async def test_the_event_names_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_model_scene() as scene:
        await scene.create(deletionPolicy="Delete", replicas=0)
        await scene.until(lambda: bool(scene.names("Deployment")))
        labels = names.labels(NAME, names.ROLE_SNAPSHOT)
        record = {"metadata": {"name": SNAPSHOT, "namespace": "default", "labels": labels}}
        await scene.kube.create(CONFIG_MAP, {"apiVersion": "v1", "kind": "ConfigMap"} | record)
        delete = scene.kube.delete

        async def refuse(kind: Kind, namespace: str, name: str, *, uid: str = "") -> None:
            if kind is CONFIG_MAP:
                raise KubeError(403, "Forbidden", "configmaps is forbidden")
            await delete(kind, namespace, name, uid=uid)

        await scene.kube.delete(TUNNEL, "default", NAME)
        monkeypatch.setattr(scene.kube, "delete", refuse)
        await scene.finish(replace(SETTINGS, delete_seconds=0.5, wait_seconds=0.1))

        assert scene.tunnels() == []
        assert "TunnelLeftBehind" not in scene.events()
        assert f"ConfigMap '{SNAPSHOT}' stays" in scene.events()["DeletionDelayed"]


async def copied(scene: ModelScene, policy: str) -> None:
    """Create an object whose snapshot is complete."""
    ended = timestamp(time.time() - 800)
    await scene.create(engine__baseData="Spark", deletionPolicy=policy, replicas=0)
    await scene.until(lambda: bool(scene.names("SparkApplication")))
    progress = {
        "binaryData": {DONE_KEY: base64.b64encode(b"\x01").decode()},
        "data": {
            "total": "1",
            "done": "1",
            "label": (await scene.status())["tunnel"]["id"],
            "updated": ended,
            LIST_KEY: f"{SNAPSHOT}-splits-1",
        },
    }
    await scene.kube.patch(CONFIG_MAP, "default", SNAPSHOT, progress)
    labels = {"sparkoperator.k8s.io/app-name": SNAPSHOT}
    driver = {"metadata": {"name": f"{SNAPSHOT}-driver", "namespace": "default", "labels": labels}}
    await scene.kube.create(POD, driver | {"spec": {"containers": []}})
    state = {"terminated": {"exitCode": 0, "finishedAt": ended}}
    status: dict[str, Any] = {"phase": "Succeeded", "containerStatuses": [{"name": "driver", "state": state}]}
    await scene.kube.patch(POD, "default", f"{SNAPSHOT}-driver", {"status": status}, "status")
    status = {
        "applicationState": {"state": "COMPLETED"},
        "driverInfo": {"podName": f"{SNAPSHOT}-driver"},
        "executionAttempts": 1,
        "lastSubmissionAttemptTime": ended,
        "terminationTime": ended,
    }
    await scene.kube.patch(SPARK_APPLICATION, "default", SNAPSHOT, {"status": status}, "status")
    await scene.until(lambda: bool(scene.names("Deployment")))


async def is_kept(scene: ModelScene) -> bool:
    """Delete the object; whether the record of its snapshot outlives it."""
    await scene.delete()
    scene.collect()
    return SNAPSHOT in scene.names("ConfigMap")


async def owners(scene: ModelScene) -> list[str]:
    found = await scene.kube.get(CONFIG_MAP, "default", SNAPSHOT)
    assert found is not None
    return [owner["uid"] for owner in found["metadata"].get("ownerReferences") or ()]


@pytest.mark.parametrize("passes", [3, 0], ids=["seen by a pass", "right before the deletion"])
async def test_a_policy_that_becomes_retain_after_the_copy_keeps_its_record(passes: int) -> None:
    async with open_model_scene() as scene:
        await copied(scene, "Delete")
        await scene.edit({"deletionPolicy": "Retain"})
        await scene.steps(passes)
        assert bool(await owners(scene)) == (not passes)

        assert await is_kept(scene)


async def test_a_policy_that_becomes_delete_after_the_copy_takes_its_record_along() -> None:
    async with open_model_scene() as scene:
        await copied(scene, "Retain")
        await scene.edit({"deletionPolicy": "Delete"})
        await scene.steps(3)
        assert await owners(scene)

        assert not await is_kept(scene)
