"""The state of a snapshot from its application, its record and its pods."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ots_tunnel.snapshot.record import PROGRESS_LABEL
from ots_tunnel_operator.assess.spark.application_state import AppState
from ots_tunnel_operator.assess.spark.snapshot import Snapshot, assess_snapshot
from ots_tunnel_operator.assess.spark.snapshot_state import SnapshotState
from ots_tunnel_operator.reasons import Reason
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world.absence import Unread
from ots_tunnel_operator.world.pod import SparkPod
from ots_tunnel_operator.world.world import World
from tests.support.operator.spark_worlds import DRIVER, NAME, READABLE, progress_record, spark_application, spark_world
from tests.support.operator.worlds import NOW, SETTINGS, TUNNEL_ID, recorded, world

STARTED = recorded(snapshot={"tunnelId": TUNNEL_ID})
NONE: dict[tuple[str, str], Any] = {}
EXECUTOR = SparkPod("exec-1", "Succeeded", terminated=True, ended=NOW - 1000)


def assessed(found: World) -> Snapshot:
    return assess_snapshot(found, missing_seconds=SETTINGS.spark_missing_seconds)


def ended(state: str) -> dict[tuple[str, str], Any]:
    return spark_application(state, ended=NOW - 60)


@pytest.mark.parametrize(
    ("application", "record", "state"),
    [
        (NONE, NONE, SnapshotState.STARTING),
        (spark_application("", age=0), NONE, SnapshotState.STARTING),
        (spark_application("", age=59), NONE, SnapshotState.STARTING),
        (spark_application("", age=60), NONE, SnapshotState.OPERATOR_MISSING),
        (spark_application("SUBMITTED"), NONE, SnapshotState.STARTING),
        (spark_application("RUNNING"), NONE, SnapshotState.COPYING),
        (spark_application("RUNNING"), progress_record(1, 2), SnapshotState.COPYING),
        (spark_application("SUCCEEDING"), progress_record(1, 2), SnapshotState.COPYING),
        (spark_application("FAILING"), progress_record(1, 2), SnapshotState.RETRYING),
        (spark_application("SUBMISSION_FAILED"), NONE, SnapshotState.RETRYING),
        (spark_application("PENDING_RERUN"), progress_record(1, 2), SnapshotState.INTERRUPTED),
        (spark_application("INVALIDATING"), progress_record(1, 2), SnapshotState.INTERRUPTED),
        (spark_application("UNKNOWN"), progress_record(1, 2), SnapshotState.INTERRUPTED),
        (ended("FAILED"), progress_record(1, 2), SnapshotState.FAILED),
        # the application's state alone is no proof
        (ended("COMPLETED"), progress_record(1, 2), SnapshotState.FAILED),
        (ended("COMPLETED"), NONE, SnapshotState.FAILED),
        (ended("COMPLETED"), progress_record(2, 2, "other"), SnapshotState.FAILED),
        (spark_application("RUNNING"), progress_record(2, 2), SnapshotState.SETTLING),
        (spark_application("SUCCEEDING"), progress_record(2, 2), SnapshotState.SETTLING),
        (spark_application("PENDING_RERUN"), progress_record(2, 2), SnapshotState.SETTLING),
        (ended("COMPLETED"), progress_record(2, 2), SnapshotState.DONE),
        # every split was recorded, then the driver failed: the rows are there
        (ended("FAILED"), progress_record(2, 2), SnapshotState.DONE),
    ],
)
def test_states(application: Any, record: Any, state: SnapshotState) -> None:
    pods = () if state is SnapshotState.OPERATOR_MISSING else (DRIVER,)

    assert assessed(spark_world(application | record, STARTED, spark_pods=pods)).state is state


def test_every_state_of_an_application_has_a_state_of_the_snapshot() -> None:
    found = {assessed(spark_world(spark_application(state), STARTED, spark_pods=(DRIVER,))).state for state in AppState}

    assert found == {
        SnapshotState.STARTING,
        SnapshotState.COPYING,
        SnapshotState.RETRYING,
        SnapshotState.INTERRUPTED,
        SnapshotState.FAILED,
    }


def test_a_missing_spark_operator_is_reported_with_what_to_do() -> None:
    problem = assessed(spark_world(spark_application("", age=60), STARTED)).problem

    assert problem is not None
    assert problem.reason is Reason.SPARK_OPERATOR_MISSING
    assert "spark.jobNamespaces" in problem.message


def test_a_pod_shows_that_a_spark_operator_is_there() -> None:
    running = SparkPod(DRIVER.name, "Running", terminated=False)

    found = assessed(spark_world(spark_application("", age=600), STARTED, spark_pods=(running,)))

    assert found.state is SnapshotState.STARTING


def test_the_time_of_the_last_possible_write_is_shown_and_does_not_move() -> None:
    children = progress_record(2, 2) | spark_application("COMPLETED", ended=NOW - 60, executors=(EXECUTOR.name,))
    first, second = (assessed(spark_world(children, STARTED, spark_pods=(DRIVER,), now=now)) for now in (NOW, NOW + 15))

    assert first.state is SnapshotState.SETTLING
    assert first.message == second.message


def test_a_record_without_splits_is_unknown_not_zero() -> None:
    fresh = {("ConfigMap", NAME): {"metadata": {"name": NAME, "labels": {PROGRESS_LABEL: TUNNEL_ID}}}}

    found = assessed(spark_world(fresh | spark_application("RUNNING"), STARTED))

    assert found.progress is not None
    assert found.progress.total is None
    assert found.message == "the splits are not listed yet"


def test_a_damaged_record_counts_as_none() -> None:
    damaged = progress_record(2, 2)
    damaged["ConfigMap", NAME]["data"]["total"] = "many"

    found = assessed(spark_world(damaged | ended("COMPLETED"), STARTED))

    assert (found.state, found.progress, found.is_complete) == (SnapshotState.FAILED, None, False)
    running = assessed(spark_world(damaged | spark_application("RUNNING"), STARTED))
    for message in (found.message, running.message):
        assert "the progress record is damaged (data.total: a number of splits was expected, found 'many')" in message


@pytest.mark.parametrize(("written", "seconds"), [(96.667, 96.667), (None, 300.0)], ids=["recorded", "not recorded"])
def test_an_edited_heartbeat_does_not_shorten_the_wait_for_tasks(written: float | None, seconds: float) -> None:
    """Tasks keep the D of their driver; the record of an older release does not tell it."""
    gone = (replace(DRIVER, ended=NOW), replace(EXECUTOR, ended=NOW))
    children = progress_record(2, 2, write_deadline=written) | spark_application("COMPLETED", age=900, ended=NOW)

    states = [
        assessed(spark_world(children, STARTED, spark_pods=gone, now=NOW + after)).state
        for after in (seconds - 0.1, seconds + 1.1)  # Kubernetes cuts times to whole seconds
    ]

    assert states == [SnapshotState.SETTLING, SnapshotState.DONE]


def test_without_spark_no_snapshot_is_needed() -> None:
    assert assessed(world()) == Snapshot(SnapshotState.NOT_NEEDED)


def test_a_record_is_ours_by_the_recorded_tunnel_while_the_tunnel_is_unread() -> None:
    record = spark_application("RUNNING") | progress_record(1, 2)

    assert assessed(spark_world(record, STARTED | {"tunnel": {"id": TUNNEL_ID}}, tunnel=Unread())).progress is not None
    assert assessed(spark_world(record, STARTED | {"tunnel": {}}, tunnel=Unread())).progress is None


def test_a_copy_by_the_object_itself_is_not_inherited() -> None:
    complete = assessed(spark_world(progress_record(2, 2), STARTED | recorded()))

    assert complete.state is not SnapshotState.NOT_NEEDED
    assert complete.finished is None or complete.finished <= NOW


def test_a_copy_that_an_earlier_object_began_waits_for_tasks_of_its_application() -> None:
    """The record is older than the object: an executor of that application may write on a lost node."""
    children = progress_record(2, 2, age=61) | ended("COMPLETED")
    children["SparkApplication", NAME]["status"]["lastSubmissionAttemptTime"] = timestamp(NOW - 250)
    created = children["SparkApplication", NAME]["metadata"]["creationTimestamp"]
    found = spark_world(children, STARTED, spark_pods=(DRIVER,))
    states = []
    for time in (created, timestamp(NOW - 5000)):
        children["ConfigMap", NAME]["metadata"]["creationTimestamp"] = time
        states.append(assessed(found).state)

    assert states == [SnapshotState.DONE, SnapshotState.SETTLING]


def test_the_end_of_a_copy_is_not_before_it_by_the_clock_of_the_service() -> None:
    """Consume points are compared with it, and the operator's clock may be late."""
    ahead = replace(READABLE, description=replace(READABLE.description, service_time=NOW + 40))
    found = spark_world(ended("COMPLETED") | progress_record(2, 2), STARTED, spark_pods=(DRIVER,))

    assert assessed(found).finished == NOW
    assert assessed(replace(found, tunnel=ahead)).finished == NOW + 40


def test_the_reason_for_which_a_driver_has_given_up_is_told_while_no_other_one_runs() -> None:
    record = progress_record(1, 2)
    record["ConfigMap", NAME]["data"]["error"] = "split 1: the destination refuses id=5: OTSParameterInvalid: no"

    found = assessed(spark_world(record | ended("COMPLETED"), STARTED))

    assert found.state is SnapshotState.FAILED
    assert found.problem is not None
    assert "1 of 2 splits are done; split 1: the destination refuses id=5: OTSParameterInvalid: no" in found.message
    assert found.message in found.problem.message
    running = assessed(spark_world(record | spark_application("RUNNING"), STARTED))
    assert running.message == "1 of 2 splits are done"
    # deleted and made again, of which no driver could start: the reason is that of an earlier one
    failed = assessed(spark_world(record | ended("FAILED"), STARTED))
    assert failed.state is SnapshotState.FAILED
    assert "refuses" not in failed.message
