"""The state of a channel that a shard has by its lease."""

from __future__ import annotations

from typing import Any

import pytest

from ots_tunnel.model import ChannelStatus, Stage, TunnelDescription
from ots_tunnel.protocol.movement import has_moved
from ots_tunnel.stream.decide.sightings import Sighting
from ots_tunnel.stream.lease.lease import SHARD_END, Lease, Position, WorkerId
from ots_tunnel.stream.shards import Shard, ShardId, StreamInfo
from ots_tunnel_operator.assess.lag import consumable, count_channels, is_initialised, readable
from ots_tunnel_operator.observe.shards.view import checkpoints, described

NOW, DURATION = 1000.0, 60.0
STREAM = StreamInfo("stream-1", "flights", 1)
READ = Position("an-iterator")


def lease(shard: str, owner: str = "", checkpoint: Position = READ, **changes: Any) -> Lease:
    return Lease("stream-1", ShardId(shard), 7, WorkerId(owner), checkpoint=checkpoint, **changes)


def shard(name: str, *parents: str) -> Shard:
    return Shard(ShardId(name), frozenset(map(ShardId, parents)))


def view(shards: list[Shard], *leases: Lease, age: float = 1.0) -> TunnelDescription:
    sightings = {each.shard_id: Sighting(each, NOW - age if each.owner else float("-inf")) for each in leases}
    return described(STREAM, shards, sightings, now=NOW, duration=DURATION)


def states(found: TunnelDescription) -> dict[str, tuple[str, str]]:
    return {str(each.channel_id): (each.status.name, str(each.client_id)) for each in found.channels}


@pytest.mark.parametrize(
    ("of", "age", "state"),
    [
        (lease("s", "w-1"), 1, ("OPEN", "w-1")),
        (lease("s", "w-1"), DURATION + 1, ("CLOSE", "")),
        (lease("s"), 1, ("CLOSE", "")),
        (lease("s", "w-1", stealer=WorkerId("w-2")), 1, ("CLOSING", "w-1")),
        # given by the former owner, and not taken yet
        (lease("s", "w-2", stealer=WorkerId("w-2")), 1, ("CLOSING", "w-2")),
        (lease("s", "w-1", SHARD_END), 1, ("TERMINATED", "")),
    ],
)
def test_the_lease_tells_state_and_owner(of: Lease, age: float, state: tuple[str, str]) -> None:
    assert states(view([shard("s")], of, age=age)) == {"s": state}


def test_a_shard_without_a_lease_may_be_taken() -> None:
    found = view([shard("s")])

    assert states(found) == {"s": ("CLOSE", "")}
    assert (count_channels(found).unowned, is_initialised(found)) == (1, True)


@pytest.mark.parametrize(
    ("parent", "child"),
    [
        (lease("p", "w-1"), "WAIT"),
        (None, "WAIT"),
        (lease("p", "w-1", SHARD_END), "OPEN"),
    ],
)
def test_a_child_waits_for_its_parent(parent: Lease | None, child: str) -> None:
    leases = [each for each in (parent, lease("c", "w-1", parents=frozenset({ShardId("p")}))) if each is not None]
    found = view([shard("p"), shard("c", "p")], *leases)

    assert states(found)["c"][0] == child
    # nobody reads what waits: it is neither owned nor missed
    assert states(found)["c"][1] == ("w-1" if child == "OPEN" else "")


def test_a_child_without_a_lease_waits_as_the_stream_lists_its_parents() -> None:
    found = view([shard("p"), shard("c", "p")], lease("p", "w-1"))

    assert states(found) == {"p": ("OPEN", "w-1"), "c": ("WAIT", "")}
    assert count_channels(found).unowned == 0
    assert [str(channel.channel_id) for channel in readable(found)] == ["p"]


def test_a_child_of_a_dropped_parent_starts() -> None:
    assert states(view([shard("c", "p")], lease("c", "w-1", parents=frozenset({ShardId("p")})))) == {
        "c": ("OPEN", "w-1")
    }


def test_a_shard_that_was_dropped_unread_is_listed_and_one_that_was_read_is_not() -> None:
    found = view([shard("s")], lease("s", "w-1"), lease("lost", "w-1"), lease("read", "w-1", SHARD_END))

    assert set(states(found)) == {"s", "lost"}


def test_the_stream_stands_for_the_tunnel() -> None:
    found = view([shard("s")], lease("s", "w-1"))

    assert (found.tunnel.tunnel_id, found.tunnel.table_name, found.tunnel.stage) == (
        "stream-1",
        "flights",
        Stage.STREAM,
    )
    assert [each.status for each in consumable(found)] == [ChannelStatus.OPEN]


@pytest.mark.parametrize(
    ("leases", "moved"),
    [
        ([], False),
        ([lease("s", checkpoint=Position("TRIM_HORIZON"))], False),
        ([lease("s", checkpoint=Position(""))], False),
        ([lease("s")], True),
        ([lease("s", checkpoint=SHARD_END)], True),
    ],
)
def test_checkpoints_tell_whether_anything_was_read(leases: list[Lease], moved: bool) -> None:
    assert has_moved(view([shard("s")], *leases), checkpoints(leases)) is moved
