"""The way to fewer workers: one at a time, the one with the fewest channels, once everything has settled."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ots_tunnel.model import ChannelStatus
from ots_tunnel_operator import names
from ots_tunnel_operator.plan.actions import ApplyObject, MarkPod, SetReplicas
from ots_tunnel_operator.plan.scaling import Course, course, longest_seconds
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.world.absence import Failure
from ots_tunnel_operator.world.service import Tunnel
from ots_tunnel_operator.world.world import Settling, World
from tests.support.operator.worlds import (
    NOW,
    channel,
    deployment,
    description,
    planned,
    pod,
    recorded,
    report_channel,
    reported,
    resource,
    world,
)

CALM = Settling(calm_seconds=10.0)
#: Four workers: a has three channels, b two, c one and d two; d is younger than b.
OWNERS = "aaabbcdd"
PODS = tuple(
    pod(f"pod-{name}", *(report_channel(f"{name}-{one}") for one in range(OWNERS.count(name))), created=NOW - age)
    for name, age in (("a", 900), ("b", 900), ("c", 900), ("d", 100))
)


def four(wanted: int, settling: Settling = CALM, **changes: Any) -> World:
    """Four workers, of which fewer are wanted."""
    channels = (channel(f"c{number}", client=f"01234567-pod-{owner}") for number, owner in enumerate(OWNERS))
    of = resource(recorded(), replicas=wanted)
    tunnel = Tunnel(description(*channels))
    return replace(world(of, children=deployment(4), pods=PODS, tunnel=tunnel, settling=settling), **changes)


def marked(*wanted: str, cost: str = names.LEAVES_NEXT) -> tuple[Any, ...]:
    return tuple(replace(one, deletion_cost=cost) if one.name in wanted else one for one in PODS)


def test_the_worker_with_the_fewest_channels_is_named_before_the_number_falls_by_one() -> None:
    first = course(four(1), 1)
    second = course(four(1, pods=marked("pod-c")), 1)

    assert first == Course(4, (MarkPod("pod-c", names.LEAVES_NEXT),), "pod-c is the next to go")
    assert second == Course(3)


def test_of_two_with_as_many_channels_the_younger_one_goes() -> None:
    without_c = tuple(one for one in PODS if one.name != "pod-c")

    assert course(four(1, pods=without_c, children=deployment(3)), 1).marks == (MarkPod("pod-d", names.LEAVES_NEXT),)


def test_nothing_happens_before_channels_have_settled() -> None:
    moving = course(four(1, Settling("channels are moving between workers", stuck_seconds=9.0)), 1)
    resting = course(four(1, Settling(calm_seconds=9.0)), 1)

    assert moving == Course(4, waits="channels are moving between workers")
    assert resting == Course(4, waits="channels have to rest for a heartbeat")


def test_what_does_not_settle_in_time_does_not_hold_the_next_step() -> None:
    longest = longest_seconds(resource().spec)
    stuck = Settling("a worker is draining", stuck_seconds=float(longest))

    assert longest == 60 + 60 + 30 + 30
    found = course(four(1, stuck, pods=marked("pod-c")), 1)
    assert found.replicas == 3
    assert found.warning is not None
    assert found.warning.reason == "ChannelsUnsettled"
    assert found.warning.message.endswith("within 180 s: a worker is draining")
    assert planned(four(1, stuck, pods=marked("pod-c"))).warning == found.warning
    assert course(four(1, replace(stuck, stuck_seconds=longest - 0.1), pods=marked("pod-c")), 1).replicas == 4


@pytest.mark.parametrize("wanted", [4, 6])
def test_a_number_that_rises_again_is_followed_at_once(wanted: int) -> None:
    moving = Settling("a worker is draining")

    assert course(four(wanted, moving, pods=marked("pod-c")), wanted) == Course(wanted, (MarkPod("pod-c", None),))
    # an object that is as wanted costs no write
    assert course(four(wanted, moving), wanted) == Course(wanted)


def test_a_pod_that_stays_gets_back_the_cost_of_its_template() -> None:
    children = deployment(4)
    annotations = {names.ANNOTATION_DELETION_COST: 7}
    children["Deployment", "flights-copy"]["spec"]["template"] = {"metadata": {"annotations": annotations}}

    assert course(four(4, pods=marked("pod-c"), children=children), 4).marks == (MarkPod("pod-c", "7"),)


def test_a_cost_of_a_person_stays() -> None:
    assert course(four(4, pods=marked("pod-c", cost="-5")), 4).marks == ()


def test_where_another_worker_has_fewer_channels_by_now_it_is_named_instead() -> None:
    assert course(four(1, pods=marked("pod-a")), 1).marks == (
        MarkPod("pod-a", None),
        MarkPod("pod-c", names.LEAVES_NEXT),
    )


def test_none_is_reached_at_once() -> None:
    assert course(four(0, Settling("a worker is draining"), pods=marked("pod-c")), 0) == Course(0)


def test_without_a_deployment_the_wanted_number_is_made_at_once() -> None:
    assert course(four(2, children={}, pods=()), 2) == Course(2)


def test_pods_that_do_no_work_go_without_waiting() -> None:
    starting = tuple(replace(one, ready=False, report=None) for one in (pod("pod-e"), pod("pod-f")))
    six = four(1, Settling("pods are being created or removed"), pods=(*PODS, *starting), children=deployment(6))

    assert course(six, 1) == Course(4)
    assert course(replace(six, pods=PODS[:2], children=deployment(6)), 1) == Course(2)
    assert course(six, 5) == Course(5)


def test_a_worker_that_is_not_ready_and_owns_channels_goes_first_once_they_have_settled() -> None:
    unready = (replace(PODS[0], ready=False, report=None), *PODS[1:])

    assert course(four(1, Settling("x"), pods=unready), 1).replicas == 4
    assert course(four(1, pods=unready), 1).marks == (MarkPod("pod-a", names.LEAVES_NEXT),)


def test_while_the_tunnel_cannot_be_read_the_workers_tell_what_they_have() -> None:
    blind = four(1, tunnel=Failure(Problem(Reason.SERVICE_UNAVAILABLE, "busy")))

    assert course(blind, 1).marks == (MarkPod("pod-c", names.LEAVES_NEXT),)
    silent = replace(blind, pods=tuple(replace(one, ready=False, report=None) for one in PODS))
    assert course(silent, 1).replicas == 4, "nobody knows what they own"


def test_a_leaving_worker_is_named_no_more() -> None:
    leaving = tuple(replace(one, deleting=True, ready=False) if one.name == "pod-c" else one for one in PODS)
    found = course(four(1, pods=leaving, children=deployment(3)), 1)

    assert found.marks == (MarkPod("pod-d", names.LEAVES_NEXT),)


def test_the_plan_names_the_worker_before_it_applies_the_number() -> None:
    first, second = planned(four(1)), planned(four(1, pods=marked("pod-c")))

    assert isinstance(first.actions[0], MarkPod)
    assert [_replicas(one) for one in (first, second)] == [4, 3]
    assert (first.replicas, second.replicas) == (1, 1)
    assert first.wait is not None
    assert first.wait.message == "from 4 to 1 workers, one at a time: pod-c is the next to go"


@pytest.mark.parametrize("reason", ["NameConflict", "ApiServerRefused"])
def test_the_number_follows_although_what_the_workers_need_is_refused(reason: str) -> None:
    """ServiceAccount, NetworkPolicy and ConfigMap come before the Deployment, and a refusal ends the pass."""
    refused = [{"type": "Ready", "status": "False", "reason": reason}]
    second = four(1, pods=marked("pod-c"))
    again = replace(second, resource=resource(recorded(conditions=refused), replicas=1))

    assert planned(again).actions[0] == SetReplicas(3)
    assert SetReplicas(3) not in planned(second).actions, "one write is enough otherwise"
    as_wanted = replace(second, resource=resource(recorded(conditions=refused), replicas=4))
    assert not any(isinstance(one, SetReplicas) for one in planned(as_wanted).actions)


def test_the_status_says_what_the_next_step_waits_for() -> None:
    status = reported(four(1, Settling("channels are moving between workers")))
    progressing = next(item for item in status["conditions"] if item["type"] == "Progressing")

    assert (progressing["status"], progressing["reason"]) == ("True", "Scaling")
    assert progressing["message"].startswith(
        "from 4 to 1 workers, one at a time: channels are moving between workers; see "
    )


def test_a_channel_that_moves_keeps_its_owner_in_mind() -> None:
    """A CLOSING channel still belongs to its worker."""
    channels = [channel("c1", ChannelStatus.CLOSING, client="01234567-pod-a")]
    found = four(1, tunnel=Tunnel(description(*channels)), pods=PODS[:2], children=deployment(2))

    assert course(found, 1).marks == (MarkPod("pod-b", names.LEAVES_NEXT),)


def _replicas(plan: Any) -> int:
    manifests = [one.manifest for one in plan.actions if isinstance(one, ApplyObject)]
    return int(next(one["spec"]["replicas"] for one in manifests if one["kind"] == "Deployment"))
