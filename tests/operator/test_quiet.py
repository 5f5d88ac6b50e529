"""Writes to the API server that one object causes, with and without changing rows (docs/architecture.md rule 9)."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.operator.scenes.loopback_node import LoopbackNode
from tests.operator.scenes.operator_scene import OperatorScene, running_scene
from tests.support.audit import AuditLog, others, patches_allowed, summary
from tests.support.kube.api_server import ApiServer

pytestmark = [pytest.mark.api, pytest.mark.timeout(300)]

#: Seconds with rows that move, and without; five minutes of each are on a cluster (tests/cluster_scenarios).
MOVING, IDLE = 20.0, 40.0
#: Seconds between two looks of the operator.
POLL = 3.0
#: Seconds without a write after which the operator has written its final figures at that pace.
REST = 15.0


@contextmanager
def writer(scene: OperatorScene, rows_per_second: int = 50) -> Iterator[None]:
    """Changes rows of the source table while the block runs."""
    stop = threading.Event()
    failures: list[BaseException] = []

    def write() -> None:
        number = 0
        try:
            while not stop.wait(0.2):
                number += 1
                start = number * 7 % 30
                scene.put("flights", [f"{key:06}" for key in range(start, start + rows_per_second // 5)], number)
        except BaseException as error:
            failures.append(error)
            raise

    thread = threading.Thread(target=write, name="writer", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(30)
        assert not thread.is_alive()
        assert not failures


def _is_at_rest(scene: OperatorScene) -> bool:
    status = scene.status()
    return bool(status.get("lag", {}).get("caughtUp")) and status.get("throughput", {}).get("rowsPerSecond") == 0


def _is_available(scene: OperatorScene) -> bool:
    deployment = scene.kube.get("Deployment", scene.namespace, "copy") or {}
    return bool(deployment.get("status", {}).get("availableReplicas") == 1)


@pytest.mark.unmeasured
@pytest.mark.lasts(125)
def test_writes_while_rows_move_and_while_nothing_does(api_server: ApiServer, tmp_path: Path) -> None:
    namespace = "quiet"
    flags = ("--poll-seconds", str(POLL), "--lease-namespace", namespace)
    audited = api_server.kubeconfig.parent / "audit.log"
    with (
        running_scene(api_server.kubeconfig, namespace, tmp_path, flags=flags) as scene,
        LoopbackNode(scene, tmp_path) as node,
    ):
        scene.create(workers={"heartbeatIntervalSeconds": 5, "heartbeatTimeoutSeconds": 15})
        scene.operator.start()
        scene.until(lambda: bool(scene.kube.list("Pod", namespace)), "the Deployment has its pod")
        node.run()
        scene.until(lambda: scene.is_true("Ready"), "rows are copied and changes are followed", seconds=120)
        # the Deployment reports a worker as available only minReadySeconds after it is ready
        scene.until(lambda: _is_available(scene), "the Deployment is available")
        with writer(scene):
            scene.until(lambda: bool(scene.status()["throughput"].get("rowsPerSecond")), "rows move")
            log, began = AuditLog(audited, (namespace,)), time.monotonic()
            time.sleep(MOVING)
            busy, moving = log.writes(), time.monotonic() - began
        scene.until(lambda: _is_at_rest(scene), "caught up, no rows move", seconds=120)
        scene.until_quiet(REST)  # its final figures are written, however late on a busy machine
        log = AuditLog(audited, (namespace,))
        time.sleep(IDLE)
        still = log.writes()

    assert others(busy) == [], summary(busy)
    assert 1 <= sum(write.is_status for write in busy) <= patches_allowed(moving), summary(busy)
    assert [write for write in still if not write.is_lease] == [], summary(still)
    assert sum(write.is_lease for write in still) > IDLE / 10
