"""Reading a SparkApplication: its state, its times, its pods, and the cause of a failure."""

from __future__ import annotations

from typing import Any

import pytest

from ots_tunnel_operator.assess.spark.application_state import (
    MAX_CAUSE,
    Application,
    AppState,
    read_application,
    shorten,
)


def test_an_application_is_read_from_its_status() -> None:
    found = read_application(
        {
            "metadata": {"creationTimestamp": "2026-11-20T10:00:00Z", "generation": 2},
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
        1_795_170_001.0,
        1_795_169_401.0,
        3,
        frozenset({"orders-snapshot-driver", "exec-1", "exec-2"}),
        generation=2,
    )


def test_a_submission_that_failed_may_have_made_a_driver() -> None:
    found = read_application({"metadata": {}, "status": {"executionAttempts": 1, "submissionAttempts": 2}})

    assert found.attempts == 2


@pytest.mark.parametrize("status", [{}, None, {"applicationState": {}}, {"terminationTime": None}])
def test_an_application_without_status_is_new(status: Any) -> None:
    found = read_application({"metadata": {}, "status": status})

    assert (found.state, found.ended, found.attempts, found.pods) == (AppState.NEW, None, 0, frozenset())


def test_an_unknown_state_is_unknown() -> None:
    assert read_application({"metadata": {}, "status": {"applicationState": {"state": "NAPPING"}}}).state == "UNKNOWN"


def test_messages_are_shortened_to_the_line_of_the_cause() -> None:
    stderr = "WARNING: Using incubator modules\n" + "x" * 600 + " KubernetesClientException: forbidden\n\tat a.b(C)\n"

    assert len(shorten(stderr)) == MAX_CAUSE
    assert shorten("first\nIOException: refused\n\tat x") == "IOException: refused"
    assert shorten("only this") == "only this"
    assert shorten("") == ""


def test_a_suspension_is_read_from_the_spec() -> None:
    assert read_application({"metadata": {}, "spec": {"suspend": True}}).suspend
    assert not read_application({"metadata": {}, "spec": {}}).suspend
