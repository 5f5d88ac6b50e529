"""The figures of one look for the autoscaler."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ots_tunnel.model import ChannelInfo, ChannelStatus, Stage
from ots_tunnel_operator.assess.scaling.figures import figures
from ots_tunnel_operator.autoscale.figures import Figures
from ots_tunnel_operator.autoscale.peeked import Peeked
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world.absence import Unread
from ots_tunnel_operator.world.service import Tunnel
from ots_tunnel_operator.world.world import World
from tests.support.operator.scaled_worlds import scaled
from tests.support.operator.worlds import (
    NOW,
    assessed,
    base,
    channel,
    deployment,
    description,
    pod,
    report_channel,
)


def found_in(of: World, *, wanted: int = 2, ago: float | None = None) -> Figures:
    return figures(of, assessed(of).answered_lag, wanted, None if ago is None else NOW - ago)


def with_channels(*channels: Any, of: World | None = None) -> World:
    return replace(of or scaled(), tunnel=Tunnel(description(*channels)))


def test_a_settled_fleet() -> None:
    assert found_in(scaled(lag=90, busy=80)) == Figures(
        NOW,
        channels=8,
        lag=90.0,
        busy=0.8,
        rate=240.0,
        slowest="c7 of pod-1",
        rows=0,
        retention=100_000,
        peeked=Peeked(),
    )


def test_a_tunnel_that_was_not_read_or_lists_no_channel_yet_has_no_figures() -> None:
    unknown = Figures(NOW, None, None, None, None, retention=100_000)

    assert found_in(replace(scaled(), tunnel=Unread())) == unknown
    assert found_in(with_channels()) == unknown
    assert found_in(replace(scaled(), tunnel=Tunnel(description(channel("c0"), stage=Stage.INIT)))) == unknown


def test_while_existing_rows_are_read_their_channels_count() -> None:
    rows = base("b0", client="01234567-pod-0"), base("b1", ChannelStatus.TERMINATED), channel("c0", ChannelStatus.WAIT)

    found = found_in(replace(scaled(), tunnel=Tunnel(description(*rows, stage=Stage.BASE))))

    assert (found.copies_base, found.channels, found.lag) == (True, 1, None)


CHILDREN = [channel(f"child{number}", ChannelStatus.WAIT, client="") for number in range(8)]


@pytest.mark.parametrize(
    ("others", "channels"),
    [
        ([channel("c0"), channel("c1", ChannelStatus.CLOSE, client="")], 2),
        ([channel("c0", ChannelStatus.TERMINATED, client="")], 8),
        ([channel("c0"), channel("c1", ChannelStatus.WAIT, client="", consumed=NOW)], 2),
        ([channel("c0", ChannelStatus.WAIT, client="", consumed=NOW)], 1),
        ([], 8),
    ],
    ids=[
        "their parents are read",
        "their parents have ended",
        "one was consumed before",
        "their parent moves to another worker",
        "all are new",
    ],
)
def test_children_that_wait_for_their_parents_cannot_be_read(others: list[ChannelInfo], channels: int) -> None:
    """A worker for each of them would have nothing to do, and its scale-up would count as one of no use."""
    assert found_in(with_channels(*others, *CHILDREN)).channels == channels


def test_one_worker_whose_share_is_unknown_makes_the_mean_unknown() -> None:
    of = scaled()
    first = of.pods[0]
    assert first.report is not None
    starting = replace(first, report=replace(first.report, busy_percent=None, rows_per_second=None))

    found = found_in(replace(of, pods=(starting, of.pods[1])))

    assert (found.busy, found.rate) == (None, None)


def test_a_worker_that_does_not_answer_makes_everything_unknown() -> None:
    of = scaled(lag=10)

    found = found_in(replace(of, pods=(replace(of.pods[0], report=None), of.pods[1])))

    assert (found.lag, found.busy, found.rate) == (None, None, None)


def test_a_lag_that_no_worker_confirms_is_none() -> None:
    """Somebody else reads a channel of an idle table: its consume point stands still, and more workers do not help."""
    own, foreign = (
        channel("c0", client="01234567-pod-0", consumed=NOW),
        channel("c1", client="laptop", consumed=NOW - 90),
    )

    assert found_in(with_channels(own, foreign)).lag is None
    assert found_in(with_channels(own)).lag is not None


def test_workers_without_channels_do_not_count_as_idle() -> None:
    of = scaled(busy=80)

    found = found_in(replace(of, pods=(*of.pods, pod("pod-2")), children=deployment(3)), wanted=3)

    assert found.busy == pytest.approx(0.8)


def test_without_a_ready_worker_nothing_is_known_of_them() -> None:
    found = found_in(replace(scaled(), pods=()))

    assert (found.busy, found.rate) == (None, None)


@pytest.mark.parametrize(
    ("changes", "unsettled"),
    [
        ({"children": {}}, "the workers are being started"),
        ({"children": deployment(2, updatedReplicas=1)}, "the workers are being replaced"),
        ({"children": deployment(2, observedGeneration=0)}, "the workers are being replaced"),
        ({"children": deployment(3, updatedReplicas=3)}, ""),
    ],
)
def test_a_rollout_is_not_settled(changes: dict[str, Any], unsettled: str) -> None:
    assert found_in(replace(scaled(), **changes)).unsettled == unsettled


def waiting(age: float, **changes: Any) -> World:
    """A fleet of two workers, and a third that has not become ready for some time."""
    third = pod("pod-2", ready=False, created=NOW - age, **changes)
    return replace(scaled(), pods=(*scaled().pods, third), children=deployment(3))


def test_a_pod_that_does_not_start_is_not_waited_for_forever() -> None:
    """Otherwise a fleet that found no room on the nodes would never shrink again."""
    young, old = found_in(waiting(599.0), wanted=3), found_in(waiting(600.0), wanted=3)

    assert (young.missing, young.unsettled) == (0, "2 of 3 workers are ready")
    assert (old.missing, old.unsettled) == (1, "")


@pytest.mark.parametrize(
    ("since", "missing", "unsettled"),
    [(NOW - 600.0, 2, ""), (NOW - 599.0, 0, "2 of 4 workers are ready"), (None, 0, "2 of 4 workers are ready")],
)
def test_pods_that_a_quota_refuses_are_not_waited_for_forever(
    since: float | None, missing: int, unsettled: str
) -> None:
    time = {} if since is None else {"lastTransitionTime": timestamp(since)}
    progress = {"type": "Progressing", "status": "True"}
    refusal = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate"} | time
    of = replace(scaled(), children=deployment(2, conditions=[progress, refusal]))

    found = found_in(of, wanted=4)

    assert (found.missing, found.unsettled) == (missing, unsettled)


def test_a_fleet_that_lacks_another_pod_is_waited_for() -> None:
    assert found_in(waiting(600.0), wanted=4).unsettled == "2 of 4 workers are ready"


def test_a_pod_that_leaves_is_waited_for() -> None:
    found = found_in(waiting(600.0, deleting=True))

    assert (found.missing, found.unsettled) == (0, "2 of 2 workers are ready")


def test_pods_that_are_not_ready_are_not_settled() -> None:
    of = scaled()

    assert found_in(of, wanted=3).unsettled == "2 of 3 workers are ready"
    assert found_in(of, wanted=1).unsettled == "2 of 1 workers are ready"


@pytest.mark.parametrize(
    "moving",
    [
        channel("c0", ChannelStatus.CLOSING, client="01234567-pod-0", consumed=NOW),
        channel("c0", ChannelStatus.WAIT, client="", consumed=NOW),
        channel("c0", ChannelStatus.WAIT, client="", rows=5),
        channel("c0", ChannelStatus.OPEN, client="", consumed=NOW),
        channel("c0", ChannelStatus.CLOSE, client="", consumed=NOW),
        channel("c0", client="01234567-gone", consumed=NOW),
    ],
)
def test_channels_that_move_are_not_settled(moving: Any) -> None:
    assert found_in(with_channels(moving)).unsettled == "channels are moving to another worker"


def test_a_child_that_waits_for_its_parents_moves_nowhere() -> None:
    """The parents may be an hour behind, and that is when more workers are needed."""
    parent, child = channel("c0", client="01234567-pod-0", consumed=NOW), channel("c1", ChannelStatus.WAIT, client="")

    assert found_in(with_channels(parent, child)).unsettled == ""


def test_a_new_worker_without_a_channel_is_waited_for_and_not_forever() -> None:
    of = replace(scaled(), children=deployment(3))
    of = replace(of, pods=(*of.pods, pod("pod-2")))

    assert found_in(of, wanted=3, ago=99.0).unsettled == "a worker waits for its first channel"
    assert found_in(of, wanted=3, ago=100.0).unsettled == ""
    assert found_in(of, wanted=3).unsettled == ""


def test_more_workers_than_channels_are_settled() -> None:
    of = scaled(channels=1)

    assert found_in(replace(of, pods=(*of.pods, pod("pod-2"))), wanted=3, ago=5.0).unsettled == ""


def test_a_slow_channel_without_a_worker_is_named() -> None:
    of = with_channels(channel("c0", client="", consumed=NOW - 50), of=replace(scaled(), pods=(pod("pod-0"),)))

    assert found_in(of, wanted=1).slowest == "c0 of no worker"


def test_without_a_lag_no_channel_is_named() -> None:
    assert found_in(scaled()).slowest == ""
    assert report_channel("c0").caught_up
