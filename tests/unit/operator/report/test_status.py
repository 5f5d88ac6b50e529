"""The status: complete, true, and worth a write only when something changed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ots_tunnel.model import ChannelId, ChannelStatus, Stage, StreamConfig, TunnelId, TunnelType
from ots_tunnel_operator.api.status import TunnelObjectStatus
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.report.status_change import is_different, is_urgent, merge_patch
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world.absence import Failure, Missing, Unread
from ots_tunnel_operator.world.pod import Pod
from ots_tunnel_operator.world.service import Peek, Table, Tunnel
from ots_tunnel_operator.world.world import Competitor, World
from tests.support.operator.spark_worlds import progress_record, spark_application, spark_world
from tests.support.operator.worlds import (
    FREED,
    FRESH,
    NOW,
    SCHEMA,
    TUNNEL_ID,
    base,
    channel,
    deployment,
    description,
    pod,
    recorded,
    report_channel,
    reported,
    resource,
    world,
)

BUSY = Failure(Problem(Reason.SERVICE_UNAVAILABLE, "busy", ("TunnelReady",)))
EMPTY = resource(recorded(), replicas=0)


def status_of(found: World) -> dict[str, Any]:
    status = reported(found)
    TunnelObjectStatus.model_validate(status)
    return status


def condition(status: dict[str, Any], kind: str) -> tuple[str, str]:
    found = next(item for item in status["conditions"] if item["type"] == kind)
    return found["status"], found["reason"]


def message(status: dict[str, Any], kind: str) -> str:
    return str(next(item for item in status["conditions"] if item["type"] == kind)["message"])


def following(lag: int, *, rows: int = 0, pods: int = 1, consumed: float | None = None) -> World:
    point = NOW - lag if consumed is None else consumed
    caught = report_channel("c1", caught_up=False, lag_seconds=lag, consumed_up_to=point)
    return world(
        resource(recorded(), replicas=pods),
        tunnel=Tunnel(description(channel("c1", consumed=point, rows=rows))),
        pods=tuple(pod(f"pod-{number}", *([caught] if number == 1 else [])) for number in range(1, pods + 1)),
        children=deployment(pods),
    )


def test_a_running_object_is_ready() -> None:
    status = status_of(world())

    assert condition(status, "Ready") == ("True", "Consuming")
    assert (status["phase"], status["replicas"], status["readyReplicas"]) == ("Streaming", 1, 1)
    assert status["lag"]["seconds"] == 0
    assert status["lag"]["caughtUp"] is True
    assert status["base"] == {"percent": 100, "rows": 100, "done": 1, "total": 1, "etaSeconds": 0}
    assert status["throughput"]["rowsPerSecond"] == 120
    assert status["workers"][0]["channels"] == 1


def test_an_unknown_figure_is_absent_and_never_zero() -> None:
    status = status_of(world(tunnel=BUSY, pods=(pod("pod-1", ready=False),)))

    assert not {"channels", "base", "lag", "throughput"} & set(status) - {"throughput"}
    assert status["workers"] == [{"name": "pod-1", "ready": False}]
    assert condition(status, "TunnelReady")[0] == "Unknown"


def test_figures_that_could_not_be_looked_at_stay_with_the_time_of_their_observation() -> None:
    before = status_of(world())
    later = replace(world(resource(before), tunnel=BUSY), now=NOW + 60)
    after = status_of(later)

    assert after["observedTime"] == timestamp(NOW)
    assert (after["channels"], after["lag"]) == (before["channels"], before["lag"])
    assert condition(after, "Ready")[:2] == ("Unknown", "ServiceUnavailable")
    assert condition(after, "TunnelReady")[0] == "Unknown"
    assert condition(after, "Degraded")[0] == "True"


def test_an_endpoint_that_never_answered_is_a_finding() -> None:
    status = status_of(world(resource(), tunnel=BUSY))

    assert condition(status, "Ready")[:2] == ("False", "ServiceUnavailable")


def test_a_worker_in_its_first_second_has_no_rate() -> None:
    fresh = pod("pod-1")
    assert fresh.report is not None
    young = replace(fresh, report=replace(fresh.report, rows_per_second=None, busy_percent=None))
    status = status_of(world(resource(recorded(), replicas=2), pods=(young, pod("pod-2")), children=deployment(2)))

    assert "rowsPerSecond" not in status["throughput"]
    assert [worker.get("busyPercent") for worker in status["workers"]] == [None, 30]


def test_the_limit_of_all_workers_stands_beside_their_rate() -> None:
    limited = {"source__rateLimit": {"rowsPerSecondPerWorker": 500}, "replicas": 2}
    of = resource(recorded(), **limited)
    both = (pod("pod-1"), pod("pod-2"))
    found = status_of(world(of, pods=both, children=deployment(2)))["throughput"]

    assert (found["rowsPerSecond"], found["limitRowsPerSecond"]) == (240, 1000)
    # one that is not ready reads nothing
    starting = (pod("pod-1"), pod("pod-2", ready=False))
    assert status_of(world(of, pods=starting, children=deployment(2)))["throughput"]["limitRowsPerSecond"] == 500
    assert "limitRowsPerSecond" not in status_of(world(of, pods=(), children=deployment(0)))["throughput"]
    assert "limitRowsPerSecond" not in status_of(world())["throughput"]


def test_a_limit_does_not_take_the_place_of_figures_that_cannot_be_observed() -> None:
    before = {"rowsPerSecond": 70, "limitRowsPerSecond": 500, "rowsTotal": 9}
    of = resource(recorded(throughput=before), source__rateLimit={"rowsPerSecondPerWorker": 500})
    deaf = replace(pod("pod-1"), report=None)

    assert status_of(world(of, pods=(deaf,), tunnel=BUSY))["throughput"] == before


def test_nobody_knows_the_rate_while_spark_copies() -> None:
    assert "rowsPerSecond" not in (status_of(spark_world(spark_application("RUNNING"))).get("throughput") or {})


def test_a_completed_object_has_no_lag_and_no_unowned_channel() -> None:
    window = {"startFrom": "Latest", "endTime": timestamp(NOW - 60)}
    of = resource(
        recorded(conditions=[{"type": "Completed", "status": "True"}]), source__tunnel__stream=window, replicas=2
    )
    left = Tunnel(description(channel("c1", ChannelStatus.CLOSE, client="", consumed=NOW - 65)))
    status = status_of(world(of, tunnel=left, pods=(), children=deployment(0)))

    assert condition(status, "Ready") == ("True", "Completed")
    assert (status["channels"]["unowned"], "lag" in status) == (0, False)


@pytest.mark.parametrize(
    ("other", "rate"),
    [
        (replace(pod("pod-2"), report=None), None),
        (replace(pod("pod-2"), report=None, ready=False, deleting=True), None),
        (replace(pod("pod-2"), report=None, ready=False), None),
        (replace(pod("pod-2"), ready=False, deleting=True), 240),
        # how the process before ended
        (replace(pod("pod-2"), message="OOMKilled with exit code 137"), 240),
        (replace(pod("pod-2"), message="OOMKilled with exit code 137", report=None), None),
        # without a process
        (pod("pod-2", ready=False, phase="Pending"), 120),
        (pod("pod-2", ready=False, message="CrashLoopBackOff"), 120),
        (pod("pod-2", ready=False, phase="Failed", message="Evicted"), 120),
    ],
    ids=[
        "deaf",
        "draining and deaf",
        "starting and deaf",
        "draining",
        "started again",
        "started again and deaf",
        "pending",
        "crashing",
        "evicted",
    ],
)
def test_the_rate_is_known_once_every_worker_that_could_move_rows_has_told_its_own(
    other: Pod, rate: int | None
) -> None:
    assert status_of(world(pods=(pod("pod-1"), other)))["throughput"].get("rowsPerSecond") == rate


@pytest.mark.parametrize(
    ("found", "ready", "reason"),
    [
        (world(EMPTY, children=deployment(0), pods=(), tunnel=FREED), "False", "NoWorkersWanted"),
        # the pod was deleted by force, and its client has the channel
        (world(EMPTY, children=deployment(0), pods=()), "False", "Scaling"),
        # a Deployment counts no pod that is being deleted
        (world(EMPTY, children=deployment(0), pods=(pod(deleting=True),)), "False", "Scaling"),
        (
            world(resource(recorded(), suspend=True), children=deployment(0), pods=(), tunnel=FREED),
            "False",
            "SuspendRequested",
        ),
        (world(tunnel=Missing()), "False", "TunnelNotFound"),
        (world(elder=Competitor("a", "b", 1.0, "0")), "False", "TunnelInUse"),
        (world(tunnel=Tunnel(description(base("b1"), stage=Stage.BASE))), "False", "BaseDataRunning"),
        (world(children=deployment(1, readyReplicas=0)), "False", "StartingWorkers"),
        (world(tunnel=Tunnel(description(channel("c1", ChannelStatus.WAIT, client="")))), "False", "ChannelsMoving"),
        (world(tunnel=Tunnel(description(channel("c1"))), pods=(pod("pod-1"),)), "Unknown", "NotObserved"),
        (following(1000), "False", "LagHigh"),
        (following(100), "True", "Consuming"),
    ],
)
def test_ready_has_a_message(found: World, ready: str, reason: str) -> None:
    assert condition(status_of(found), "Ready") == (ready, reason)


def test_a_stalled_object_has_failed_in_every_condition_concerned() -> None:
    status = status_of(world(tunnel=Missing()))

    assert status["phase"] == "Failed"
    for kind, value in {"Stalled": "True", "Degraded": "True", "TunnelReady": "False", "Ready": "False"}.items():
        assert condition(status, kind) == (value, "TunnelNotFound")


def test_a_foreign_client_counts_after_a_whole_timeout() -> None:
    foreign = world(foreign_since={"else-1": NOW - 59})

    assert condition(status_of(foreign), "Degraded")[1] == "AsExpected"
    assert condition(status_of(replace(foreign, foreign_since={"else-1": NOW - 60})), "Degraded")[1] == "ForeignClient"


def test_a_worker_that_fails_repeatedly_is_named_with_its_termination_message() -> None:
    failing = pod("pod-1", ready=False, restarts=3, message="Error with exit code 2: bad config")

    found = status_of(world(pods=(failing,), children=deployment(1, readyReplicas=0)))

    assert condition(found, "Degraded") == ("True", "WorkersFailing")


def test_a_snapshot_that_waits_for_the_stream_is_still_being_prepared() -> None:
    first = Tunnel(description(channel("c1", client=""), kind=TunnelType.Stream), {})
    status = status_of(world(resource(recorded(), engine__baseData="Spark"), tunnel=first, children={}, pods=()))

    assert status["phase"] == "Preparing"
    assert condition(status, "Ready") == ("False", "SnapshotRunning")


def test_retention_is_a_share_of_what_the_table_keeps() -> None:
    found = replace(following(500), source=Table(SCHEMA, stream_retention_seconds=1000))

    assert status_of(found)["lag"]["retentionUsedPercent"] == 50
    assert condition(status_of(found), "Degraded") == ("True", "RetentionAtRisk")


def copying(done: int, retention: int) -> World:
    """Workers copy ten channels of existing rows for 900 s, and no worker reads the stream."""
    channels = [base(f"b{n}", ChannelStatus.TERMINATED if n < done else ChannelStatus.OPEN) for n in range(10)]
    tunnel = Tunnel(description(*channels, channel("c1", ChannelStatus.WAIT, client=""), stage=Stage.BASE))
    return world(tunnel=tunnel, source=Table(SCHEMA, stream_retention_seconds=retention))


def test_the_time_for_existing_rows_follows_from_the_mean_rate_so_far() -> None:
    assert status_of(copying(1, 100_000))["base"] == {
        "percent": 10,
        "rows": 0,
        "done": 1,
        "total": 10,
        "etaSeconds": 8100,
    }
    assert "etaSeconds" not in status_of(copying(0, 100_000))["base"]
    assert status_of(copying(10, 100_000))["base"]["etaSeconds"] == 0


def test_the_time_left_is_unknown_while_nothing_copies() -> None:
    stopped = replace(copying(5, 100_000), pods=(pod("pod-1", ready=False),))
    suspended = replace(copying(5, 100_000), resource=resource(recorded(), suspend=True))
    done = replace(copying(10, 100_000), pods=())

    for found in (stopped, suspended):
        assert status_of(found)["base"] == {"percent": 50, "rows": 0, "done": 5, "total": 10}
    assert status_of(done)["base"]["etaSeconds"] == 0


def test_the_time_for_the_splits_of_a_snapshot_follows_from_its_start() -> None:
    begun = recorded(snapshot={"tunnelId": TUNNEL_ID, "startedTime": timestamp(NOW - 900)})

    found = spark_world(progress_record(1, 10) | spark_application("RUNNING"), begun)

    assert status_of(found)["base"] == {"percent": 10, "done": 1, "total": 10, "etaSeconds": 8100}


def test_channels_a_worker_are_known_once_every_ready_worker_answers() -> None:
    pods = (
        pod("pod-1", report_channel("c1"), report_channel("c2")),
        pod("pod-2", report_channel("c3"), report_channel("c4", state="CLOSE")),
        pod("pod-3", ready=False),
    )
    tunnel = Tunnel(description(*(channel(f"c{number}") for number in range(1, 5))))

    channels = status_of(world(tunnel=tunnel, pods=pods))["channels"]

    assert (channels["minPerWorker"], channels["maxPerWorker"]) == (1, 2)
    # one that does not answer may hold the fewest, or the most
    silent = status_of(world(tunnel=tunnel, pods=(*pods, replace(pod("pod-4"), report=None))))["channels"]
    assert not {"minPerWorker", "maxPerWorker"} & set(silent)


def test_changes_wait_from_the_tunnel_s_creation_on_while_existing_rows_are_copied() -> None:
    found = status_of(copying(0, 10_000))

    assert found["lag"] == {"observedTime": timestamp(NOW), "retentionUsedPercent": 9}
    assert condition(found, "Degraded") == ("False", "AsExpected")
    assert condition(found, "Ready") == ("False", "BaseDataRunning")


def test_a_base_phase_that_will_outlast_the_stream_is_warned_of_early() -> None:
    early = status_of(copying(1, 10_000))

    assert early["lag"]["retentionUsedPercent"] == 9
    assert condition(early, "Degraded") == ("True", "RetentionAtRisk")
    assert condition(status_of(copying(5, 10_000)), "Degraded") == ("False", "AsExpected")


@pytest.mark.parametrize(
    ("start", "used"),
    [
        (StreamConfig(start_offset_ns=int((NOW - 6000) * 1e9)), 60),
        # what comes before a start that is yet to come is wanted by nobody
        (StreamConfig(start_offset_ns=int((NOW + 6000) * 1e9)), 0),
        (StreamConfig(), 9),
    ],
)
def test_changes_wait_from_the_start_of_an_unread_tunnel_on(start: StreamConfig, used: int) -> None:
    """A tunnel for changes of the last days, such as that of a rewind, was said to use nothing of the retention."""
    unread = description(channel("c1", client=""), kind=TunnelType.Stream, stream=start)
    of = resource(recorded(), suspend=True, source__tunnel__type="Stream")
    found = status_of(world(of, tunnel=Tunnel(unread), pods=(), source=Table(SCHEMA, stream_retention_seconds=10_000)))

    assert found["lag"]["retentionUsedPercent"] == used
    assert condition(found, "Degraded")[1] == ("RetentionAtRisk" if used >= 50 else "AsExpected")


def test_an_unread_channel_is_no_lost_stream_once_others_are_read() -> None:
    split = description(channel("c1", consumed=NOW - 5), channel("c2", ChannelStatus.WAIT, client=""))
    found = world(tunnel=Tunnel(split), pods=(), source=Table(SCHEMA, stream_retention_seconds=1000))

    assert status_of(found)["lag"]["retentionUsedPercent"] == 0


def test_one_channel_that_is_known_to_run_out_of_retention_is_enough() -> None:
    # suspended; one partition has had no writes, and nobody knows how far behind its channel is
    split = description(
        channel("c1", ChannelStatus.CLOSE, client="", consumed=NOW - 900),
        channel("c2", ChannelStatus.CLOSE, client=""),
    )
    table = Table(SCHEMA, stream_retention_seconds=1000)
    found = world(resource(recorded(), suspend=True), tunnel=Tunnel(split), pods=(), source=table)

    assert condition(status_of(found), "Degraded") == ("True", "RetentionAtRisk")
    assert "so that nothing is consumed: set it to false" in message(status_of(found), "Degraded")
    # the other one may use more
    assert "retentionUsedPercent" not in status_of(found)["lag"]


@pytest.mark.parametrize("replicas", [0, 1])
def test_nothing_behind_the_end_time_of_a_completed_object_is_at_risk(replicas: int) -> None:
    """No worker runs, and the consume points stand still before the end, while the stream goes on and drops records."""
    end = NOW - 3 * 86_400
    window = {"startFrom": "Earliest", "endTime": timestamp(end)}
    done = recorded(conditions=[{"type": "Completed", "status": "True"}])
    read = description(channel("c1", client="", consumed=end), kind=TunnelType.Stream)
    of = resource(done, replicas=replicas, source__tunnel__type="Stream", source__tunnel__stream=window)
    table = Table(SCHEMA, stream_retention_seconds=86_400)

    found = status_of(world(of, tunnel=Tunnel(read), pods=(), source=table, children=deployment(0)))

    assert condition(found, "Degraded") == ("False", "AsExpected")
    assert condition(found, "Completed")[0] == "True"
    assert "lag" not in found


def test_what_is_late_because_nothing_is_consumed_says_so() -> None:
    behind = Tunnel(description(channel("c1", ChannelStatus.CLOSE, client="", consumed=NOW - 10_000)))
    paused, empty = (
        status_of(world(resource(recorded(), **spec), tunnel=behind, pods=()))
        for spec in ({"suspend": True}, {"replicas": 0})
    )

    assert condition(paused, "Degraded") == condition(empty, "Degraded") == ("True", "LagHigh")
    assert "spec.suspend is true, so that nothing is consumed: set it to false" in message(paused, "Degraded")
    assert "spec.replicas is 0, so that nothing is consumed: set it to 1 or more" in message(empty, "Degraded")


def test_a_rate_limit_is_named_among_what_makes_an_object_late() -> None:
    behind = Tunnel(description(channel("c1", client="", consumed=NOW - 10_000)))
    table = Table(SCHEMA, stream_retention_seconds=100_000)
    limits = {"source__rateLimit": {"rowsPerSecondPerWorker": 0}, "delivery__rateLimit": {"rowsPerSecondPerWorker": 5}}
    late = status_of(world(resource(recorded(), **limits), tunnel=behind, pods=(), source=table))
    risky = {"monitoring": {"retentionWarningPercent": 5}}
    at_risk = status_of(world(resource(recorded(), **limits, **risky), tunnel=behind, pods=(), source=table))

    raised = ", raise spec.delivery.rateLimit, "
    assert (condition(late, "Degraded"), raised in message(late, "Degraded")) == (("True", "LagHigh"), True)
    assert (condition(at_risk, "Degraded"), raised in message(at_risk, "Degraded")) == (
        ("True", "RetentionAtRisk"),
        True,
    )


@pytest.mark.parametrize("spec", [{"suspend": True}, {"replicas": 0}])
def test_a_paused_object_without_anything_to_read_is_not_late(spec: dict[str, Any]) -> None:
    """Its lag grew with its age, and cost a write of the status a minute."""
    behind = Tunnel(description(channel("c1", ChannelStatus.CLOSE, client="", consumed=NOW - 10_000)))
    paused = world(resource(recorded(), **spec), tunnel=behind, pods=(), children=deployment(0))

    idle = status_of(replace(paused, peeks={"c1": Peek(NOW - 5, False, NOW - 5)}))
    late = status_of(replace(paused, peeks={"c1": Peek(NOW - 5, True, NOW - 3000)}))
    long_ago = status_of(replace(paused, peeks={"c1": Peek(NOW - 3000, False, NOW - 3000)}))

    assert "seconds" not in idle["lag"]
    assert condition(idle, "Degraded")[0] == "False"
    assert late["lag"]["seconds"] == long_ago["lag"]["seconds"] == 3000
    assert condition(late, "Degraded") == ("True", "LagHigh")
    # the next worker finds the consume points, and counts from them
    assert {found["lag"]["retentionUsedPercent"] for found in (idle, late)} == {9}


def test_a_child_that_waits_for_a_late_parent_is_no_channel_without_a_worker() -> None:
    split = Tunnel(description(channel("c1", consumed=NOW - 9), channel("c2", ChannelStatus.WAIT, client="")))
    late = pod("pod-1", report_channel("c1", caught_up=False, lag_seconds=9))

    found = status_of(world(tunnel=split, pods=(late,)))

    assert found["channels"]["unowned"] == 0
    assert (condition(found, "Ready"), found["lag"]["seconds"]) == (("True", "Consuming"), 9)
    assert condition(found, "Rebalancing") == ("False", "Settled")


def test_a_report_on_a_returned_channel_does_not_count() -> None:
    gone = report_channel("c1", state="CLOSE", caught_up=False, lag_seconds=500)
    found = status_of(world(tunnel=Tunnel(description(channel("c1", consumed=NOW - 5))), pods=(pod("pod-1", gone),)))

    assert "lagSeconds" not in found["workers"][0]
    assert found["lag"]["slowest"] == [{"id": "c1", "type": "Stream", "seconds": 5}]


def test_a_resumed_object_whose_tunnel_does_not_answer_is_not_called_suspended() -> None:
    before = recorded(phase="Suspended")

    assert status_of(world(resource(before), tunnel=BUSY))["phase"] == "Preparing"
    assert status_of(world(resource(recorded(phase="Streaming")), tunnel=BUSY))["phase"] == "Streaming"


def rewritten(found: World) -> dict[str, Any]:
    """The status of a world whose object has the status already, one poll later."""
    stored = status_of(found)
    later = replace(found, now=found.now + 15, resource=replace(found.resource, status=stored))
    return {"before": stored, "after": reported(later)}


def test_an_idle_object_is_not_worth_a_write() -> None:
    found = rewritten(world())

    assert found["before"] != found["after"]
    assert not is_different(**found)
    assert not is_urgent(**found)


def test_rows_times_and_noise_alone_cause_no_write() -> None:
    before, after = status_of(following(3000, rows=5)), status_of(following(3010, rows=900))

    assert not is_different(before, after)


def test_a_figure_is_worth_a_write_but_not_at_once() -> None:
    before, after = status_of(following(10)), status_of(following(20))

    assert is_different(before, after)
    assert not is_urgent(before, after)


@pytest.mark.parametrize("after", [following(10, pods=2), following(1000), world(tunnel=BUSY)])
def test_replicas_phase_and_conditions_are_written_at_once(after: World) -> None:
    assert is_urgent(status_of(following(10)), status_of(after))


def test_the_patch_holds_changes_and_removes_figures_now_unknown() -> None:
    before = {"a": 1, "lag": {"seconds": 5, "caughtUp": True}, "base": {"percent": 1}, "list": [1]}
    after = {"a": 1, "lag": {"seconds": 6}, "list": [2]}

    assert merge_patch(before, after) == {"base": None, "lag": {"caughtUp": None, "seconds": 6}, "list": [2]}


def test_lists_stay_short() -> None:
    channels = [channel(f"c{number:03}", consumed=NOW - number - 1) for number in range(300)]
    late = [report_channel(f"c{number:03}", caught_up=False, lag_seconds=number + 1) for number in range(300)]
    pods = tuple(pod(f"pod-{number:03}", late[number]) for number in range(300))

    status = status_of(world(tunnel=Tunnel(description(*channels)), pods=pods))

    assert (len(status["workers"]), len(status["lag"]["slowest"])) == (100, 10)


def phase_of(found: World) -> Any:
    return status_of(found)["phase"]


def test_the_phase_is_one_word_for_people() -> None:
    spark = {"engine__baseData": "Spark"}
    running = Tunnel(description(channel("c1", client=""), kind=TunnelType.Stream), {ChannelId("c1"): FRESH})
    unread = world(resource(recorded(phase="Streaming")), tunnel=Unread())

    assert phase_of(world(resource(recorded(), suspend=True))) == "Suspended"
    assert phase_of(world(resource(), tunnel=Missing(), children={}, pods=())) == "Preparing"
    assert phase_of(world(resource(), tunnel=BUSY, children={}, pods=())) == "Pending"
    assert phase_of(world(resource(recorded(), **spark), tunnel=running, children={}, pods=())) == "BaseData"
    assert phase_of(unread) == "Streaming"
    assert phase_of(world(tunnel=Unread())) == "Preparing"
    assert phase_of(world(tunnel=Tunnel(description(stage=Stage.INIT)))) == "Preparing"
    assert phase_of(world(tunnel=Tunnel(description(base("b1"), stage=Stage.BASE)))) == "BaseData"


def test_a_table_of_unknown_retention_leaves_the_record_alone() -> None:
    found = world(source=Table(SCHEMA, stream_retention_seconds=0))

    assert "streamRetentionSeconds" not in status_of(found)["tunnel"]


def test_the_progress_of_a_snapshot_is_that_of_its_record() -> None:
    copying = spark_world(spark_application("RUNNING") | progress_record(1, 4))
    unknown = spark_world(spark_application("RUNNING"), recorded(base={"percent": 25, "done": 1, "total": 4}))

    base = status_of(copying)["base"]
    assert (base["percent"], base["done"], base["total"]) == (25, 1, 4)
    # all of it may have to be copied again
    assert "base" not in status_of(unknown)
    kept = {"percent": 100, "done": 4, "total": 4}
    copied = spark_world({}, recorded(base=kept, snapshot={"tunnelId": TUNNEL_ID, "state": "Completed"}))
    assert status_of(copied)["base"] == kept


def test_a_worker_that_has_not_connected_has_no_client() -> None:
    connecting = pod("pod-1", report_channel("c1"))
    assert connecting.report is not None
    connecting = replace(connecting, report=replace(connecting.report, client_id=None))

    (worker,) = status_of(world(pods=(connecting,)))["workers"]
    assert "clientId" not in worker


@pytest.mark.parametrize(
    ("children", "state"),
    [({}, None), (spark_application(""), "NEW"), (spark_application("RUNNING"), "RUNNING")],
)
def test_a_running_snapshot_shows_the_state_of_its_application(children: Any, state: str | None) -> None:
    found = spark_world(children, recorded(snapshot={"state": "RUNNING", "application": "flights-copy-snapshot"}))

    assert status_of(found)["snapshot"].get("state") == state


@pytest.mark.parametrize("state", ["RUNNING", "Completed"])
def test_cells_that_a_snapshot_has_left_out_are_shown(state: str) -> None:
    children = spark_application("RUNNING") | progress_record(1, 4, omitted=7)
    found = spark_world(children, recorded(snapshot={"state": state, "tunnelId": TUNNEL_ID}))

    assert status_of(found)["snapshot"]["omittedCells"] == 7
    without_record = spark_world({}, recorded(snapshot={"state": state, "tunnelId": TUNNEL_ID, "omittedCells": 7}))
    assert status_of(without_record)["snapshot"]["omittedCells"] == 7


@pytest.mark.parametrize("state", ["RUNNING", "Completed"])
def test_cells_that_nobody_counted_are_unknown_and_not_0(state: str) -> None:
    found = spark_world(
        spark_application("RUNNING") | progress_record(1, 4),
        recorded(snapshot={"state": state, "tunnelId": TUNNEL_ID, "omittedCells": 0}),
    )

    assert "omittedCells" not in status_of(found)["snapshot"]


@pytest.mark.parametrize(("consumed", "consistent"), [(NOW - 100, True), (NOW - 900, False)])
def test_a_copy_is_consistent_once_the_stream_has_passed_the_end_of_the_snapshot(
    consumed: float, consistent: bool
) -> None:
    snapshot = {"state": "Completed", "finishedTime": timestamp(NOW - 500), "tunnelId": TUNNEL_ID}
    behind = report_channel("c1", caught_up=False, lag_seconds=int(NOW - consumed), consumed_up_to=consumed)
    found = world(
        resource(recorded(snapshot=snapshot), engine__baseData="Spark"),
        tunnel=Tunnel(description(channel("c1", consumed=consumed), kind=TunnelType.Stream), {}),
        pods=(pod("pod-1", behind),),
    )

    assert status_of(found)["snapshot"]["consistent"] is consistent


def test_a_copy_stays_consistent_and_an_unknown_end_decides_nothing() -> None:
    for snapshot in ({"state": "Completed", "consistent": True}, {"state": "Completed"}):
        found = world(
            resource(recorded(snapshot=snapshot), engine__baseData="Spark"),
            tunnel=Tunnel(description(channel("c1", consumed=NOW - 5), kind=TunnelType.Stream), {}),
        )
        assert status_of(found)["snapshot"] == snapshot


@pytest.mark.parametrize("record", ["tunnel", "destination"])
def test_a_record_of_which_an_older_definition_has_kept_nothing_is_left_as_it_is(record: str) -> None:
    # to take it away would be a write, and the next intent would bring it back
    found = world(resource({record: {}}), tunnel=Missing(), destination=Missing(), children={}, pods=())

    status = status_of(found)

    assert status[record] == {}
    assert {"tunnel", "destination"} - status.keys() == {"tunnel", "destination"} - {record}


def test_an_object_that_needs_a_human_has_failed() -> None:
    expired = description(channel("c1", consumed=NOW - 5), expired=True)

    assert phase_of(world(tunnel=Tunnel(expired))) == "Failed"


def test_an_object_with_nothing_left_to_deliver_is_completed() -> None:
    ended = description(base("b1", ChannelStatus.TERMINATED), kind=TunnelType.BaseData, stage=Stage.BASE)
    found = world(resource(recorded(), source__tunnel__type="BaseData"), tunnel=Tunnel(ended))

    assert phase_of(found) == "Completed"


def test_no_figure_is_that_of_a_tunnel_that_only_has_the_name() -> None:
    channels = channel("x1", client="somebody", consumed=NOW - 3, rows=77), channel("x2", ChannelStatus.WAIT, client="")
    status = reported(world(tunnel=Tunnel(description(*channels, tunnel_id=TunnelId("of-somebody-else")))))

    assert {item["reason"] for item in status["conditions"] if item["type"] == "Ready"} == {"TunnelReplaced"}
    assert not {"lag", "channels", "base", "possibleGaps"} & set(status)
    assert "rowsTotal" not in status.get("throughput", {})
