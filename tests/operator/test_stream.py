"""An object that reads a stream by leases: real API server, emulator, operator process and `ots-tunnel stream run`."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ots_tunnel.client.caller import ServiceCaller
from ots_tunnel.credentials import static_credentials
from ots_tunnel.model import KeyColumn, KeyType
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.http.operations import TABLE_OPERATIONS
from ots_tunnel.stream.lease.row import KEY_NAMES
from ots_tunnel.tables import TableSchema
from ots_tunnel.transport.aio import AioTransport
from tests.operator.scenes.loopback_node import LoopbackNode
from tests.operator.scenes.operator_scene import KEYS, OperatorScene, running_scene
from tests.support.kube.api_server import ApiServer

pytestmark = [pytest.mark.api, pytest.mark.timeout(300), pytest.mark.unmeasured, pytest.mark.lasts(60)]

LEASES = "flights_leases"
OBJECT: dict[str, Any] = {
    "source__tunnel": None,
    "source__stream": {"leaseTable": LEASES},
    "workers": {"heartbeatIntervalSeconds": 5, "heartbeatTimeoutSeconds": 15},
}


def switch_stream(scene: OperatorScene, *, on: bool) -> None:
    request = pb.UpdateTableRequest(table_name="flights")
    request.stream_spec.enable_stream = on
    if on:
        request.stream_spec.expiration_time = 24
    update_table(scene, request)


def update_table(scene: OperatorScene, request: pb.UpdateTableRequest) -> None:
    async def call() -> None:
        caller = ServiceCaller(AioTransport(scene.service.endpoint), "demo", static_credentials(KEYS))
        try:
            await caller.call(TABLE_OPERATIONS["UpdateTable"], request)
        finally:
            await caller.close()

    asyncio.run(call())


def rows_of(scene: OperatorScene) -> dict[str, int]:
    (instance,) = scene.service.call("state")["instances"]
    return {found["name"]: int(found["rows"]) for found in instance["tables"]}


def replicas(scene: OperatorScene) -> int | None:
    found = scene.kube.get("Deployment", scene.namespace, "copy")
    return None if found is None else int(found["spec"]["replicas"])


def test_from_a_stream_that_is_off_to_ready_and_to_one_that_was_replaced(api_server: ApiServer, tmp_path: Path) -> None:
    with (
        running_scene(api_server.kubeconfig, "stream-source", tmp_path) as scene,
        LoopbackNode(scene, tmp_path) as node,
    ):
        scene.create(**OBJECT)
        scene.operator.start()
        scene.until(lambda: scene.condition("Stalled").get("reason") == "NoStream", "the stream is missed")
        assert scene.condition("TunnelReady")["status"] == "False"
        assert replicas(scene) is None

        switch_stream(scene, on=True)
        scene.until(lambda: bool(scene.kube.list("Pod", scene.namespace)), "the Deployment has its pod")
        assert LEASES not in rows_of(scene), "the first worker creates it, and none has run yet"
        assert scene.status()["channels"] | {"total": 1, "unowned": 1} == scene.status()["channels"]
        node.run()
        scene.until(lambda: scene.is_true("Ready"), "the worker has the shard", seconds=120)

        status = scene.status()
        assert status["tunnel"]["leaseTable"] == LEASES
        assert (status["channels"]["open"], status["channels"]["unowned"]) == (1, 0)
        assert status["workers"][0]["channels"] == 1
        assert (status["phase"], status["lag"]["notLookedAt"]) == ("Streaming", 0)
        scene.put("flights", ["new-1", "new-2"], 1)
        scene.until(
            lambda: rows_of(scene)["flights_copy"] == 2, "changes have reached the copy, existing rows have not"
        )
        scene.service.split("demo", "flights")
        scene.until(lambda: scene.status()["channels"]["terminated"] == 1, "the parent was read to its end")
        scene.until(lambda: scene.status()["channels"]["open"] == 2, "both children are read")

        switch_stream(scene, on=False)
        scene.until(lambda: scene.condition("Stalled").get("reason") == "NoStream", "the stream is off")
        scene.until(lambda: replicas(scene) == 0, "the workers are stopped")
        switch_stream(scene, on=True)
        scene.until(lambda: scene.condition("Stalled").get("reason") == "StreamReplaced", "another stream has come")
        assert replicas(scene) == 0


def test_a_time_to_live_of_the_leases_is_found_before_a_worker_starts(api_server: ApiServer, tmp_path: Path) -> None:
    with running_scene(api_server.kubeconfig, "stream-expiry", tmp_path) as scene:
        switch_stream(scene, on=True)
        keys = tuple(KeyColumn(name, KeyType.STRING) for name in KEY_NAMES)
        scene.admin.create(TableSchema(LEASES, keys, ttl_seconds=86_400))
        scene.create(**OBJECT)
        scene.operator.start()
        scene.until(lambda: scene.condition("Stalled").get("reason") == "LeaseTableUnusable", "the setting is found")
        assert "found 86400 s, allowed is -1" in scene.condition("TunnelReady")["message"]
        assert replicas(scene) is None

        request = pb.UpdateTableRequest(table_name=LEASES)
        request.table_options.time_to_live = -1
        update_table(scene, request)
        scene.until(lambda: bool(scene.kube.list("Pod", scene.namespace)), "workers start")
        scene.until(lambda: scene.condition("Stalled")["status"] == "False", "nothing is in the way any more")


def test_a_deletion_keeps_the_leases_and_the_next_object_resumes(api_server: ApiServer, tmp_path: Path) -> None:
    with (
        running_scene(api_server.kubeconfig, "stream-deletion", tmp_path) as scene,
        LoopbackNode(scene, tmp_path) as node,
    ):
        switch_stream(scene, on=True)
        scene.put("flights", ["first"], 1)
        scene.create(**OBJECT)
        scene.operator.start()
        scene.until(lambda: bool(scene.kube.list("Pod", scene.namespace)), "the Deployment has its pod")
        node.run()
        scene.until(lambda: rows_of(scene).get("flights_copy") == 1, "the change is copied")
        scene.until(lambda: scene.is_true("Ready"), "the worker has the shard", seconds=120)

        scene.kube.delete("TablestoreTunnel", scene.namespace, "copy")
        scene.until(lambda: scene.kube.get("TablestoreTunnel", scene.namespace, "copy") is None, "it is deleted")
        scene.until(lambda: not scene.kube.list("Pod", scene.namespace), "its pod is gone")

        assert rows_of(scene)[LEASES] == 2, "the lease, and the mark of the stream"
        scene.create(**OBJECT)
        scene.until(lambda: bool(scene.status().get("tunnel", {}).get("id")), "the stream is recorded again")
        assert not scene.is_true("Stalled")


@pytest.mark.lasts(150)
@pytest.mark.timeout(600)
def test_an_object_without_load_sleeps_and_wakes_by_a_change(api_server: ApiServer, tmp_path: Path) -> None:
    sleepy = {
        "mode": "Auto",
        "minReplicas": 0,
        "scaleToZero": {"enabled": True, "idleSeconds": 60, "peekIntervalSeconds": 30},
    }
    with running_scene(api_server.kubeconfig, "stream-sleep", tmp_path) as scene:
        switch_stream(scene, on=True)
        scene.put("flights", ["first"], 1)
        scene.create(**OBJECT, autoscaling=sleepy, replicas=1)
        scene.operator.start()
        scene.until(lambda: bool(scene.kube.list("Pod", scene.namespace)), "the Deployment has its pod")
        with LoopbackNode(scene, tmp_path) as node:
            node.run()
            scene.until(lambda: rows_of(scene).get("flights_copy") == 1, "the change is copied")
            scene.until(lambda: scene.condition("Ready").get("reason") == "Asleep", "it sleeps", seconds=300)
            scene.until(lambda: not scene.kube.list("Pod", scene.namespace), "no pod is left")
        assert replicas(scene) == 0
        assert scene.is_true("Ready")
        assert "lag" not in scene.status()

        scene.put("flights", ["second"], 1)
        scene.until(lambda: bool(scene.kube.list("Pod", scene.namespace)), "the change wakes it")
        assert scene.status()["autoscaling"]["lastDecision"]["reason"] == "Woken"
        with LoopbackNode(scene, tmp_path) as node:
            node.run()
            scene.until(lambda: rows_of(scene)["flights_copy"] == 2, "the change is copied", seconds=120)
            scene.until(lambda: scene.condition("Ready").get("reason") == "Consuming", "it is awake", seconds=120)


def test_an_end_time_completes_the_object(api_server: ApiServer, tmp_path: Path) -> None:
    with (
        running_scene(api_server.kubeconfig, "stream-end", tmp_path) as scene,
        LoopbackNode(scene, tmp_path) as node,
    ):
        switch_stream(scene, on=True)
        scene.put("flights", ["early"], 1)
        end = datetime.now(UTC) + timedelta(seconds=5)
        scene.create(**OBJECT | {"source__stream": {"leaseTable": LEASES, "endTime": end.isoformat()}})
        scene.operator.start()
        scene.until(lambda: datetime.now(UTC) > end, "the end has passed")
        scene.put("flights", ["late"], 1)
        scene.service.split("demo", "flights")
        scene.until(lambda: bool(scene.kube.list("Pod", scene.namespace)), "the Deployment has its pod")
        node.run()

        scene.until(lambda: scene.is_true("Completed"), "every shard is read up to the end", seconds=120)
        scene.until(lambda: replicas(scene) == 0, "no worker is needed any more")

        assert scene.condition("Completed")["reason"] == "EndTimeReached"
        assert rows_of(scene)["flights_copy"] == 1
        assert scene.status()["phase"] == "Completed"
