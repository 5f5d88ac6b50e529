"""Whether a worker has nothing left to read before the end time."""

from __future__ import annotations

import pytest

from ots_tunnel.stream.decide.completion import own_share_is_done
from ots_tunnel.stream.decide.sync import Listed
from ots_tunnel.stream.lease.lease import SHARD_END, TRIM_HORIZON, Lease, WorkerId
from ots_tunnel.stream.shards import ShardId

ME, OTHER = WorkerId("me"), WorkerId("other")
S1, S2 = ShardId("s1"), ShardId("s2")


def lease(shard: ShardId, owner: str = ME, *parents: ShardId, finished: bool = False) -> Lease:
    checkpoint = SHARD_END if finished else TRIM_HORIZON
    return Lease("stream", shard, owner=WorkerId(owner), checkpoint=checkpoint, parents=frozenset(parents))


@pytest.mark.parametrize(
    ("leases", "held", "stopped", "is_done"),
    [
        pytest.param((), set(), set(), False, id="no lease is known"),
        pytest.param((lease(S1),), {S1}, {S1}, True, id="stopped"),
        pytest.param((lease(S1),), {S1}, set(), False, id="being read"),
        pytest.param((lease(S1, finished=True), lease(S2)), {S1, S2}, {S2}, True, id="one is at its end"),
        pytest.param((lease(S1), lease(S2, ME, S1)), {S1, S2}, {S1}, True, id="the child of one that stopped"),
        pytest.param((lease(S1, finished=True), lease(S2, ME, S1)), {S1, S2}, set(), False, id="a child may start"),
        pytest.param((lease(S1, OTHER),), set(), set(), True, id="another worker's"),
        pytest.param((lease(S1, ""),), set(), set(), False, id="free"),
        pytest.param((lease(S1),), set(), set(), False, id="this worker's, and not held yet"),
        pytest.param((lease(S1, OTHER),), {S1}, set(), False, id="held, as far as this worker knows"),
    ],
)
def test_a_share_is_done(leases: tuple[Lease, ...], held: set[ShardId], stopped: set[ShardId], is_done: bool) -> None:
    known = {each.shard_id: each for each in leases}
    listed = Listed(frozenset(shard for shard, each in known.items() if each.is_finished), frozenset(known))

    assert own_share_is_done(ME, known, held, stopped, listed) is is_done


@pytest.mark.parametrize(
    ("ended", "shards", "is_done"),
    [
        pytest.param({S1}, {S1}, True, id="no child"),
        pytest.param(set(), {S1}, False, id="listed before the end of the parent"),
        pytest.param({S1}, {S1, S2}, False, id="a child without a lease"),
    ],
)
def test_children_of_a_shard_at_its_end_have_a_lease_first(
    ended: set[ShardId], shards: set[ShardId], is_done: bool
) -> None:
    listed = Listed(frozenset(ended), frozenset(shards))

    assert own_share_is_done(ME, {S1: lease(S1, finished=True)}, set(), set(), listed) is is_done
