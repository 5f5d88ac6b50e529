"""The operator is killed in every phase of an object's life; the next one continues where it was."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.cluster_scenarios.fleet.accidents import kill_operator
from tests.cluster_scenarios.fleet.conftest import MakeCopy
from tests.cluster_scenarios.fleet.fleet import Fleet
from tests.cluster_scenarios.fleet.named_tunnel import PAUSE
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.xdist_group("cluster"),
    pytest.mark.long,
    pytest.mark.timeout(900),
]

#: Rows per second of a worker while existing rows are copied, so that the copy lasts longer than a kill.
SLOW = {"rateLimit": {"rowsPerSecondPerWorker": 100}}
#: Without that limit; null removes a field in a merge patch.
FAST = {"rateLimit": {"rowsPerSecondPerWorker": 0}}


@pytest.mark.lasts(300)
def test_an_operator_killed_in_each_phase(fleet: Fleet, make_copy: MakeCopy) -> None:
    copy = make_copy("killed")

    def killed(phase: str, begun: Callable[[], object]) -> None:
        with fleet.step(f"the operator is killed: {phase}"):
            wait_until(begun, 60, phase, pause=0.2, explain=lambda: str(copy.status()))
            kill_operator(fleet)

    with fleet.writing(100):
        copy.apply(replicas=2, delivery=SLOW, deletionPolicy="Delete")
        killed("tunnel and table are being created", lambda: copy.status().get("tunnel", {}).get("createIntentTime"))
        killed("existing rows are being copied", lambda: copy.status().get("phase") == "BaseData")
        tunnel = copy.status()["tunnel"]["id"]
        copy.edit(delivery=FAST)
        killed("workers are being replaced", lambda: copy.condition("Progressing")[1] == "RollingWorkers")
        with fleet.step("the rollout ends"):
            copy.until_at_rest(workers=2)
        copy.edit(replicas=4)
        killed("workers are being added", lambda: len(copy.pods()) > 2)
        with fleet.step("there are four"):
            copy.until_at_rest(workers=4)
        copy.edit(replicas=2)
        killed("workers are being removed", lambda: copy.condition("Progressing")[1] == "Scaling")
        with fleet.step("there are two"):
            copy.until_at_rest(workers=2)
        copy.edit(suspend=True)
        killed("workers drain before the pause", lambda: len(copy.pods()) < 2)
        with fleet.step("it is suspended"):
            copy.until("suspended", lambda _: copy.condition("Suspended")[0] == "True")
        copy.edit(suspend=False)
        killed("workers start after the pause", lambda: len(copy.pods()) > 0)
        with fleet.step("it is resumed"):
            copy.until_at_rest(workers=2)

    copy.assert_equal()
    status = copy.status()["tunnel"]
    assert (status["id"], status["createdByOperator"]) == (tunnel, True)
    copy.delete_in_background()
    killed(
        "the object is being deleted", lambda: not copy.exists() or "deletionTimestamp" in copy.document()["metadata"]
    )
    with fleet.step("the object is gone, with its tunnel"):
        wait_until(lambda: not copy.exists(), 120, "the object is gone", pause=PAUSE)
        assert copy.tunnel.found() is None
