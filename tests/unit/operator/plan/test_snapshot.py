"""A snapshot by Spark before the stream: workers start after its last write, and never beside it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ots_tunnel.model import FINISHED, ChannelId, ChannelStatus, Checkpoint, TunnelType
from ots_tunnel_operator.kube.kinds import CONFIG_MAP
from ots_tunnel_operator.manifests.spark.snapshot_document import snapshot_progress_map
from ots_tunnel_operator.plan.actions import (
    ApplyObject,
    ApplyToExisting,
    DeleteObject,
    RecordStatus,
)
from ots_tunnel_operator.reasons import Reason
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world.absence import Missing, Unread
from ots_tunnel_operator.world.pod import SparkPod
from ots_tunnel_operator.world.service import Table, Tunnel
from tests.support.operator.planned_steps import ENSURED, WORKER_OBJECTS, steps
from tests.support.operator.spark_worlds import (
    DRIVER,
    NAME,
    READABLE,
    SPARK,
    progress_record,
    spark_application,
    spark_world,
)
from tests.support.operator.worlds import (
    COPY,
    FRESH,
    NOW,
    TUNNEL_ID,
    UID,
    channel,
    description,
    planned,
    recorded,
    resource,
    world,
)


def test_a_completed_copy_by_spark_needs_its_source_no_more() -> None:
    """As with workers, whose tunnel is gone with the table."""
    completed = recorded(
        conditions=[{"type": "Completed", "status": "True"}],
        tunnel={},
        snapshot={"tunnelId": UID, "state": "Completed"},
    )
    of = resource(completed, **SPARK, source__tunnel__type="BaseData")
    dropped = world(of, source=Missing(), tunnel=Unread(), children={}, pods=())

    assert (planned(dropped).completed, planned(dropped).problem) == (True, None)
    lost = planned(replace(dropped, destination=Missing())).problem
    assert lost is not None
    assert lost.reason is Reason.DESTINATION_BEHIND_TUNNEL
    running = replace(dropped, resource=replace(of, status=completed | {"conditions": []}))
    unfinished = planned(running).problem
    assert unfinished is not None
    assert unfinished.reason is Reason.TABLE_NOT_FOUND


OBJECTS = [
    "ServiceAccount/flights-copy-spark",
    "ServiceAccount/flights-copy-spark-executors",
    "Role/flights-copy-spark",
    "RoleBinding/flights-copy-spark",
    "ConfigMap/flights-copy-snapshot-config",
    "ConfigMap/flights-copy-snapshot",
    "SparkApplication/flights-copy-snapshot",
]


def test_the_first_row_is_read_only_when_every_channel_of_the_stream_has_a_token() -> None:
    unreadable = replace(READABLE, checkpoints={})

    found = planned(spark_world({}, tunnel=unreadable))

    assert found.actions == ()
    assert found.wait is not None
    assert found.wait.reason is Reason.SNAPSHOT_RUNNING
    assert steps(spark_world({})) == ["RecordStatus", *OBJECTS]


def test_consumers_do_not_start_while_a_snapshot_runs() -> None:
    running = recorded(snapshot={"tunnelId": TUNNEL_ID})

    assert steps(spark_world(progress_record(1, 2) | spark_application("RUNNING"), running)) == OBJECTS


ENDED = spark_application("COMPLETED", ended=NOW - 900)
GATES: list[tuple[str, Any, tuple[SparkPod, ...]]] = [
    ("a split is left", progress_record(1, 2) | ENDED, (DRIVER,)),
    ("application runs", progress_record(2, 2) | spark_application("RUNNING"), (DRIVER,)),
    (
        "driver runs",
        progress_record(2, 2) | spark_application("COMPLETED", ended=NOW - 900),
        (replace(DRIVER, phase="Running"),),
    ),
    (
        "driver unknown",
        progress_record(2, 2) | spark_application("COMPLETED", ended=NOW - 900),
        (replace(DRIVER, phase="Unknown"),),
    ),
    ("a write may last", progress_record(2, 2) | spark_application("COMPLETED", ended=NOW - 5), (DRIVER,)),
    ("a pod vanished", progress_record(2, 2) | spark_application("COMPLETED", ended=NOW - 500), ()),
    ("other tunnel", progress_record(2, 2, "other") | ENDED, (DRIVER,)),
]


@pytest.mark.parametrize(("children", "pods"), [gate[1:] for gate in GATES], ids=[gate[0] for gate in GATES])
def test_each_gate_alone_holds_the_consumers_back(children: Any, pods: tuple[SparkPod, ...]) -> None:
    found = spark_world(children, recorded(snapshot={"tunnelId": TUNNEL_ID}), spark_pods=pods)

    assert "Deployment/flights-copy" not in steps(found)
    assert not any(
        isinstance(action, RecordStatus) and (action.change.get("snapshot") or {}).get("state") == "Completed"
        for action in planned(found).actions
    )


def test_a_split_of_the_stream_does_not_hold_up_a_snapshot_that_has_begun() -> None:
    children = progress_record(1, 2) | spark_application("RUNNING")
    begun = spark_world(children, recorded(snapshot={"tunnelId": TUNNEL_ID}), tunnel=replace(READABLE, checkpoints={}))

    assert steps(begun) == OBJECTS


def test_an_object_applied_again_continues_after_the_snapshot_of_its_predecessor() -> None:
    ended = channel("c1", ChannelStatus.TERMINATED, consumed=NOW - 50)
    moved = Tunnel(
        description(ended, channel("c2", client=""), kind=TunnelType.Stream),
        {ChannelId("c1"): Checkpoint(FINISHED, 7), ChannelId("c2"): FRESH},
    )
    found = planned(spark_world(progress_record(2, 2, age=60), tunnel=moved))

    (record,) = found.actions
    assert isinstance(record, RecordStatus)
    assert record.change["snapshot"] == {
        "state": "Completed",
        "finishedTime": timestamp(NOW - 60),
        "tunnelId": TUNNEL_ID,
    }
    # No worker has consumed: a task of the predecessor may still be writing.
    assert planned(spark_world(progress_record(2, 2, age=60))).actions == ()


def test_completion_is_recorded_before_workers_start() -> None:
    children = progress_record(2, 2) | spark_application("COMPLETED", ended=NOW - 60)
    status = recorded(snapshot={"tunnelId": TUNNEL_ID})
    done = planned(spark_world(children, status, spark_pods=(DRIVER,)))

    (record,) = done.actions
    assert isinstance(record, RecordStatus)
    assert record.change["snapshot"]["state"] == "Completed"
    assert done.again

    after = recorded(snapshot=dict(record.change["snapshot"]))
    assert steps(spark_world(children, after)) == WORKER_OBJECTS


def test_a_copy_that_left_no_row_in_its_table_begins_anew() -> None:
    """An earlier object began it: there were no rows, or somebody has emptied the table; nothing was consumed."""
    record = progress_record(1, 2)
    of = resource({}, **SPARK)
    applied = snapshot_progress_map(of.object, label=TUNNEL_ID)["metadata"]["annotations"]
    record["ConfigMap", NAME]["metadata"] |= {"annotations": applied, "creationTimestamp": timestamp(NOW - 5000)}
    found = world(of, tunnel=READABLE, children=record, destination=Table(COPY, empty=True), pods=())
    start, deletion = planned(found).actions

    # the start of the former application, whose tasks may still write
    assert isinstance(start, RecordStatus)
    assert start.change["snapshot"]["startedTime"] == timestamp(NOW - 5000)
    assert deletion == DeleteObject(CONFIG_MAP, NAME)
    crashed = replace(of, status=dict(start.change))
    assert planned(replace(found, resource=crashed)).actions == (deletion,)
    assert deletion not in planned(replace(found, resource=crashed, children={})).actions
    for status in (recorded(), {"snapshot": {"tunnelId": TUNNEL_ID, "state": "Completed"}}):
        assert deletion not in planned(replace(found, resource=replace(of, status=status))).actions


def test_an_application_that_no_spark_operator_picks_up_is_reported() -> None:
    problem = planned(spark_world(spark_application("", age=61))).problem

    assert problem is not None
    assert problem.reason is Reason.SPARK_OPERATOR_MISSING
    assert "spark-operator" in problem.message
    assert planned(spark_world(spark_application("", age=59))).problem is None


def test_a_failed_application_stalls_the_object() -> None:
    problem = planned(spark_world(progress_record(1, 2) | spark_application("FAILED"))).problem

    assert problem is not None
    assert problem.reason is Reason.SNAPSHOT_FAILED
    assert problem.stalled


@pytest.mark.parametrize(
    ("state", "reason"),
    [("SUSPENDED", None), ("RESUMING", None), ("FAILING", Reason.SNAPSHOT_RETRYING)],
)
def test_the_state_decides_whether_an_attempt_failed_and_never_a_foreign_text(
    state: str, reason: Reason | None
) -> None:
    for error in ("", "the driver wrote FAILED_PRECONDITION"):
        children = progress_record(1, 2) | spark_application(state, error=error)

        problem = planned(spark_world(children)).problem

        assert (problem and problem.reason) is reason


def test_a_record_of_another_tunnel_is_deleted_before_ours_is_applied() -> None:
    found = planned(spark_world(progress_record(2, 2, "other")))

    assert DeleteObject(CONFIG_MAP, "flights-copy-snapshot") in found.actions


def test_a_snapshot_without_a_tunnel_completes_the_object() -> None:
    of = resource(ENSURED | {"snapshot": {"state": "Completed", "tunnelId": "0123456789abcdef"}})
    of = replace(of, object=resource(source__tunnel__type="BaseData", **SPARK).object)

    found = planned(world(of, children={}, pods=()))

    assert found.completed
    assert found.actions == ()


def test_suspend_takes_a_running_snapshot_with_it() -> None:
    children = spark_application("RUNNING")
    of = resource(recorded(), suspend=True, **SPARK)
    (action,) = planned(world(of, tunnel=READABLE, children=children, pods=())).actions

    assert isinstance(action, ApplyObject)
    assert action.manifest["spec"]["suspend"] is True


def test_an_application_that_is_suspended_already_is_left_alone() -> None:
    children = spark_application("RUNNING")
    children["SparkApplication", "flights-copy-snapshot"]["spec"]["suspend"] = True
    of = resource(recorded(), suspend=True, **SPARK)

    assert planned(world(of, tunnel=READABLE, children=children, pods=())).actions == ()


def test_an_application_that_was_suspended_after_its_last_split_is_resumed_and_ends() -> None:
    children = progress_record(2, 2) | spark_application("SUSPENDED")
    children["SparkApplication", "flights-copy-snapshot"]["spec"]["suspend"] = True
    found = planned(spark_world(children, recorded(snapshot={"tunnelId": TUNNEL_ID})))

    (resume,) = found.actions
    assert isinstance(resume, ApplyObject)
    assert (resume.manifest["kind"], resume.manifest["spec"]["suspend"]) == ("SparkApplication", False)


@pytest.mark.parametrize(
    ("runs", "acts"), [((replace(DRIVER, phase="Running", terminated=False),), ["ApplyToExisting"]), ((DRIVER,), [])]
)
def test_suspend_looks_for_an_application_that_no_watch_shows(runs: tuple[SparkPod, ...], acts: list[str]) -> None:
    """It has lost the operator's labels to another client: its pods went on, and the object said that it stops."""
    of = resource(recorded(snapshot={"tunnelId": TUNNEL_ID}), suspend=True, **SPARK)
    found = planned(replace(spark_world({}, spark_pods=runs), resource=of))

    assert [type(action).__name__ for action in found.actions] == acts
    for action in found.actions:
        assert isinstance(action, ApplyToExisting)
        assert action.manifest["spec"]["suspend"] is True
