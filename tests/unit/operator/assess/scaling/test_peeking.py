"""Whose channels are looked at without a client, and what the looks say together."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ots_tunnel.model import ChannelStatus, Stage
from ots_tunnel_operator.assess.scaling.peeking import due, is_peeking, is_read_to_its_end, peeked
from ots_tunnel_operator.autoscale.history import History, Idle
from ots_tunnel_operator.autoscale.peeked import Peeked
from ots_tunnel_operator.world.absence import Unread
from ots_tunnel_operator.world.service import Peek, Tunnel
from ots_tunnel_operator.world.world import World
from tests.support.operator.scaled_worlds import sleeper
from tests.support.operator.spark_worlds import SPARK
from tests.support.operator.worlds import NOW, base, channel, description, pod, recorded, resource, world

LONG_IDLE = History(idle=Idle(NOW - 1800, 0))
COMPLETED = {"type": "Completed", "status": "True"}


@pytest.mark.parametrize(
    ("of", "looks"),
    [
        (sleeper(), True),
        (sleeper(mode="Advise"), False),
        (sleeper(autoscaling={"minReplicas": 1, "scaleToZero": {"enabled": False}}), False),
        (sleeper(suspend=True), True),
        (sleeper(suspend=True, pods=(pod(),)), False),
        (sleeper(suspend=True, deleted=True), False),
        (sleeper(replicas=0), True),
        (world(resource(recorded(), replicas=0), pods=()), True),
        (world(resource(recorded(conditions=[COMPLETED]), replicas=0), pods=()), False),
        (world(resource(recorded(), replicas=0, **SPARK), pods=()), False),
        (world(resource(recorded(snapshot={"state": "Completed"}), replicas=0, **SPARK), pods=()), True),
        (sleeper(tunnel=Unread()), False),
        (sleeper(tunnel=Tunnel(description(channel("c1"), stage=Stage.INIT))), False),
        (sleeper(tunnel=Tunnel(description(base("b1"), stage=Stage.BASE))), False),
        (sleeper(tunnel=Tunnel(description(channel("c1"), tunnel_id="another"))), False),
        (sleeper(status={"desiredReplicas": 1, "specReplicas": 1}), False),
        (sleeper(status={"desiredReplicas": 1, "specReplicas": 1}, scaling=LONG_IDLE), True),
        (sleeper(status={"desiredReplicas": 2, "specReplicas": 1}, scaling=LONG_IDLE), False),
        (sleeper(deleted=True), False),
        (world(), False),
    ],
)
def test_who_is_looked_at(of: World, looks: bool) -> None:
    assert is_peeking(of) is looks


def channels(*peeks: Peek | None, **changes: Any) -> World:
    names = [f"c{number}" for number in range(len(peeks))]
    listed = (*(channel(name, ChannelStatus.CLOSE) for name in names), channel("old", ChannelStatus.TERMINATED))
    found = {name: peek for name, peek in zip(names, peeks, strict=True) if peek is not None}
    return sleeper(tunnel=Tunnel(description(*listed)), peeks=found, **changes)


def test_the_oldest_looks_are_repeated_first_and_after_the_interval_alone() -> None:
    of = channels(Peek(NOW - 301, False), Peek(NOW - 299, False), None, Peek(NOW - 400, False))

    assert due(of) == ("c2", "c3", "c0")
    assert due(replace(of, tunnel=Unread())) == ()
    # without autoscaling the interval is its default
    assert due(world()) == ("c1",)
    assert due(world(peeks={"c1": Peek(NOW - 299, False)})) == ()


def test_a_look_at_every_channel_counts_from_the_oldest_on() -> None:
    assert peeked(channels(Peek(NOW - 5, False), Peek(NOW - 9, False))) == Peeked(NOW - 9)
    assert peeked(channels(Peek(NOW - 5, False), None)) == Peeked()
    assert peeked(channels(peek_failure="refused")) == Peeked(None, "", "refused")
    assert peeked(sleeper(tunnel=Unread())) is None


def test_one_channel_that_has_something_to_read_is_enough() -> None:
    assert peeked(channels(None, Peek(NOW - 5, True), Peek(NOW, True))) == Peeked(None, "c1")


@pytest.mark.parametrize(
    ("looks", "is_read"),
    [
        ((Peek(NOW - 5, False), Peek(NOW - 600, False)), True),
        ((Peek(NOW - 5, False), Peek(NOW - 601, False)), False),
        ((Peek(NOW - 5, False), None), False),
        ((Peek(NOW - 5, False), Peek(NOW - 5, True)), False),
    ],
    ids=["all of late", "one long ago", "one never", "one waits"],
)
def test_nothing_waits_where_every_channel_was_found_empty_of_late(
    looks: tuple[Peek | None, ...], is_read: bool
) -> None:
    assert is_read_to_its_end(channels(*looks)) is is_read
