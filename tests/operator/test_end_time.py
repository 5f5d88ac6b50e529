"""An object with an end time is Completed once every row before it is delivered, and not before."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ots_tunnel_operator.times import timestamp
from tests.operator.scenes.loopback_node import LoopbackNode
from tests.operator.scenes.operator_scene import OperatorScene, running_scene
from tests.support.kube.api_server import ApiServer

pytestmark = [pytest.mark.api, pytest.mark.timeout(500)]

#: Seconds from the creation of the object to its end time: enough for operator and worker to start beside other tests.
AHEAD = 120.0
#: Seconds before the end time at which the worker is killed: less than the service's timeout of its client.
SHORT_BEFORE = 40.0
TIMEOUT = 60


def rows_of(scene: OperatorScene, table: str) -> int:
    (instance,) = scene.service.call("state")["instances"]
    return next(int(found["rows"]) for found in instance["tables"] if found["name"] == table)


@pytest.mark.unmeasured
@pytest.mark.lasts(150)
def test_a_worker_killed_before_the_end_time_does_not_complete_the_object(
    api_server: ApiServer, tmp_path: Path
) -> None:
    flags = ("--poll-seconds", "1", "--status-seconds", "0")
    with (
        running_scene(api_server.kubeconfig, "end-time", tmp_path, flags=flags) as scene,
        LoopbackNode(scene, tmp_path) as node,
    ):
        end = time.time() + AHEAD
        scene.create(
            source__tunnel__stream={"startFrom": "Latest", "endTime": timestamp(end)},
            workers={"heartbeatIntervalSeconds": 5, "heartbeatTimeoutSeconds": TIMEOUT},
        )
        scene.operator.start()
        scene.until(lambda: bool(scene.kube.list("Pod", scene.namespace)), "the Deployment has its pod")
        node.run()
        scene.until(lambda: scene.is_true("Ready"), "existing rows are copied", seconds=120)
        assert time.time() < end - SHORT_BEFORE, "too slow for this test: raise AHEAD"
        scene.until(lambda: time.time() >= end - SHORT_BEFORE, "it is shortly before the end time")

        scene.put("flights", [f"new-{number:03}" for number in range(100)], 1)
        node.restart()
        scene.put("flights", [f"newer-{number:03}" for number in range(100)], 1)
        assert time.time() < end - 1, "too slow for this test: raise SHORT_BEFORE"

        scene.until(lambda: scene.is_true("Completed"), "completed", seconds=150)
        status, found = scene.status(), rows_of(scene, "flights_copy")

        assert found == rows_of(scene, "flights") == 240
        assert scene.condition("Completed")["reason"] == "EndTimeReached"
        assert scene.is_true("Ready")
        assert "seconds" not in status.get("lag", {})
        assert status["channels"]["unowned"] == 0
        scene.until(lambda: scene.status().get("replicas") == 0, "no worker is left", seconds=90)
        assert scene.is_true("Completed")
        assert "seconds" not in scene.status().get("lag", {})
        assert scene.status()["channels"]["unowned"] == 0
