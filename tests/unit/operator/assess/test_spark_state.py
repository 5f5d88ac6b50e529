"""The decision table of a snapshot: nobody consumes the stream while anything could still write an old row."""

from __future__ import annotations

from typing import Any

import pytest

from ots_tunnel.snapshot.record import PROGRESS_LABEL, SnapshotProgress
from ots_tunnel_operator.assess.spark_state import (
    MAX_MESSAGE,
    Application,
    AppState,
    SnapshotDecision,
    SnapshotPhase,
    application_state,
    parse_progress,
    shorten,
    snapshot_decision,
)
from ots_tunnel_operator.world import SparkPod

END = 1_700_000_000.0
DEADLINE, D = 600.0, 20.0
DRIVER = SparkPod("orders-snapshot-driver", "Succeeded", terminated=True)
EXECUTOR = SparkPod("exec-1", "Succeeded", terminated=True)


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


def progress(
    done: int = 8, total: int | None = 8, label: str = "t1", updated: float | None = END - 1
) -> SnapshotProgress:
    return SnapshotProgress(label, done, total, updated if total is not None else None)


def decide(
    application: Application | None,
    record: SnapshotProgress,
    pods: tuple[SparkPod, ...] = (DRIVER, EXECUTOR),
    now: float = END + D,
) -> SnapshotDecision:
    return snapshot_decision(
        application, record, pods, label="t1", now=now, split_deadline=DEADLINE, write_deadline=D, missing_after=60
    )


@pytest.mark.parametrize(
    ("application", "record", "phase", "reason"),
    [
        (None, progress(0, None), "Waiting", "SnapshotStarting"),
        (app("", created=END), progress(0, None), "Waiting", "SnapshotStarting"),
        (app("", created=END + D - 60), progress(0, None), "Waiting", "SnapshotStarting"),
        (app("SUBMITTED"), progress(0, None), "Waiting", "SnapshotStarting"),
        (app("RUNNING"), progress(0, None), "Running", "SnapshotRunning"),
        (app("RUNNING"), progress(7), "Running", "SnapshotRunning"),
        (app("SUCCEEDING"), progress(7), "Running", "SnapshotRunning"),
        (app("FAILING"), progress(7), "Running", "SnapshotRetrying"),
        (app("PENDING_RERUN"), progress(7), "Running", "SnapshotRetrying"),
        (app("SUBMISSION_FAILED"), progress(0, None), "Running", "SnapshotRetrying"),
        (app("INVALIDATING"), progress(7), "Running", "SnapshotRetrying"),
        (app("UNKNOWN"), progress(7), "Running", "SnapshotRetrying"),
        (app("FAILED"), progress(7), "Failed", "SnapshotFailed"),
        # the application's state alone is no proof
        (app("COMPLETED"), progress(7), "Failed", "SnapshotIncomplete"),
        (app("COMPLETED"), progress(0, None), "Failed", "SnapshotIncomplete"),
        (app("COMPLETED"), progress(8, label="other"), "Failed", "SnapshotIncomplete"),
        (app("RUNNING"), progress(8), "Running", "SnapshotSettling"),
        (app("SUCCEEDING"), progress(8), "Running", "SnapshotSettling"),
        (app("PENDING_RERUN"), progress(8), "Running", "SnapshotSettling"),
        (app("COMPLETED"), progress(8), "Done", "SnapshotCompleted"),
        # everything was recorded, then the driver stumbled: the rows are there
        (app("FAILED"), progress(8), "Done", "SnapshotCompleted"),
    ],
)
def test_states(application: Application | None, record: SnapshotProgress, phase: str, reason: str) -> None:
    decision = decide(application, record)

    assert (decision.phase, decision.reason) == (SnapshotPhase(phase), reason)


@pytest.mark.parametrize("phase", ["Pending", "Running", "Unknown"])
def test_a_pod_that_may_write_holds_the_consumers_back(phase: str) -> None:
    decision = decide(app(), progress(), (DRIVER, SparkPod("exec-1", phase, terminated=False)), now=END + 10_000)

    assert (decision.phase, decision.reason) == (SnapshotPhase.RUNNING, "SnapshotSettling")
    assert "exec-1" in decision.message


@pytest.mark.parametrize(
    ("application", "pods", "safe"),
    [
        pytest.param(app(), (DRIVER, EXECUTOR), END + D, id="every pod seen to end"),
        pytest.param(app(), (DRIVER,), END + DEADLINE + D, id="an executor vanished"),
        pytest.param(
            app(), (DRIVER, SparkPod("exec-1", "Failed", False)), END + DEADLINE + D, id="no container status"
        ),
        pytest.param(app(pods=frozenset()), (), END + DEADLINE + D, id="pods unknown"),
        pytest.param(app(ended=None), (DRIVER, EXECUTOR), END - 1 + DEADLINE + D, id="end unknown"),
        pytest.param(None, (), END - 1 + DEADLINE + D, id="application deleted"),
        pytest.param(app(attempts=2), (DRIVER, EXECUTOR), END - 90 + DEADLINE + D, id="pods of an earlier attempt"),
        pytest.param(
            app(attempts=2, submitted=END - 3600), (DRIVER, EXECUTOR), END + D, id="an earlier attempt, long ago"
        ),
    ],
)
def test_consumers_start_when_no_write_can_be_under_way(
    application: Application | None, pods: tuple[SparkPod, ...], safe: float
) -> None:
    early, late = (decide(application, progress(), pods, now) for now in (safe - 0.1, safe))

    assert (early.phase, early.reason, early.look_again) == (SnapshotPhase.RUNNING, "SnapshotSettling", safe)
    assert late.phase is SnapshotPhase.DONE


def test_a_missing_spark_operator_is_told_with_what_to_do() -> None:
    missing, early = (decide(app("", created=END + D - age), progress(0, None), ()) for age in (60, 59))

    assert (missing.phase, missing.reason) == (SnapshotPhase.WAITING, "SparkOperatorMissing")
    assert "spark.jobNamespaces" in missing.message
    assert early.reason == "SnapshotStarting"


def test_an_application_is_read_from_its_status() -> None:
    found = application_state(
        {
            "metadata": {"creationTimestamp": "2026-11-20T10:00:00Z"},
            "status": {
                "applicationState": {"state": "FAILED", "errorMessage": "a\nException: b\n"},
                "driverInfo": {"podName": "orders-snapshot-driver"},
                "executorState": {"exec-1": "COMPLETED", "exec-2": "FAILED"},
                "executionAttempts": 3,
                "lastSubmissionAttemptTime": "2026-11-20T10:10:00Z",
                "terminationTime": "2026-11-20T10:20:00Z",
            },
        }
    )

    assert found == Application(
        AppState.FAILED,
        "Exception: b",
        1_795_168_800.0,
        1_795_170_000.0,
        1_795_169_400.0,
        3,
        frozenset({"orders-snapshot-driver", "exec-1", "exec-2"}),
    )


@pytest.mark.parametrize("status", [{}, None, {"applicationState": {}}, {"terminationTime": None}])
def test_an_application_without_status_is_new(status: Any) -> None:
    found = application_state({"metadata": {}, "status": status})

    assert (found.state, found.ended, found.attempts, found.pods) == (AppState.NEW, None, 0, frozenset())


def test_an_unheard_of_state_is_unknown() -> None:
    assert application_state({"metadata": {}, "status": {"applicationState": {"state": "NAPPING"}}}).state == "UNKNOWN"


def test_messages_are_shortened_to_the_telling_line() -> None:
    stderr = "WARNING: Using incubator modules\n" + "x" * 600 + " KubernetesClientException: forbidden\n\tat a.b(C)\n"

    assert len(shorten(stderr)) == MAX_MESSAGE
    assert shorten("first\nIOException: refused\n\tat x") == "IOException: refused"
    assert shorten("only this") == "only this"
    assert shorten("") == ""


def test_no_record_is_unknown_not_zero() -> None:
    assert parse_progress(None).total is None
    assert parse_progress({"metadata": {"labels": {PROGRESS_LABEL: "t1"}}}) == SnapshotProgress("t1", 0, None)
