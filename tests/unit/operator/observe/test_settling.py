"""Whether workers and channels are at rest, and how long looks have shown that."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ots_tunnel.model import ChannelStatus, Stage
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.observe.settling import observe_settling
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.world.absence import Failure
from ots_tunnel_operator.world.service import Tunnel
from ots_tunnel_operator.world.world import Settling, World
from tests.support.operator.worlds import NOW, base, channel, deployment, description, pod, report_channel, world

BUSY = Failure(Problem(Reason.SERVICE_UNAVAILABLE, "busy"))


def settling(of: World, cache: LoopCache | None = None, *, at: float = 0.0, described: float = 0.0) -> Settling:
    """What a look at a time says, with a description of another one; both in seconds after NOW."""
    cache = cache or LoopCache()
    cache.tunnel_time = NOW + described
    return observe_settling(replace(of, now=NOW + at), cache).settling


def tunnel(*channels: Any, **changes: Any) -> Tunnel:
    return Tunnel(description(*channels, **changes))


@pytest.mark.parametrize(
    ("changes", "moves"),
    [
        ({}, ""),
        ({"children": {}}, ""),
        ({"tunnel": BUSY}, "the tunnel could not be read"),
        ({"tunnel": tunnel(channel("c1", ChannelStatus.CLOSING))}, "channels are moving between workers"),
        ({"tunnel": tunnel(channel("c1", ChannelStatus.CLOSE, client=""))}, "channels are moving between workers"),
        ({"tunnel": tunnel(channel("c1", client="01234567-pod-9"))}, "channels are moving between workers"),
        # a child that waits for its parents never had an owner, and a base channel is read no more
        ({"tunnel": tunnel(channel("c1", ChannelStatus.WAIT, client=""))}, ""),
        ({"tunnel": tunnel(channel("c1"), base("b1", ChannelStatus.CLOSE, client=""))}, ""),
        ({"tunnel": tunnel(stage=Stage.INIT)}, ""),
        ({"children": deployment(2)}, ""),
        ({"children": deployment(2, replicas=1)}, "pods are being created or removed"),
        ({"children": deployment(1, replicas=2)}, "workers are being replaced"),
        ({"children": deployment(1, replicas=2, updatedReplicas=2)}, "pods are being created or removed"),
        ({"children": deployment(1, observedGeneration=0)}, "the Deployment is being changed"),
        ({"pods": (pod("pod-1", report_channel("c1")), pod("pod-2", deleting=True))}, "a worker is draining"),
        ({"pods": (pod("pod-1", report_channel("c1")), pod("pod-2", deleting=True, phase="Succeeded"))}, ""),
    ],
)
def test_what_moves(changes: dict[str, Any], moves: str) -> None:
    assert settling(world(**changes)).moves == moves


def test_calm_counts_only_until_the_last_description() -> None:
    cache = LoopCache()

    # the first look shows what was before the workers came to rest
    assert settling(world(), cache, at=20, described=8).calm_seconds == 0
    assert settling(world(), cache, at=21, described=8).calm_seconds == 0
    assert settling(world(), cache, at=23, described=23).calm_seconds == 3
    assert settling(world(), cache, at=38, described=38).calm_seconds == 18


def test_a_movement_ends_the_calm() -> None:
    cache, closing = LoopCache(), tunnel(channel("c1", ChannelStatus.CLOSING))
    settling(world(), cache, at=0, described=0)

    assert settling(world(tunnel=closing), cache, at=15, described=15) == Settling(
        "channels are moving between workers", stuck_seconds=0
    )
    assert settling(world(), cache, at=30, described=30) == Settling(calm_seconds=0)
    assert settling(world(), cache, at=45, described=45) == Settling(calm_seconds=15)


def test_a_worker_that_has_gone_between_two_looks_ends_the_calm() -> None:
    cache, one = LoopCache(), world()
    two = replace(one, pods=(*one.pods, pod("pod-2")), children=deployment(2))

    assert settling(two, cache, at=0, described=0).calm_seconds == 0
    assert settling(two, cache, at=15, described=15).calm_seconds == 15
    # it owned nothing, so that nothing else tells of it
    assert settling(one, cache, at=17, described=15).calm_seconds == 0
    assert settling(one, cache, at=30, described=30).calm_seconds == 13


def test_another_owner_ends_the_calm() -> None:
    cache = LoopCache()
    first = Tunnel(description(channel("c1")), same_since=NOW - 100)
    moved = Tunnel(description(channel("c1")), same_since=NOW + 15)

    assert settling(world(tunnel=first), cache, at=0, described=0).calm_seconds == 0
    assert settling(world(tunnel=first), cache, at=14, described=14).calm_seconds == 14
    assert settling(world(tunnel=moved), cache, at=15, described=15).calm_seconds == 0
    assert settling(world(tunnel=moved), cache, at=30, described=30).calm_seconds == 15


def test_it_is_stuck_since_a_pod_came_or_went_last() -> None:
    cache, moving = LoopCache(), deployment(2, replicas=1)
    first, second = pod("pod-1", report_channel("c1")), pod("pod-2", ready=False)

    assert settling(world(children=moving), cache, at=0).stuck_seconds == 0
    assert settling(world(children=moving), cache, at=40).stuck_seconds == 40
    assert settling(world(children=moving, pods=(first, second)), cache, at=50).stuck_seconds == 0
    gone = (first, replace(second, phase="Failed"))
    assert settling(world(children=moving, pods=gone), cache, at=60).stuck_seconds == 0
    assert settling(world(children=moving, pods=gone), cache, at=90).stuck_seconds == 30


def test_a_clock_that_is_set_back_takes_the_times_with_it() -> None:
    cache = LoopCache(time=NOW, calm=(frozenset(), NOW - 5), moving=(frozenset(), NOW - 7))

    cache.keep_time(NOW - 100)

    assert cache.calm == (frozenset(), NOW - 105)
    assert cache.moving == (frozenset(), NOW - 107)
