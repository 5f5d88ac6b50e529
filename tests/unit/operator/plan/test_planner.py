"""The next steps, one test per situation; nothing is ever created twice or too early."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ots_tunnel.model import FINISHED, ChannelId, ChannelStatus, Checkpoint, Stage, StreamConfig, TunnelType
from ots_tunnel_operator.assess.creation import REPEAT_SECONDS, SKEW_SECONDS, STANDING_SECONDS
from ots_tunnel_operator.kube.kinds import CONFIG_MAP
from ots_tunnel_operator.manifests.spark.snapshot_document import snapshot_progress_map
from ots_tunnel_operator.plan import workers
from ots_tunnel_operator.plan.actions import (
    ApplyObject,
    ApplyToExisting,
    CreateTunnel,
    DeleteObject,
    EnsureDestination,
    RecordStatus,
    ScaleDown,
    Wait,
)
from ots_tunnel_operator.plan.planner import OF_TABLE, plan
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.settings import WorkerNetwork
from ots_tunnel_operator.times import exact_timestamp, timestamp
from ots_tunnel_operator.world.absence import Failure, Missing, Unread
from ots_tunnel_operator.world.pod import SparkPod
from ots_tunnel_operator.world.resource import Resource
from ots_tunnel_operator.world.service import Table, Tunnel
from ots_tunnel_operator.world.world import Competitor, World
from tests.support.operator.objects import EMULATOR
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
    PLACE,
    SETTINGS,
    TUNNEL_ID,
    UID,
    assessed,
    base,
    channel,
    deployment,
    description,
    planned,
    pod,
    recorded,
    reported,
    resource,
    world,
)

ELDER = Competitor("elder", "shop", NOW - 5000, "a")


@pytest.mark.parametrize("gone", ["vanished", "expired"])
def test_a_tunnel_that_goes_after_everything_is_copied_is_no_problem(gone: str) -> None:
    completed = {"conditions": [{"type": "Completed", "status": "True"}]}
    of = resource(recorded(**completed), source__tunnel__type="BaseData")
    ended = description(base("b1", ChannelStatus.TERMINATED), kind=TunnelType.BaseData, expired=True)
    found = planned(world(of, tunnel=Missing() if gone == "vanished" else Tunnel(ended)))

    assert (found.completed, found.problem, found.actions) == (True, None, (ScaleDown(),))


def test_a_table_that_was_created_anew_before_anything_was_consumed_is_a_new_destination() -> None:
    ours = PLACE | {"ensuredTime": "t", "createdByOperator": True, "createdTime": exact_timestamp(NOW - 800)}
    unmoved = Tunnel(description(base("b1"), stage=Stage.BASE), {ChannelId("b1"): FRESH})
    now = world(resource(recorded(destination=ours)), tunnel=unmoved, destination=Table(COPY, created=NOW - 5.5))

    assert steps(now) == ["ScaleDown"]
    freed = Tunnel(description(base("b1", client=""), stage=Stage.BASE), {ChannelId("b1"): FRESH})
    ended = replace(now, children=deployment(0), pods=(), tunnel=freed)
    (forgotten,) = planned(ended).actions
    assert isinstance(forgotten, RecordStatus)
    assert forgotten.change["destination"] == dict.fromkeys(OF_TABLE)
    (_, record) = planned(replace(ended, resource=resource(recorded(destination=PLACE)))).actions
    assert isinstance(record, RecordStatus)
    assert record.change["destination"]["createdTime"] == exact_timestamp(NOW - 5.5)
    assert record.change["destination"]["createdByOperator"] is False
    # while the tunnel cannot be read, nobody knows whether anything was consumed
    assert planned(replace(now, tunnel=BUSY)).actions == ()


#: What workers are and need, in the order in which it is applied.
WORKER_OBJECTS = [
    "ServiceAccount/flights-copy-workers",
    "ConfigMap/flights-copy-config",
    "Deployment/flights-copy",
    "PodDisruptionBudget/flights-copy-workers",
]
BUSY = Failure(Problem(Reason.SERVICE_UNAVAILABLE, "busy", ("TunnelReady",)))
INIT = Tunnel(description(stage=Stage.INIT, create_time_ns=int((NOW - 10) * 1e9)), {})
ENSURED: dict[str, Any] = {
    "destination": PLACE | {"createIntentTime": "t", "createdByOperator": True, "ensuredTime": "t"}
}


def steps(found: World) -> list[str]:
    return [
        f"{action.manifest['kind']}/{action.manifest['metadata']['name']}"
        if isinstance(action, ApplyObject)
        else type(action).__name__
        for action in planned(found).actions
    ]


def new_world(of: Resource) -> World:
    """Nothing of the object's is there."""
    return world(of, tunnel=Missing(), destination=Missing(), children={}, pods=())


def replicas(found: World) -> int:
    manifests = [action.manifest for action in planned(found).actions if isinstance(action, ApplyObject)]
    return int(next(item for item in manifests if item["kind"] == "Deployment")["spec"]["replicas"])


def test_a_new_object_records_its_intent_before_each_creating_call() -> None:
    fresh = new_world(resource())
    intended = resource({"destination": {"createIntentTime": "t", "createdByOperator": True}})
    made = world(intended, tunnel=Missing(), destination=Table(COPY, empty=True), children={}, pods=())
    ensured = world(resource(ENSURED), tunnel=Missing(), destination=Table(COPY, empty=True), children={}, pods=())

    assert steps(fresh) == ["RecordStatus", "EnsureDestination"]
    assert steps(made) == ["EnsureDestination", "RecordStatus"]
    assert steps(ensured) == ["RecordStatus", "CreateTunnel"]


def test_an_operator_that_died_after_an_intent_repeats_the_call_and_keeps_the_intent() -> None:
    intent = {"createIntentTime": timestamp(NOW - REPEAT_SECONDS + 1)}
    intended = resource({"destination": PLACE | intent})
    assert planned(new_world(intended)).actions == (EnsureDestination(),)

    again = resource(ENSURED | {"tunnel": intent})
    (create,) = planned(world(again, tunnel=Missing())).actions
    assert create == CreateTunnel(TunnelType.BaseAndStream, None)


@pytest.mark.parametrize(("age", "stands"), [(REPEAT_SECONDS, True), (STANDING_SECONDS, False)])
def test_a_refusal_takes_back_the_intent_of_its_own_call_only(age: float, stands: bool) -> None:
    before = {"createIntentTime": timestamp(NOW - age)}
    intended = resource({"destination": PLACE | before | {"createdByOperator": True}})
    again = resource(ENSURED | {"tunnel": before})

    intent, ensure = planned(new_world(intended)).actions
    assert isinstance(intent, RecordStatus)
    assert intent.change["destination"]["createIntentTime"] == timestamp(NOW)
    assert isinstance(ensure, EnsureDestination)
    empty = dict.fromkeys((*PLACE, "createIntentTime", "createdByOperator"))
    old = PLACE | before | {"createdByOperator": True}
    assert ensure.withdrawal["destination"] == (old if stands else empty)

    intent, create = planned(world(again, tunnel=Missing())).actions
    assert isinstance(intent, RecordStatus)
    assert intent.change["tunnel"] == {"createIntentTime": timestamp(NOW), "endpoint": EMULATOR}
    assert isinstance(create, CreateTunnel)
    withdrawn = {"endpoint": None, "createIntentTime": before["createIntentTime"] if stands else None}
    assert create.withdrawal["tunnel"] == withdrawn


def test_a_table_that_was_found_before_is_not_restored_as_found() -> None:
    gone = resource(
        {"destination": PLACE | {"createIntentTime": timestamp(NOW - 9), "ensuredTime": timestamp(NOW - 5)}}
    )

    intent, ensure = planned(new_world(gone)).actions

    assert isinstance(intent, RecordStatus)
    assert isinstance(ensure, EnsureDestination)
    assert intent.change["destination"]["ensuredTime"] is None
    assert ensure.withdrawal["destination"]["ensuredTime"] is None


ELSEWHERE = {"destination": PLACE | {"endpoint": "http://another", "ensuredTime": "t"}}


@pytest.mark.parametrize(
    ("before", "destination"),
    [(ENSURED, Missing()), (ELSEWHERE, Missing()), (ELSEWHERE, Table(COPY, empty=True))],
    ids=["gone", "elsewhere and missing", "elsewhere"],
)
def test_no_worker_of_the_former_table_is_left_when_another_one_is_used(
    before: dict[str, Any], destination: Table | Missing
) -> None:
    unmoved = Tunnel(description(base("b1"), stage=Stage.BASE), {ChannelId("b1"): FRESH})
    now = world(resource(recorded() | before), tunnel=unmoved, destination=destination)

    assert steps(now) == ["ScaleDown"]
    freed = Tunnel(description(base("b1", client=""), stage=Stage.BASE), {ChannelId("b1"): FRESH})
    ending = replace(now, children=deployment(0), tunnel=freed)
    waits = Reason.CREATING_DESTINATION
    assert (steps(ending), planned(ending).wait.reason) == ([], waits)
    assert "EnsureDestination" in steps(replace(ending, pods=()))
    # its controller, which may still start one, has not seen that none is wanted
    late = deployment(0, observedGeneration=0)
    assert (steps(replace(ending, pods=(), children=late)), planned(ending).wait.reason) == ([], waits)
    # nobody removes an evicted pod
    evicted = pod(ready=False, phase="Failed", message="Evicted")
    assert "EnsureDestination" in steps(replace(ending, pods=(evicted,)))


BUSY = Failure(Problem(Reason.SERVICE_UNAVAILABLE, "503", ("SinkReady",)))


@pytest.mark.parametrize(
    ("before", "seen"),
    [
        (ELSEWHERE, {"destination": BUSY}),
        (ELSEWHERE, {"sink_credentials": BUSY, "destination": Unread()}),
        (ELSEWHERE, {"destination": Table(replace(COPY, max_versions=1), empty=False)}),
        ({"destination": PLACE | {"createIntentTime": "t"}}, {"destination": Table(COPY, empty=True), "tunnel": BUSY}),
    ],
    ids=["unread", "without credentials", "unfit", "created anew, tunnel unread"],
)
def test_no_worker_is_sent_to_a_table_that_nobody_has_looked_at(before: dict[str, Any], seen: dict[str, Any]) -> None:
    moved = Tunnel(description(channel("c1", consumed=NOW - 5)), {ChannelId("c1"): FRESH})
    now = world(resource(recorded() | before), **{"tunnel": moved} | seen)

    found = planned(now)
    # the workers of the former table go on with it
    assert (found.actions, found.replicas) == ((), 1)
    assert found.problem is not None
    assert found.problem.reason in {Reason.SERVICE_UNAVAILABLE, Reason.DESTINATION_INCOMPATIBLE}
    assert planned(replace(now, children=deployment(0), pods=())).actions == ()


@pytest.mark.parametrize(
    "record",
    [
        # what an older definition of the object keeps of an intent
        {"createIntentTime": timestamp(NOW - 5), "createdByOperator": True},
        PLACE | {"endpoint": "http://another", "createIntentTime": timestamp(NOW - 5), "ensuredTime": "t"},
        PLACE | {"createdByOperator": True},
    ],
)
def test_an_intent_that_does_not_name_the_destination_is_recorded_again(record: dict[str, Any]) -> None:
    (intent, ensure) = planned(new_world(resource({"destination": record}))).actions

    assert isinstance(ensure, EnsureDestination)
    assert isinstance(intent, RecordStatus)
    stored = {key: value for key, value in (record | intent.change["destination"]).items() if value is not None}
    assert stored == PLACE | {"createIntentTime": timestamp(NOW), "createdByOperator": True}


INTENT = {"createIntentTime": timestamp(NOW - 15), "endpoint": EMULATOR}


@pytest.mark.parametrize(
    ("tunnel", "ours"),
    [
        (INTENT, True),
        ({"createIntentTime": INTENT["createIntentTime"]}, True),
        ({}, False),
        (INTENT | {"endpoint": "http://elsewhere"}, False),
        (INTENT | {"createIntentTime": timestamp(NOW - STANDING_SECONDS - SKEW_SECONDS - 15)}, False),
    ],
    ids=["intended", "by an earlier release", "not intended", "elsewhere", "long after the intent"],
)
def test_a_tunnel_counts_as_created_by_us_only_with_a_recorded_intent(tunnel: dict[str, str], ours: bool) -> None:
    (record,) = planned(world(resource(ENSURED | {"tunnel": tunnel}), tunnel=INIT)).actions

    assert isinstance(record, RecordStatus)
    assert record.change["tunnel"]["createdByOperator"] is ours
    assert record.change["tunnel"]["id"] == TUNNEL_ID


def test_no_worker_starts_before_the_tunnel_lists_its_channels() -> None:
    found = planned(world(tunnel=INIT, children={}))

    assert found.actions == ()
    assert found.wait is not None
    assert found.wait.reason is Reason.TUNNEL_INITIALISING
    assert found.problem is None


def test_a_tunnel_that_stays_in_its_first_stage_is_reported() -> None:
    stuck = Tunnel(description(stage=Stage.INIT, create_time_ns=int((NOW - 301) * 1e9)), {})

    problem = planned(world(tunnel=stuck, children={})).problem

    assert problem is not None
    assert problem.reason is Reason.TUNNEL_INITIALISING


def test_workers_with_an_account_of_the_user_get_none() -> None:
    named = {"podTemplate": {"spec": {"serviceAccountName": "mine"}}}

    assert steps(world(resource(recorded(), workers=named))) == ["TryTemplate", *WORKER_OBJECTS[1:]]


def test_a_network_policy_is_there_before_the_workers() -> None:
    found = plan(world(), assessed(world()), replace(SETTINGS, worker_network=WorkerNetwork(())))

    kinds = [action.manifest["kind"] for action in found.actions if isinstance(action, ApplyObject)]
    assert kinds == ["ServiceAccount", "NetworkPolicy", "ConfigMap", "Deployment", "PodDisruptionBudget"]


def test_an_operator_without_budgets_applies_none() -> None:
    found = plan(world(), assessed(world()), replace(SETTINGS, worker_budgets=False))

    kinds = [action.manifest["kind"] for action in found.actions if isinstance(action, ApplyObject)]
    assert kinds == ["ServiceAccount", "ConfigMap", "Deployment"]


def test_workers_are_applied_as_many_as_wanted() -> None:
    assert steps(world()) == WORKER_OBJECTS
    assert replicas(world(resource(recorded(), replicas=5))) == 5
    assert replicas(world(resource(recorded(), replicas=0))) == 0


def test_a_running_object_waits_for_nothing() -> None:
    found = planned(world())

    assert (found.wait, found.problem, found.again) == (None, None, False)


@pytest.mark.parametrize(
    ("children", "reason"),
    [
        ({}, Reason.STARTING_WORKERS),
        (deployment(1, readyReplicas=0), Reason.STARTING_WORKERS),
        (deployment(2), Reason.SCALING),
        (deployment(1, updatedReplicas=0), Reason.ROLLING_WORKERS),
        (deployment(1, observedGeneration=0), Reason.ROLLING_WORKERS),
    ],
)
def test_waits_while_workers_change(children: Any, reason: Reason) -> None:
    wait = planned(world(children=children)).wait

    assert wait is not None
    assert wait.reason is reason


STUCK = pod("new", ready=False, message="ImagePullBackOff: no such image", created=NOW)
OLD = pod("old", ready=False, message="Error with exit code 4: SinkRejected", created=NOW - 1000)


@pytest.mark.parametrize(
    ("status", "message"),
    [
        # a rollout has a pod more than wanted
        ({"replicas": 4, "updatedReplicas": 1}, "rolling out 1 of 3; new pod: ImagePullBackOff: no such image"),
        ({"replicas": 2, "updatedReplicas": 1}, "rolling out 1 of 3; new pod: ImagePullBackOff: no such image"),
        ({"replicas": 4, "updatedReplicas": 3}, "rolling out 3 of 3; new pod: ImagePullBackOff: no such image"),
        ({"replicas": 4, "updatedReplicas": 4}, "from 4 to 3 workers"),
        ({"readyReplicas": 2}, "2 of 3 workers are ready; new pod: ImagePullBackOff: no such image"),
    ],
)
def test_a_rollout_is_told_as_one(status: dict[str, int], message: str) -> None:
    pods = (OLD, STUCK, pod("pod-3", created=NOW - 5))
    found = world(resource(recorded(), replicas=3), pods=pods, children=deployment(3, **status))

    wait = planned(found).wait

    assert wait is not None
    assert wait.message == message


GONE: list[dict[str, Any]] = [
    {"tunnel": Missing()},
    {"tunnel": Unread(), "source": Missing()},
    {"tunnel": Tunnel(description(channel("c1"), tunnel_id="another"))},
]


@pytest.mark.parametrize("gone", GONE)
@pytest.mark.parametrize("deployed", [0, 1])
def test_nothing_scales_up_behind_a_tunnel_that_is_gone(gone: dict[str, Any], deployed: int) -> None:
    found = world(children=deployment(deployed), **gone)

    assert steps(found) == ["ScaleDown"] * deployed


@pytest.mark.parametrize("gone", GONE)
def test_what_was_delivered_stays_delivered(gone: dict[str, Any]) -> None:
    window = {"startFrom": "Latest", "endTime": timestamp(NOW - 60)}
    completed = recorded(conditions=[{"type": "Completed", "status": "True"}])
    of = resource(completed, source__tunnel__stream=window)

    left = world(of, children=deployment(0), pods=(), **gone)
    found = planned(left)

    assert (found.completed, found.problem, found.actions) == (True, None, ())
    (shown,) = (item for item in reported(left)["conditions"] if item["type"] == "TunnelReady")
    assert shown["status"] == "False"
    assert "nothing is lost" in shown["message"]
    assert "reset" not in shown["message"]


@pytest.mark.parametrize(("of", "observed"), [(SPARK | {"source__tunnel__type": "BaseData"}, {"source": BUSY})])
def test_completion_outlives_a_problem(of: dict[str, Any], observed: dict[str, Any]) -> None:
    completed = recorded(conditions=[{"type": "Completed", "status": "True"}], tunnel={})

    found = planned(world(resource(completed, **of), tunnel=Unread(), children={}, pods=(), **observed))

    assert found.problem is not None
    assert found.completed


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


def test_base_data_is_completed_when_every_channel_is_terminated() -> None:
    of = resource(recorded(), source__tunnel__type="BaseData")
    ended = [base("b1", ChannelStatus.TERMINATED), base("b2", ChannelStatus.TERMINATED)]
    done = world(of, tunnel=Tunnel(description(*ended, kind=TunnelType.BaseData)))
    running = world(of, tunnel=Tunnel(description(*ended, base("b3"), stage=Stage.BASE, kind=TunnelType.BaseData)))
    silent = world(of, tunnel=Tunnel(description(kind=TunnelType.BaseData, stage=Stage.STREAM)))

    assert (planned(done).completed, replicas(done)) == (True, 0)
    assert (planned(running).completed, replicas(running)) == (False, 1)
    assert not planned(silent).completed


def test_a_problem_creates_nothing_and_leaves_running_workers_alone() -> None:
    assert steps(world(resource(), tunnel=BUSY, children={}, pods=())) == []
    assert replicas(world(tunnel=BUSY)) == 1


@pytest.mark.parametrize("tunnel", [Missing(), Tunnel(description(channel("c1"), expired=True))])
def test_a_missing_tunnel_is_never_created_again_and_its_workers_stop(tunnel: Any) -> None:
    found = planned(world(tunnel=tunnel))

    assert found.actions == (ScaleDown(),)
    assert found.problem is not None
    assert found.problem.stalled


@pytest.mark.parametrize("changes", [{"elder": ELDER}, {"tunnel": Missing()}])
def test_workers_whose_deployment_no_watch_shows_are_stopped_all_the_same(changes: dict[str, Any]) -> None:
    """Another client has taken the operator's labels from it: its pods go on."""
    assert steps(world(children={}, **changes)) == ["ScaleDown"]
    assert steps(world(resource(recorded(), suspend=True), children={})) == ["ScaleDown"]


def test_the_younger_object_on_a_tunnel_starts_nothing_and_stops_what_it_has() -> None:
    assert steps(world(resource(), elder=ELDER, children={}, pods=())) == []
    assert steps(world(elder=ELDER)) == ["ScaleDown"]


@pytest.mark.parametrize("tunnel", [BUSY, Missing(), Tunnel(description(channel("c1")))])
def test_suspend_works_from_any_state(tunnel: Any) -> None:
    assert steps(world(resource(recorded(), suspend=True), tunnel=tunnel)) == ["ScaleDown"]
    assert steps(world(resource(recorded(), suspend=True), tunnel=tunnel, children=deployment(0))) == []


def test_an_object_being_deleted_is_left_to_its_deletion() -> None:
    assert planned(world(resource(recorded(), deleted=True))).actions == ()


def test_an_end_time_in_the_past_goes_to_the_service_and_one_ahead_stays_here() -> None:
    def created(end: float) -> CreateTunnel:
        window = {"startFrom": "Earliest", "endTime": timestamp(end)}
        of = resource(ENSURED, source__tunnel__type="Stream", source__tunnel__stream=window)
        action = planned(world(of, tunnel=Missing())).actions[-1]
        assert isinstance(action, CreateTunnel)
        return action

    past, ahead = created(NOW - 60).stream, created(NOW + 60).stream

    assert past is not None
    assert ahead is not None
    assert (past.earliest, past.end_offset_ns) == (True, int(NOW - 60) * 10**9)
    assert ahead.end_offset_ns == 0


def test_a_fraction_of_the_end_time_is_not_cut_off() -> None:
    window = {"startFrom": "Earliest", "endTime": timestamp(NOW - 60).replace("Z", ".7Z")}
    of = resource(ENSURED, source__tunnel__type="Stream", source__tunnel__stream=window)

    action = planned(world(of, tunnel=Missing())).actions[-1]

    assert isinstance(action, CreateTunnel)
    assert action.stream == StreamConfig(earliest=True, end_offset_ns=int(NOW - 60) * 10**9 + 7 * 10**8)


# A snapshot by Spark before the stream.

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


def test_pods_that_drain_hold_up_nothing_but_the_message() -> None:
    draining = world(resource(recorded(), suspend=True), children=deployment(0), pods=(pod(deleting=True),))

    wait = planned(draining).wait

    assert wait is not None
    assert wait.reason is Reason.SUSPENDING


def test_a_sink_without_a_table_needs_no_destination() -> None:
    of = resource({}, sink={"stdout": {}})

    assert steps(world(of, tunnel=Missing(), destination=Unread(), children={}, pods=())) == [
        "RecordStatus",
        "CreateTunnel",
    ]


@pytest.mark.parametrize(
    ("unread", "reason"),
    [
        ("source", Reason.CREATING_TUNNEL),
        ("destination", Reason.CREATING_DESTINATION),
        ("tunnel", Reason.CREATING_TUNNEL),
    ],
)
def test_what_was_not_read_is_waited_for(unread: str, reason: Reason) -> None:
    observed: dict[str, Any] = {unread: Unread()}
    found = planned(world(resource(ENSURED), children={}, pods=(), **observed))

    assert found.wait == Wait(reason, f"the {unread} could not be read")
    assert found.actions == ()


#: The source in another spelling, which the API server's rules do not recognise.
SAME_TABLE = {"sink__tablestore__table": "flights", "sink__tablestore__endpoint": "http://ots-emulator:8080/"}
SAME_RECORD = PLACE | {"table": "flights", "endpoint": "http://ots-emulator:8080/", "ensuredTime": "t"}


def test_a_document_that_no_worker_takes_is_a_problem_of_the_spec() -> None:
    found = planned(world(resource(recorded(destination=SAME_RECORD), **SAME_TABLE)))

    assert found.problem is not None
    assert found.problem.reason is Reason.INVALID_SPEC
    assert found.actions == ()


@pytest.mark.parametrize("kind", ["BaseAndStream", "BaseData"], ids=["with workers", "by Spark alone"])
def test_a_document_that_no_snapshot_takes_is_a_problem_of_the_spec(kind: str) -> None:
    of = resource(recorded(destination=SAME_RECORD), **SPARK, **SAME_TABLE, source__tunnel__type=kind)
    found = planned(world(of, tunnel=READABLE if kind == "BaseAndStream" else Unread(), children={}, pods=()))

    assert found.problem is not None
    assert found.problem.reason is Reason.INVALID_SPEC
    assert found.actions == ()


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


def test_children_are_rendered_once_for_a_generation_and_number_of_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    rendered: list[int] = []
    render = workers.deployment

    def count(*arguments: Any, **named: Any) -> Any:
        rendered.append(arguments[3])
        return render(*arguments, **named)

    monkeypatch.setattr(workers, "deployment", count)
    found = world()
    plans = [planned(replace(found, now=NOW + later)) for later in range(3)]
    completed = replace(found, resource=replace(found.resource, object=resource(recorded(), replicas=2).object))

    assert rendered == [1]
    assert plans[0].actions == plans[2].actions
    planned(completed)
    assert rendered == [1, 2]


def test_a_deployment_that_was_deleted_comes_back_beside_a_problem_elsewhere() -> None:
    gone = Failure(Problem(Reason.SECRET_NOT_FOUND, "no such Secret", ("CredentialsValid", "SinkReady")))
    before = reported(world())
    of = resource(recorded(conditions=before["conditions"]))
    found = world(of, children={}, pods=(), sink_credentials=gone)

    assert [type(action) for action in planned(found).actions] == [ApplyObject] * 4
    ready = next(item for item in reported(found)["conditions"] if item["type"] == "WorkersAvailable")
    assert ready["status"] == "False"
    # an object that never had workers gets none before the problem is solved
    assert planned(replace(found, resource=resource(recorded()))).actions == ()


def test_a_gap_that_only_the_operator_has_found_does_not_keep_the_workers_that_may_refute_it_away() -> None:
    unread = Tunnel(description(channel("c1", ChannelStatus.CLOSE, client="", consumed=NOW - 200_000)))
    found = planned(world(tunnel=unread, children={}, pods=()))

    assert [type(action) for action in found.actions] == [ApplyObject] * 4
    assert found.problem is not None
    assert found.problem.reason is Reason.POSSIBLE_GAP


def test_a_gap_hides_no_problem_that_keeps_workers_from_being_created() -> None:
    unread = Tunnel(description(channel("c1", ChannelStatus.CLOSE, client="", consumed=NOW - 200_000)))
    busy = Failure(Problem(Reason.SERVICE_UNAVAILABLE, "busy", ("SinkReady",)))
    found = planned(world(tunnel=unread, children={}, pods=(), destination=busy))

    assert found.actions == ()
    assert found.problem == busy.problem


@pytest.mark.parametrize(
    ("place", "created"),
    [({}, True), ({"endpoint": "http://elsewhere"}, False), (PLACE, True)],
    ids=["of an earlier release", "elsewhere", "here"],
)
def test_a_table_that_was_meant_to_be_created_here_counts_as_created(place: dict[str, str], created: bool) -> None:
    assert created_here(place | {"createIntentTime": timestamp(NOW - 9)}, Table(COPY, empty=True)) is created


@pytest.mark.parametrize(
    ("age", "exists_for", "created"),
    [(9, None, True), (604_800, None, False), (604_800, 604_800 - 9, True), (604_800, 9, False)],
    ids=["now", "a week later", "then, and recorded a week later", "by somebody, a week later"],
)
def test_an_intent_makes_no_table_of_a_later_time_this_objects(age: int, exists_for: int | None, created: bool) -> None:
    created_time = None if exists_for is None else NOW - exists_for
    record = PLACE | {"createIntentTime": timestamp(NOW - age), "createdByOperator": True}

    assert created_here(record, Table(COPY, empty=True, created=created_time)) is created


def created_here(destination: dict[str, Any], found: Table) -> bool:
    """Whether the record of a table that is found after an intent calls it created by this object."""
    of = resource({"destination": destination})

    _, record = planned(world(of, tunnel=Missing(), destination=found, children={}, pods=())).actions

    assert isinstance(record, RecordStatus)
    return bool(record.change["destination"]["createdByOperator"])


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
