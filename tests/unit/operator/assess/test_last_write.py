"""The gates before consumption: no consumer starts while anything could still write an old row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ots_tunnel.snapshot.record import CUT_OFF_SECONDS, SnapshotProgress
from ots_tunnel_operator.assess.last_write import Deadlines, find_closed_gate, last_write
from ots_tunnel_operator.assess.spark.application_state import Application, AppState
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world.pod import SparkPod

END = 1_700_000_000.0
DEADLINE, D = 600.0, 20.0
#: From the last submission, or the last end, to the last write of a task that nobody sees.
LONGEST = CUT_OFF_SECONDS + DEADLINE + D
DRIVER = SparkPod("orders-snapshot-driver", "Succeeded", terminated=True, ended=END - 1)
EXECUTOR = SparkPod("exec-1", "Succeeded", terminated=True, ended=END - 1, is_executor=True)
COPIED = SnapshotProgress("t1", 8, 8, END - 1)


def app(state: str = "COMPLETED", **changes: Any) -> Application:
    fields: dict[str, Any] = {
        "state": AppState(state),
        "message": "",
        "created": END - 100,
        "ended": END if AppState(state).terminal else None,
        "submitted": END - 90,
        "attempts": 1,
        "pods": frozenset({DRIVER.name, EXECUTOR.name}),
    }
    return Application(**{**fields, **changes})


def gate(
    application: Application | None, pods: tuple[SparkPod, ...] = (DRIVER, EXECUTOR), now: float = END + D
) -> str | None:
    return find_closed_gate(application, COPIED, pods, now=now, deadlines=Deadlines(DEADLINE, D))


@pytest.mark.parametrize("state", ["", "RUNNING", "SUCCEEDING", "PENDING_RERUN", "SUSPENDED", "UNKNOWN"])
def test_an_application_that_may_submit_again_holds_the_consumers_back(state: str) -> None:
    found = gate(app(state), now=END + 10_000)

    assert found is not None
    assert (state or "not picked up") in found


@pytest.mark.parametrize("state", ["COMPLETED", "FAILED"])
def test_a_terminal_application_holds_nothing_back(state: str) -> None:
    assert gate(app(state)) is None


@pytest.mark.parametrize("phase", ["Pending", "Running", "Unknown"])
def test_a_driver_that_may_start_a_task_holds_the_consumers_back(phase: str) -> None:
    for application in (app(), None):
        found = gate(application, (SparkPod(DRIVER.name, phase, terminated=False), EXECUTOR), now=END + 10_000)

        assert found == f"pod {DRIVER.name} has not ended"


@pytest.mark.parametrize(
    ("application", "pods", "safe"),
    [
        pytest.param(app(), (DRIVER, EXECUTOR), END + D, id="every pod seen to end"),
        pytest.param(app(), (DRIVER,), END + LONGEST, id="an executor vanished"),
        pytest.param(app(), (DRIVER, SparkPod("exec-1", "Failed", False)), END + LONGEST, id="no container status"),
        pytest.param(
            app(), (DRIVER, replace(EXECUTOR, ended=END + 300)), END + 300 + D, id="an executor outlived the driver"
        ),
        pytest.param(app(), (DRIVER, replace(EXECUTOR, ended=None)), END + LONGEST, id="an executor's end unknown"),
        pytest.param(
            app(),
            (DRIVER, SparkPod("exec-1", "Running", False, is_executor=True)),
            END + LONGEST,
            id="a lost node",
        ),
        pytest.param(
            app(),
            (DRIVER, EXECUTOR, SparkPod("exec-2", "Pending", False, is_executor=True)),
            END + LONGEST,
            id="an executor without a node",
        ),
        pytest.param(
            app(),
            (DRIVER, EXECUTOR, SparkPod("exec-1001", "Failed", False, is_executor=True)),
            END + LONGEST,
            id="an executor that is not listed",
        ),
        pytest.param(
            app(),
            (DRIVER, EXECUTOR, replace(EXECUTOR, name="orders-9f-exec-1000")),
            END + LONGEST,
            id="so many executors that one may not be listed",
        ),
        pytest.param(
            app(), (DRIVER, EXECUTOR, replace(EXECUTOR, name="orders-9f-exec-999")), END + D, id="all executors listed"
        ),
        pytest.param(
            app(),
            (DRIVER, EXECUTOR, *(replace(EXECUTOR, name=f"e{number}") for number in range(998))),
            END + LONGEST,
            id="as many names as the Spark operator lists",
        ),
        pytest.param(app(attempts=2, submitted=None), (DRIVER, EXECUTOR), END + LONGEST, id="no time of submission"),
        pytest.param(app(pods=frozenset()), (), END + LONGEST, id="pods unknown"),
        pytest.param(app(ended=None), (DRIVER, EXECUTOR), END - 1 + LONGEST, id="end unknown"),
        pytest.param(None, (), END - 1 + LONGEST, id="application deleted"),
        pytest.param(app(attempts=2), (DRIVER, EXECUTOR), END - 90 + LONGEST, id="pods of an earlier attempt"),
        pytest.param(
            app(attempts=2, submitted=END - 3600), (DRIVER, EXECUTOR), END + D, id="an earlier attempt, long ago"
        ),
        pytest.param(app(generation=2), (DRIVER, EXECUTOR), END - 90 + LONGEST, id="edited: attempts count anew"),
    ],
)
def test_consumers_start_when_no_write_can_be_under_way(
    application: Application | None, pods: tuple[SparkPod, ...], safe: float
) -> None:
    early, late = (gate(application, pods, now) for now in (safe - 0.1, safe))

    assert last_write(application, COPIED, pods, Deadlines(DEADLINE, D)) == safe
    assert early is not None
    assert timestamp(safe) in early
    assert late is None


def test_an_application_that_was_created_again_waits_for_tasks_of_the_one_before() -> None:
    """A node was lost with an executor, and the application was deleted: its object tells nothing of that executor."""
    deadlines, again = Deadlines(DEADLINE, D), app(created=END - 100, submitted=END - 90)

    assert last_write(again, COPIED, (DRIVER, EXECUTOR), deadlines, began=END - 200) == END - 90 + LONGEST
    assert last_write(again, COPIED, (DRIVER, EXECUTOR), deadlines, began=END - 105) == END + D
