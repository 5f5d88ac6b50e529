"""Changes of a lease, and what a row tells of one that was not answered."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ots_tunnel.stream.lease import change
from ots_tunnel.stream.lease.change import Change
from ots_tunnel.stream.lease.lease import SHARD_END, HalfLease, Lease, Position, WorkerId
from ots_tunnel.stream.lease.settling import Settled, settle
from ots_tunnel.stream.shards import ShardId

ME, OTHER, THIRD = WorkerId("me"), WorkerId("other"), WorkerId("third")
FREE = Lease("s", ShardId("a"), 7)
MINE = replace(FREE, owner=ME)
THEIRS = replace(FREE, owner=OTHER)
ASKED = replace(MINE, stealer=OTHER)

AFTER = [
    (change.renew(MINE), replace(MINE, counter=8)),
    (change.renew(ASKED), replace(ASKED, counter=8)),
    (change.take(THEIRS, ME), replace(MINE, counter=8)),
    (change.take(replace(FREE, owner=ME, stealer=ME), ME), replace(MINE, counter=8)),
    (change.steal(THEIRS, ME), replace(THEIRS, stealer=ME)),
    (change.transfer(ASKED), replace(FREE, counter=8, owner=OTHER, stealer=OTHER)),
    (change.store(MINE, SHARD_END), replace(MINE, counter=8, checkpoint=SHARD_END)),
    (change.hand_over(MINE, OTHER), replace(FREE, counter=8, owner=OTHER, stealer=OTHER)),
    (change.release(ASKED), replace(FREE, counter=8)),
    (
        change.restore(replace(FREE, counter=0), replace(MINE, checkpoint=Position("i"))),
        replace(MINE, counter=8, checkpoint=Position("i")),
    ),
]
IDS = [f"{made.kind.value}, {made.before.owner}, {made.before.stealer}" for made, _ in AFTER]


@pytest.mark.parametrize(("made", "after"), AFTER, ids=IDS)
def test_a_change_leads_to(made: Change, after: Lease) -> None:
    assert made.after == after
    assert made.may_be_made_to(made.before)
    assert made.made_to(made.before) == after


def test_a_transfer_needs_a_stealer() -> None:
    with pytest.raises(ValueError, match="stealer of shard 'a': found none"):
        change.transfer(MINE)


def test_a_moved_counter_forbids_every_change_but_a_steal() -> None:
    for made, _ in AFTER:
        moved = replace(made.before, counter=8)

        assert made.may_be_made_to(moved) == (made.kind is change.Kind.STEAL)


def test_another_owner_forbids_every_change_also_where_the_counter_is_the_same_by_chance() -> None:
    for made, _ in AFTER:
        assert not made.may_be_made_to(replace(made.before, owner=THIRD))


@pytest.mark.parametrize("row", [replace(THEIRS, owner=THIRD), replace(THEIRS, stealer=THIRD)])
def test_a_steal_needs_the_owner_that_was_seen_and_no_other_thief(row: Lease) -> None:
    assert not change.steal(THEIRS, ME).may_be_made_to(row)


def test_a_renewal_leaves_the_mark_of_a_thief_that_came_meanwhile() -> None:
    assert change.renew(MINE).made_to(ASKED) == replace(ASKED, counter=8)


@pytest.mark.parametrize(("made", "after"), AFTER, ids=IDS)
def test_an_unanswered_change_is_settled_by_the_row(made: Change, after: Lease) -> None:
    assert settle(made, after) is Settled.MADE
    assert settle(made, made.before) is Settled.OPEN
    assert settle(made, None) is Settled.LOST
    assert settle(made, HalfLease("s", ShardId("a"), ("Checkpoint",))) is Settled.LOST
    assert settle(made, replace(after, counter=9, owner=THIRD, stealer=THIRD)) is Settled.LOST


@pytest.mark.parametrize(
    ("made", "row", "settled"),
    [
        (change.renew(MINE), replace(ASKED, counter=8), Settled.MADE),
        (change.store(MINE, Position("i")), replace(ASKED, counter=8, checkpoint=Position("i")), Settled.MADE),
        (change.store(MINE, Position("i")), replace(MINE, counter=8), Settled.LOST),
        (change.renew(MINE), replace(MINE, counter=8, owner=THIRD), Settled.LOST),
        # The owner handed it to me while I was about to take it: a completed steal, which I have not taken.
        (change.take(THEIRS, ME), replace(FREE, counter=8, owner=ME, stealer=ME), Settled.LOST),
        (change.steal(THEIRS, ME), replace(THEIRS, counter=12, stealer=ME), Settled.MADE),
        (change.steal(THEIRS, ME), replace(THEIRS, counter=12), Settled.OPEN),
        (change.steal(THEIRS, ME), replace(THEIRS, stealer=THIRD), Settled.LOST),
    ],
)
def test_what_another_worker_did_meanwhile_is_told_apart(made: Change, row: Lease, settled: Settled) -> None:
    assert settle(made, row) is settled
