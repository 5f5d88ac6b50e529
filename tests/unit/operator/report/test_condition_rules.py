"""Every case of every condition, in the order of the rules."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ots_tunnel.model import ChannelStatus, Stage
from ots_tunnel_operator.assess.lag import orphaned
from ots_tunnel_operator.plan.actions import Plan, Wait
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.report.condition_rules import decide_conditions
from ots_tunnel_operator.report.conditions import ConditionValue
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world.absence import Failure, Missing, Unread
from ots_tunnel_operator.world.pod import Container, ContainerEnd, Pod, SparkPod
from ots_tunnel_operator.world.report import KeptReport, SinkContact, WorkerReport
from ots_tunnel_operator.world.resource import Resource
from ots_tunnel_operator.world.service import Tunnel
from ots_tunnel_operator.world.world import World
from tests.support.operator.spark_worlds import READABLE, SPARK, spark_application
from tests.support.operator.worlds import (
    FREED,
    NOW,
    assessed,
    base,
    channel,
    deployment,
    description,
    planned,
    pod,
    recorded,
    report_channel,
    resource,
    world,
)

RUNNING = Plan(replicas=1)
STDOUT = resource(recorded(destination={}), sink={"stdout": {}})
BUCKET = resource(
    recorded(destination={}), sink={"files": {"url": "s3://shop/", "credentials": {"secretRef": {"name": "store"}}}}
)
NO_KEYS = Failure(Problem(Reason.SECRET_NOT_FOUND, "no", ("CredentialsValid", "SinkReady")))
COPYING = Tunnel(description(base("b1"), stage=Stage.BASE))
EXPIRED = Tunnel(description(channel("c1"), expired=True))
PREPARING = Tunnel(description(stage=Stage.INIT))
UNOWNED = Tunnel(description(channel("c1", client="", consumed=NOW - 5)))
CLOSING = Tunnel(description(channel("c1", ChannelStatus.CLOSING, consumed=NOW - 5)))
FAILURE = Failure(Problem(Reason.SERVICE_UNAVAILABLE, "busy", ("TunnelReady",)))
#: A pod that crashes repeatedly.
FAILING = pod("pod-1", ready=False, restarts=9, message="SinkRejected: no")


def decided(name: str, found: World, plan: Plan = RUNNING) -> tuple[bool | None, Reason]:
    value: ConditionValue = decide_conditions(found, assessed(found), plan)[name]
    return value.status, value.reason


def problem(*conditions: str, reason: Reason = Reason.TABLE_NOT_FOUND) -> Plan:
    return Plan(problem=Problem(reason, "no", conditions))


def waiting(reason: Reason) -> Plan:
    return Plan(wait=Wait(reason, "soon"))


@pytest.mark.parametrize(
    ("found", "plan", "expected"),
    [
        (world(), problem(), (False, Reason.TABLE_NOT_FOUND)),
        (world(resource(recorded(), suspend=True)), RUNNING, (False, Reason.SUSPENDING)),
        (
            world(resource(recorded(), suspend=True), children=deployment(0), pods=(), tunnel=FREED),
            RUNNING,
            (False, Reason.SUSPEND_REQUESTED),
        ),
        (world(), Plan(completed=True), (True, Reason.COMPLETED)),
        (world(), waiting(Reason.CREATING_TUNNEL), (False, Reason.CREATING_TUNNEL)),
        (world(), Plan(replicas=0), (False, Reason.NO_WORKERS_WANTED)),
        (world(tunnel=FAILURE), RUNNING, (None, Reason.UNKNOWN)),
        (world(tunnel=COPYING), RUNNING, (False, Reason.BASE_DATA_RUNNING)),
        (world(tunnel=UNOWNED), RUNNING, (False, Reason.CHANNELS_MOVING)),
        (world(tunnel=Tunnel(description(channel("c1"))), pods=(pod("pod-1"),)), RUNNING, (None, Reason.UNKNOWN)),
        (world(), RUNNING, (True, Reason.CONSUMING)),
    ],
)
def test_ready(found: World, plan: Plan, expected: Any) -> None:
    assert decided("Ready", found, plan) == expected


def test_a_degradation_makes_a_running_object_unready() -> None:
    found = world(pods=(pod("pod-1", report_channel("c1", error="SinkRejected: no")),))

    assert decided("Ready", found) == (False, Reason.CHANNEL_ERRORS)
    assert decided("Degraded", found) == (True, Reason.CHANNEL_ERRORS)


def test_progressing_and_degraded_follow_the_plan() -> None:
    assert decided("Progressing", world()) == (False, Reason.AS_EXPECTED)
    assert decided("Progressing", world(), waiting(Reason.CREATING_TUNNEL)) == (True, Reason.CREATING_TUNNEL)
    assert decided("Degraded", world()) == (False, Reason.AS_EXPECTED)
    assert decided("Degraded", world(), problem()) == (True, Reason.TABLE_NOT_FOUND)


def test_stalled_means_that_a_human_is_needed() -> None:
    assert decided("Stalled", world()) == (False, Reason.AS_EXPECTED)
    assert decided("Stalled", world(), problem(reason=Reason.SERVICE_UNAVAILABLE)) == (False, Reason.AS_EXPECTED)
    assert decided("Stalled", world(), problem(reason=Reason.TUNNEL_EXPIRED)) == (True, Reason.TUNNEL_EXPIRED)


@pytest.mark.parametrize(
    ("found", "plan", "expected"),
    [
        (world(), problem("CredentialsValid"), (False, Reason.TABLE_NOT_FOUND)),
        (world(), RUNNING, (True, Reason.AUTHENTICATED)),
        (world(source_credentials=FAILURE), RUNNING, (None, Reason.UNKNOWN)),
        (world(tunnel=Unread(), source=Unread()), RUNNING, (None, Reason.UNKNOWN)),
        (world(destination=FAILURE), RUNNING, (None, Reason.UNKNOWN)),
        (world(destination=Unread()), RUNNING, (None, Reason.UNKNOWN)),
        (world(destination=Missing()), RUNNING, (True, Reason.AUTHENTICATED)),
        (
            world(resource(recorded(), sink={"stdout": {}}), sink_credentials=Unread()),
            RUNNING,
            (True, Reason.AUTHENTICATED),
        ),
        (world(BUCKET), RUNNING, (True, Reason.AUTHENTICATED)),
        (world(BUCKET, pods=()), RUNNING, (None, Reason.UNKNOWN)),
        (world(BUCKET, pods=(pod("pod-1", report_channel("c1", error="no")),)), RUNNING, (None, Reason.UNKNOWN)),
        (world(BUCKET, worker_secrets=(NO_KEYS,)), RUNNING, (False, Reason.SECRET_NOT_FOUND)),
        (world(BUCKET, tunnel=Unread(), source=Unread()), RUNNING, (None, Reason.UNKNOWN)),
    ],
)
def test_credentials(found: World, plan: Plan, expected: Any) -> None:
    assert decided("CredentialsValid", found, plan) == expected


@pytest.mark.parametrize(
    ("found", "plan", "expected"),
    [
        (world(), problem("SinkReady"), (False, Reason.TABLE_NOT_FOUND)),
        (world(STDOUT), RUNNING, (True, Reason.SINK_AVAILABLE)),
        (world(), RUNNING, (True, Reason.SINK_AVAILABLE)),
        (world(sink_credentials=NO_KEYS, destination=Unread()), RUNNING, (False, Reason.SECRET_NOT_FOUND)),
        (world(BUCKET, worker_secrets=(NO_KEYS,)), RUNNING, (False, Reason.SECRET_NOT_FOUND)),
        (
            world(resource(), tunnel=Missing(), destination=Missing()),
            waiting(Reason.CREATING_DESTINATION),
            (False, Reason.CREATING_DESTINATION),
        ),
        (world(destination=Unread()), RUNNING, (None, Reason.UNKNOWN)),
    ],
)
def test_sink(found: World, plan: Plan, expected: Any) -> None:
    assert decided("SinkReady", found, plan) == expected


@pytest.mark.parametrize(
    ("found", "plan", "expected"),
    [
        (world(), problem("TunnelReady"), (False, Reason.TABLE_NOT_FOUND)),
        (world(), RUNNING, (True, Reason.TUNNEL_AVAILABLE)),
        (world(tunnel=PREPARING), RUNNING, (False, Reason.TUNNEL_INITIALISING)),
        (world(resource(), tunnel=Missing()), waiting(Reason.CREATING_TUNNEL), (False, Reason.CREATING_TUNNEL)),
        (world(tunnel=Unread()), RUNNING, (None, Reason.UNKNOWN)),
        (world(tunnel=FAILURE), RUNNING, (None, Reason.SERVICE_UNAVAILABLE)),
        (world(resource(), tunnel=Missing()), RUNNING, (False, Reason.CREATING_TUNNEL)),
        # a completed object whose tunnel is gone: the plan has no problem, and the record no tunnel
        (world(tunnel=Missing()), Plan(completed=True), (False, Reason.TUNNEL_NOT_FOUND)),
        (world(tunnel=EXPIRED), Plan(completed=True), (False, Reason.TUNNEL_EXPIRED)),
    ],
)
def test_tunnel(found: World, plan: Plan, expected: Any) -> None:
    assert decided("TunnelReady", found, plan) == expected


def test_a_copy_by_spark_alone_needs_no_tunnel() -> None:
    found = world(resource(recorded(), engine__baseData="Spark", source__tunnel__type="BaseData"))

    assert decided("TunnelReady", found) == (True, Reason.TUNNEL_AVAILABLE)
    assert decided("Completed", found, Plan(completed=True)) == (True, Reason.SNAPSHOT_DONE)


def test_workers_are_available_as_many_as_wanted() -> None:
    assert decided("WorkersAvailable", world(), Plan(replicas=0)) == (True, Reason.NO_WORKERS_WANTED)
    assert decided("WorkersAvailable", world()) == (True, Reason.MINIMUM_REPLICAS_AVAILABLE)
    assert decided("WorkersAvailable", world(pods=())) == (False, Reason.WORKERS_UNAVAILABLE)


def test_missing_workers_are_explained_by_a_pods_message() -> None:
    found = world(pods=(replace(FAILING, restarts=0),))
    value = decide_conditions(found, assessed(found), RUNNING)["WorkersAvailable"]

    assert value.message == "0 of 1 workers are ready; pod-1: SinkRejected: no"


@pytest.mark.parametrize(
    ("tunnel", "expected"),
    [
        (Unread(), (None, Reason.UNKNOWN)),
        (PREPARING, (None, Reason.UNKNOWN)),
        (UNOWNED, (True, Reason.CHANNELS_MOVING)),
        (CLOSING, (True, Reason.CHANNELS_MOVING)),
        (world().tunnel, (False, Reason.SETTLED)),
    ],
)
def test_rebalancing(tunnel: Any, expected: Any) -> None:
    assert decided("Rebalancing", world(tunnel=tunnel)) == expected


@pytest.mark.parametrize(
    ("pods", "status", "says"),
    [
        ((FAILING,), False, "none is ready"),
        ((replace(pod("pod-1"), deleting=True),), False, "none is ready"),
        ((pod("pod-1"),), True, "the only worker"),
        ((pod("pod-1"), pod("pod-2")), True, "another worker"),
    ],
)
def test_a_channel_moves_to_another_worker_only_if_there_is_one(pods: tuple[Pod, ...], status: bool, says: str) -> None:
    found = world(tunnel=UNOWNED, pods=pods)
    value = decide_conditions(found, assessed(found), RUNNING)["Rebalancing"]

    assert value.status is status
    assert says in value.message
    assert (decided("Ready", found)[1] is Reason.CHANNELS_UNOWNED) is (pods != (FAILING,) and not status)


@pytest.mark.parametrize(
    ("suspend", "pods", "expected"),
    [
        (False, (), (False, Reason.NOT_SUSPENDED)),
        (True, (pod("pod-1"),), (False, Reason.SUSPENDING)),
        (True, (), (True, Reason.SUSPEND_REQUESTED)),
    ],
)
def test_suspended(suspend: bool, pods: tuple[Pod, ...], expected: Any) -> None:
    found = world(resource(recorded(), suspend=suspend), children=deployment(0), pods=pods, tunnel=FREED)

    assert decided("Suspended", found) == expected


@pytest.mark.parametrize(
    ("children", "still"),
    [
        (deployment(3, replicas=0, readyReplicas=0), True),
        (deployment(0, observedGeneration=0), True),
        (deployment(0, replicas=2), True),
        (deployment(0), False),
        ({}, False),
    ],
    ids=["wants workers", "its controller has not seen it", "has workers", "at 0", "gone"],
)
def test_a_deployment_that_is_not_at_0_is_not_suspended(children: Any, still: bool) -> None:
    found = world(resource(recorded(), suspend=True), children=children, pods=(), tunnel=FREED)
    reason = Reason.SUSPENDING if still else Reason.SUSPEND_REQUESTED

    assert decided("Suspended", found) == (not still, reason)


def test_a_sink_that_refuses_writes_is_not_called_ready() -> None:
    failing = pod("pod-1", report_channel("c1", error="OTSNoPermissionAccess"))

    assert decided("SinkReady", world(pods=(failing,))) == (None, Reason.UNKNOWN)
    denied = Container(end=ContainerEnd(4, "Error", "SinkRejected: OTSNoPermissionAccess: no"))
    assert decided("SinkReady", world(pods=(replace(FAILING, container=denied),))) == (False, Reason.SINK_DENIED)
    assert decided("SinkReady", world(pods=(replace(FAILING, message="OOMKilled"),))) == (True, Reason.SINK_AVAILABLE)
    assert decided("SinkReady", world()) == (True, Reason.SINK_AVAILABLE)


@pytest.mark.parametrize(
    ("children", "pods", "still"),
    [
        (spark_application("RUNNING"), (), True),
        (spark_application("SUSPENDING"), (), True),
        (spark_application("SUSPENDED", suspend=True), (SparkPod("driver", "Running", terminated=False),), True),
        (spark_application("SUSPENDED", suspend=True), (SparkPod("driver", "Running", terminated=True),), False),
        (spark_application("SUSPENDED", suspend=True), (), False),
        (spark_application("SUSPENDED"), (), True),
        (spark_application("", age=30), (), True),
        (spark_application("", age=300), (SparkPod("driver", "Pending", terminated=False),), True),
        ({}, (), False),
    ],
)
def test_a_snapshot_that_still_runs_is_not_suspended(children: Any, pods: tuple[SparkPod, ...], still: bool) -> None:
    suspended = resource(recorded(), suspend=True, **SPARK)
    found = world(suspended, children=children, pods=(), spark_pods=pods, tunnel=READABLE)
    reason = Reason.SUSPENDING if still else Reason.SUSPEND_REQUESTED
    values = decide_conditions(found, assessed(found), planned(found))

    assert decided("Suspended", found) == (not still, reason)
    assert decided("Ready", found) == (False, reason)
    assert values["Progressing"].status is still
    assert ("SparkApplication is stopping" in values["Progressing"].message) is still
    assert "workers" not in values["Progressing"].message


def test_without_a_spark_operator_there_is_nothing_to_suspend() -> None:
    suspended = resource(recorded(), suspend=True, **SPARK)
    found = world(suspended, children=spark_application("", age=300), pods=(), tunnel=READABLE)

    assert decided("Suspended", found) == (True, Reason.SUSPEND_REQUESTED)
    assert planned(found).wait is None


def test_a_stream_that_stopped_at_its_end_time_is_not_called_terminated() -> None:
    end = {"startFrom": "Latest", "endTime": timestamp(NOW - 60)}
    of = resource(recorded(), source__tunnel__type="Stream", source__tunnel__stream=end)
    ended = Tunnel(description(channel("c1", ChannelStatus.TERMINATED)))

    assert decided("Completed", world(of), Plan(completed=True)) == (True, Reason.END_TIME_REACHED)
    gone = world(of, tunnel=Missing())
    assert decided("Completed", gone, Plan(completed=True)) == (True, Reason.END_TIME_REACHED)
    assert decided("Completed", world(of, tunnel=ended), Plan(completed=True)) == (True, Reason.ALL_CHANNELS_TERMINATED)


def test_completed() -> None:
    base_data = world(resource(recorded(), source__tunnel__type="BaseData"))

    assert decided("Completed", world()) == (False, Reason.STREAM_OPEN)
    assert decided("Completed", base_data) == (False, Reason.NOT_COMPLETED)
    assert decided("Completed", base_data, Plan(completed=True)) == (True, Reason.ALL_CHANNELS_TERMINATED)


def test_a_sink_that_only_workers_reach_is_what_they_report() -> None:
    failing = pod("pod-1", report_channel("c1", error="disk full"))

    assert decided("SinkReady", world(STDOUT)) == (True, Reason.SINK_AVAILABLE)
    assert decided("SinkReady", world(STDOUT, pods=())) == (None, Reason.UNKNOWN)
    assert decided("SinkReady", world(STDOUT, pods=(failing,))) == (None, Reason.UNKNOWN)


HOOK = resource(
    recorded(destination={}), sink={"http": {"url": "http://hook/", "hmacSecretRef": {"name": "hook", "key": "k"}}}
)


def reporting(*contacts: SinkContact | None, of: Resource = HOOK) -> World:
    """Workers that report this of their sink."""
    pods = []
    for number, contact in enumerate(contacts, 1):
        found = pod(f"pod-{number}", report_channel(f"c{number}"))
        assert found.report is not None
        pods.append(replace(found, report=replace(found.report, sink=contact)))
    return world(of, pods=tuple(pods))


@pytest.mark.parametrize(
    ("contacts", "sink", "credentials"),
    [
        # nobody has called it yet
        ([SinkContact(False)], (None, Reason.UNKNOWN), (None, Reason.UNKNOWN)),
        # workers of an earlier release do not tell
        ([None], (None, Reason.UNKNOWN), (None, Reason.UNKNOWN)),
        ([SinkContact(False, 59.0, "no answer")], (None, Reason.UNKNOWN), (None, Reason.UNKNOWN)),
        ([SinkContact(False), SinkContact(True)], (True, Reason.SINK_AVAILABLE), (True, Reason.AUTHENTICATED)),
        # a single failure is no finding
        ([SinkContact(True, 59.0, "no answer")], (True, Reason.SINK_AVAILABLE), (True, Reason.AUTHENTICATED)),
        ([SinkContact(True, 60.0, "no answer")], (False, Reason.SINK_ERRORS), (None, Reason.UNKNOWN)),
        ([SinkContact(True), SinkContact(True, 7200.0, "x")], (False, Reason.SINK_ERRORS), (None, Reason.UNKNOWN)),
    ],
)
def test_a_sink_is_ready_once_it_has_answered_and_while_writes_pass(
    contacts: list[SinkContact | None], sink: tuple[bool | None, Reason], credentials: tuple[bool | None, Reason]
) -> None:
    found = reporting(*contacts)

    assert decided("SinkReady", found) == sink
    assert decided("CredentialsValid", found) == credentials


@pytest.mark.parametrize("of", [HOOK, resource(recorded())], ids=["only workers reach it", "a table"])
def test_writes_that_fail_for_a_minute_are_said_with_their_words(of: Resource) -> None:
    found = reporting(SinkContact(True, 61.0, "no answer"), of=of)
    value = decide_conditions(found, assessed(found), RUNNING)

    assert (value["SinkReady"].status, value["SinkReady"].reason) == (False, Reason.SINK_ERRORS)
    assert "pod pod-1: writes to the sink fail and are tried again (no answer)" in value["SinkReady"].message
    assert (value["Degraded"].status, value["Degraded"].reason) == (True, Reason.SINK_ERRORS)
    assert (value["Ready"].status, value["Ready"].reason) == (False, Reason.SINK_ERRORS)


@pytest.mark.parametrize("of", [HOOK, resource(recorded())], ids=["only workers reach it", "a table"])
def test_a_sink_that_no_worker_can_open_is_not_called_unreported(of: Resource) -> None:
    """Such a worker is not ready: it has not connected yet."""
    (waiting,) = reporting(SinkContact(False, 61.0, "connection refused"), of=of).pods
    assert waiting.report is not None
    report = replace(waiting.report, error="SinkError: connection refused", channels=())
    found = world(of, pods=(replace(waiting, ready=False, report=report),))
    value = decide_conditions(found, assessed(found), RUNNING)

    for kind, status in {"SinkReady": False, "Degraded": True}.items():
        assert (value[kind].status, value[kind].reason) == (status, Reason.SINK_ERRORS)
        assert "the sink has taken nothing yet, and is tried again (connection refused)" in value[kind].message


def client(name: str, client_id: str, **changes: Any) -> Pod:
    """A worker that is this client of the tunnel, and holds nothing yet."""
    found = pod(name)
    assert found.report is not None
    return replace(found, report=replace(found.report, client_id=client_id), **changes)


KILLED = Tunnel(description(channel("c1", client="01234567-pod-1-old", consumed=NOW - 5)))
KEPT = KeptReport(WorkerReport("01234567-pod-1-new", NOW, 0.0, 0, 0, None, False, ()), NOW)


@pytest.mark.parametrize(
    ("pods", "reason"),
    [
        ((client("pod-1", "01234567-pod-1-new", restarts=1),), Reason.CHANNELS_MOVING),
        ((client("pod-2", "01234567-pod-2-new"),), Reason.CHANNELS_MOVING),
        ((client("pod-2", "01234567-pod-2-new"), pod("pod-1", ready=False, phase="Failed")), Reason.CHANNELS_MOVING),
        ((client("pod-2", "", ready=False),), Reason.CHANNELS_UNOWNED),
    ],
    ids=["another client of the same pod", "another pod", "its pod has ended", "nobody can take it"],
)
def test_a_channel_of_a_worker_that_is_gone_has_no_worker(pods: tuple[Pod, ...], reason: Reason) -> None:
    killed = world(tunnel=KILLED, pods=pods)

    assert decided("Ready", killed) == (False, reason)
    assert decided("Rebalancing", killed) == (reason is Reason.CHANNELS_MOVING, reason)


@pytest.mark.parametrize(
    "pods",
    [
        (client("pod-1", "01234567-pod-1-old"),),
        (client("pod-1", ""),),
        (pod("pod-1", ready=False), client("pod-2", "01234567-pod-2-new")),
        (client("pod-1", "01234567-pod-1-new", kept=KEPT),),
    ],
    ids=["its worker", "not connected", "cannot be asked", "answered a while ago"],
)
def test_a_worker_that_does_not_say_which_client_it_is_may_be_the_owner(pods: tuple[Pod, ...]) -> None:
    assert orphaned(KILLED.description, pods, "01234567") == ()


def test_a_foreign_client_is_no_worker_that_is_gone() -> None:
    foreign = Tunnel(description(channel("c1", client="somebody", consumed=NOW - 5)))

    assert decided("Ready", world(tunnel=foreign)) == (True, Reason.CONSUMING)
