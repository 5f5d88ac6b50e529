"""The next steps of the workers, one test per situation; nothing is ever created too early."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ots_tunnel.model import ChannelStatus, Stage, TunnelType
from ots_tunnel_operator.plan import workers
from ots_tunnel_operator.plan.actions import (
    ApplyObject,
    ScaleDown,
    Wait,
)
from ots_tunnel_operator.plan.planner import plan
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.settings import WorkerNetwork
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world.absence import Failure, Missing, Unread
from ots_tunnel_operator.world.service import Tunnel
from ots_tunnel_operator.world.world import Competitor
from tests.support.operator.planned_steps import BUSY, ENSURED, WORKER_OBJECTS, replicas, steps
from tests.support.operator.spark_worlds import (
    READABLE,
    SPARK,
)
from tests.support.operator.worlds import (
    NOW,
    PLACE,
    SETTINGS,
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
    assert "nothing is lost by that" in shown["message"]
    assert "reset" not in shown["message"]


@pytest.mark.parametrize(("of", "observed"), [(SPARK | {"source__tunnel__type": "BaseData"}, {"source": BUSY})])
def test_completion_outlives_a_problem(of: dict[str, Any], observed: dict[str, Any]) -> None:
    completed = recorded(conditions=[{"type": "Completed", "status": "True"}], tunnel={})

    found = planned(world(resource(completed, **of), tunnel=Unread(), children={}, pods=(), **observed))

    assert found.problem is not None
    assert found.completed


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
