"""What many idle objects cost the API server, and what an operator that starts with them does."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.operator.scenes.operator_scene import OperatorScene, running_scene
from tests.support.kube.api_server import ApiServer

pytestmark = [pytest.mark.api, pytest.mark.timeout(900)]

#: Objects on one table: each of them has a tunnel of its own.
ON_ONE_TABLE = 10
#: Seconds over which an idle operator is watched.
IDLE_SECONDS = 40.0
#: Requests a minute and object that an idle operator may make: its watches are opened again, however many objects.
READS_A_MINUTE = 0.5
#: Requests an object that an operator may make after a start: lists and watches, and nothing for each object.
READS_AT_START = 1.0


def _settled(scene: OperatorScene) -> int:
    """Objects whose status says that they are as wanted."""
    found = scene.kube.list("TablestoreTunnel", scene.namespace)
    conditions = [item.get("status", {}).get("conditions", ()) for item in found]
    return sum(any(entry["reason"] == "NoWorkersWanted" for entry in entries) for entries in conditions)


def _create(scene: OperatorScene, objects: int) -> None:
    for number in range(objects):
        table = f"flights_{number // ON_ONE_TABLE}"
        if number % ON_ONE_TABLE == 0:
            scene.create_table(table, rows=1)
        scene.create(
            f"copy-{number}",
            replicas=0,
            source__table=table,
            source__tunnel__name=f"copy-{number}",
            source__tunnel__type="Stream",
            sink={"stdout": {}},
        )


@pytest.mark.parametrize(
    "objects", [60, pytest.param(300, marks=[pytest.mark.long, pytest.mark.alone, pytest.mark.lasts(200)])]
)
@pytest.mark.unmeasured
@pytest.mark.lasts(80)
def test_many_idle_objects_cost_no_write_and_hardly_a_read(api_server: ApiServer, tmp_path: Path, objects: int) -> None:
    with running_scene(api_server.kubeconfig, f"fleet-{objects}", tmp_path, flags=("--poll-seconds", "5")) as scene:
        _create(scene, objects)
        scene.operator.start()
        scene.until(lambda: _settled(scene) == objects, "every object is as wanted", seconds=400)
        scene.until_quiet(6)

        scene.proxy.arm()
        scene.proxy.requests.clear()
        time.sleep(IDLE_SECONDS)
        idle, written = list(scene.proxy.requests), list(scene.proxy.writes)

        scene.operator.stop()
        scene.proxy.requests.clear()
        scene.operator.start()
        # every first pass has begun by then: spread over 0.03 s an object
        time.sleep(20 + 0.03 * objects)
        started, written_at_start = list(scene.proxy.requests), list(scene.proxy.writes)
        bodies = b"\n".join(scene.proxy.bodies[:5]).decode()

        # the operator works: an edit is carried out
        scene.kube.patch("TablestoreTunnel", scene.namespace, "copy-7", {"spec": {"suspend": True}})
        scene.until(lambda: scene.is_true("Suspended", "copy-7"), "one of them is suspended")

    assert (written, written_at_start) == ([], []), bodies
    assert len(idle) <= READS_A_MINUTE * objects * IDLE_SECONDS / 60, _summary(idle)
    assert len(started) <= READS_AT_START * objects, _summary(started)
    assert not [request for request in idle + started if "/copy-" in request]


def _summary(requests: list[str]) -> str:
    return "\n".join(f"{requests.count(request)} x {request}" for request in sorted(set(requests)))
