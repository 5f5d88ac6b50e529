"""What a worker takes, asks for, gives away, starts and syncs: the cases of each decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from ots_tunnel.errors import CodecError
from ots_tunnel.stream.decide.handing_over import give_away, is_asked_for, to_pass_on
from ots_tunnel.stream.decide.share import Share, share_of
from ots_tunnel.stream.decide.sightings import Sighting, observe
from ots_tunnel.stream.decide.starting import to_confirm, waits_for
from ots_tunnel.stream.decide.sync import SyncPlan, plan_sync
from ots_tunnel.stream.decide.taking import is_given, to_steal, to_take
from ots_tunnel.stream.lease import change
from ots_tunnel.stream.lease.lease import SHARD_END, HalfLease, Lease, WorkerId
from ots_tunnel.stream.shards import Shard, ShardId

ME, A, B, C = (WorkerId(name) for name in ("me", "a", "b", "c"))
NOW, DURATION = 1000.0, 20.0
LIVE, EXPIRED = NOW, NOW - DURATION - 1


def shard(number: int) -> ShardId:
    return ShardId(f"s{number}")


def leases(*owners: WorkerId | str) -> list[Lease]:
    """Leases of these owners, in order."""
    return [Lease("s", shard(number), 5, WorkerId(owner)) for number, owner in enumerate(owners)]


def seen(*found: Lease, expired: Sequence[int] = ()) -> dict[ShardId, Sighting]:
    """Sightings of leases; the numbered ones have expired."""
    return {
        lease.shard_id: Sighting(lease, EXPIRED if number in expired else LIVE) for number, lease in enumerate(found)
    }


def in_order(found: Sequence[Lease]) -> Sequence[Lease]:
    return found


def numbers(found: Sequence[Lease]) -> list[int]:
    return [int(lease.shard_id[1:]) for lease in found]


class TestSightings:
    def test_a_lease_with_an_owner_is_new_for_a_full_duration(self) -> None:
        [sighting] = observe({}, leases(A), NOW).values()

        assert not sighting.is_expired(NOW + DURATION, DURATION)
        assert sighting.is_expired(NOW + DURATION + 0.1, DURATION)

    def test_a_lease_without_an_owner_is_free_at_once(self) -> None:
        known = observe({}, leases(A), NOW)

        for before in ({}, known):
            [sighting] = observe(before, [replace(leases("")[0], counter=6)], NOW).values()
            assert sighting.is_expired(NOW, DURATION)

    def test_a_counter_that_stands_keeps_its_time_and_one_that_moves_gets_a_new_one(self) -> None:
        [lease] = leases(A)
        first = observe({}, [lease], NOW)

        assert observe(first, [lease], NOW + 6)[lease.shard_id].since == NOW
        assert observe(first, [replace(lease, counter=6)], NOW + 6)[lease.shard_id].since == NOW + 6

    def test_a_mark_does_not_move_the_time(self) -> None:
        [lease] = leases(A)
        marked = replace(lease, stealer=B)

        assert observe(observe({}, [lease], NOW), [marked], NOW + 6) == {lease.shard_id: Sighting(marked, NOW)}

    def test_an_owner_of_a_lease_that_was_free_is_new(self) -> None:
        free, owned = leases("")[0], leases(A)[0]

        assert observe(observe({}, [free], NOW), [owned], NOW + 6)[owned.shard_id].since == NOW + 6

    def test_a_lease_that_was_created_because_there_was_none_is_free_at_once(self) -> None:
        new = Lease("s", ShardId("a"), created_ms=5, created_if_missing=True)

        first = observe({}, [new], NOW)
        [sighting] = observe(first, [new], NOW + 6).values()

        assert sighting.is_expired(NOW, DURATION)

    def test_a_row_that_may_stand_over_a_lease_in_use_is_free_when_it_has_stood_still(self) -> None:
        new = Lease("s", ShardId("a"), created_ms=5)

        first = observe({}, [new], NOW)
        [sighting] = observe(first, [new], NOW + 6).values()

        assert sighting.since == NOW

    @pytest.mark.parametrize("is_ours", [False, True])
    @pytest.mark.parametrize("owner", [A, WorkerId("")])
    def test_a_row_that_was_written_anew_is_free_when_it_has_stood_still_since(
        self, owner: WorkerId, is_ours: bool
    ) -> None:
        before = Lease("s", ShardId("a"), 7, owner, created_ms=5, created_if_missing=True)
        anew = Lease("s", ShardId("a"), created_ms=6, created_if_missing=is_ours)

        first = observe({}, [before], NOW - 30)
        [sighting] = observe(first, [anew], NOW).values()

        assert sighting.since == NOW

    def test_a_lease_that_is_gone_is_forgotten(self) -> None:
        assert observe(observe({}, leases(A), NOW), [], NOW) == {}


class TestShare:
    @pytest.mark.parametrize(
        ("owners", "target", "need"),
        [
            ([], 0, 0),
            ([ME], 1, 0),
            ([A, A, A, A, B, B, B], 3, 3),
            ([A, A, A, ME], 2, 1),
            ([A, A, A], 2, 2),
        ],
    )
    def test_leases_are_divided_among_the_owners_and_this_worker(
        self, owners: list[WorkerId], target: int, need: int
    ) -> None:
        share = share_of(ME, seen(*leases(*owners)), NOW, DURATION)

        assert (share.target, share.need) == (target, need)

    def test_expired_leases_and_those_with_a_thief_are_not_counted_and_finished_ones_are(self) -> None:
        found = leases(A, A, B, B, ME)
        found[1] = replace(found[1], stealer=C)
        found[3] = replace(found[3], checkpoint=SHARD_END)

        assert share_of(ME, seen(*found, expired=[2]), NOW, DURATION) == Share({ME: 1, A: 1, B: 1}, 2, 1)


class TestTaking:
    def test_as_many_expired_leases_are_taken_as_are_needed(self) -> None:
        sightings = seen(*leases(A, A, "", "", B, ME), expired=[2, 3, 4])

        assert numbers(to_take(ME, sightings, {shard(5)}, NOW, DURATION, in_order)) == [2, 3]

    def test_they_are_taken_in_the_given_order(self) -> None:
        sightings = seen(*leases(A, A, "", ""), expired=[2, 3])

        taken = to_take(ME, sightings, set(), NOW, DURATION, lambda found: list(reversed(found)))

        assert numbers(taken) == [3, 2]

    def test_what_was_handed_over_is_taken_even_without_a_need(self) -> None:
        found = leases(ME, ME, A, A, "")
        found[0] = replace(found[0], stealer=ME)
        found[1] = replace(found[1], stealer=ME)

        assert numbers(to_take(ME, seen(*found, expired=[4]), set(), NOW, DURATION, in_order)) == [0, 1, 4]
        assert numbers(to_take(A, seen(*found, expired=[4]), {shard(2), shard(3)}, NOW, DURATION, in_order)) == [4]
        assert is_given(ME, found[0])
        assert not is_given(A, found[0])

    def test_what_is_held_is_not_taken_again(self) -> None:
        found = leases(ME, ME)
        found[1] = replace(found[1], stealer=ME)

        assert to_take(ME, seen(*found, expired=[0]), {shard(0), shard(1)}, NOW, DURATION, in_order) == ()

    def test_what_is_owned_without_being_held_is_taken_and_counts_once(self) -> None:
        found = leases(ME, ME, ME, "", "", "")
        found[2] = replace(found[2], stealer=A)

        taken = to_take(ME, seen(*found, expired=[1, 3, 4, 5]), set(), NOW, DURATION, in_order)

        # One is counted as owned, the other one expired: four of six are needed besides, and three are there.
        assert numbers(taken) == [0, 1, 3, 4, 5]
        assert to_pass_on(ME, found, set()) == [change.transfer(found[2])]
        assert to_pass_on(ME, found, {shard(2)}) == []

    def test_what_is_on_its_way_lowers_the_need(self) -> None:
        found = leases(A, A, A, "")
        found[0] = replace(found[0], stealer=ME)

        assert numbers(to_take(ME, seen(*found, expired=[3]), set(), NOW, DURATION, in_order)) == [3]
        found[1] = replace(found[1], stealer=ME)
        assert to_take(ME, seen(*found, expired=[3]), set(), NOW, DURATION, in_order) == ()


class TestStealing:
    @pytest.mark.parametrize(
        ("owners", "found"),
        [
            ([A, A, A, A], 0),
            ([A, A, A, B, B, B, B], 3),
            ([A, A, A, ME], 0),
            ([A, A, B, B], 2),
            ([A, A, ME], None),
            ([A, A, B, B, ME], None),
            ([A, ME], None),
            ([ME, ME, ME], None),
            ([], None),
        ],
    )
    def test_one_lease_of_the_busiest_worker_is_asked_for(self, owners: list[WorkerId], found: int | None) -> None:
        stolen = to_steal(ME, seen(*leases(*owners)), 0, NOW, DURATION, in_order)

        assert stolen == (None if found is None else leases(*owners)[found])

    def test_not_one_that_another_worker_asked_for_or_that_has_expired(self) -> None:
        found = leases(A, A, A, A, A, A)
        found[0] = replace(found[0], stealer=B)

        assert to_steal(ME, seen(*found, expired=[1]), 0, NOW, DURATION, in_order) == found[2]

    def test_what_was_taken_and_what_is_on_its_way_lower_the_need(self) -> None:
        found = leases(A, A, A, A)

        assert to_steal(ME, seen(*found), 2, NOW, DURATION, in_order) is None
        found[0], found[1] = replace(found[0], stealer=ME), replace(found[1], stealer=ME)
        assert to_steal(ME, seen(*found), 0, NOW, DURATION, in_order) is None


class TestHandingOver:
    @pytest.mark.parametrize(
        ("listed", "asked"),
        [
            (Lease("s", shard(0), 5, ME), False),
            (Lease("s", shard(0), 5, ME, A), True),
            (Lease("s", shard(0), 6, ME, A), True),
            (Lease("s", shard(0), 4, ME, A), False),
            (Lease("s", shard(0), 5, ME, ME), False),
            (Lease("s", shard(0), 6, A, A), False),
        ],
    )
    def test_a_list_that_is_not_older_tells_of_a_thief(self, listed: Lease, asked: bool) -> None:
        assert is_asked_for(leases(ME)[0], listed) is asked

    def test_heirs_are_the_workers_with_fewest_leases(self) -> None:
        found = leases(ME, ME, ME, ME, A, A, B)
        mine = found[:4]

        changes = give_away(ME, mine, seen(*found), NOW, DURATION)

        assert [(each.kind, each.worker) for each in changes] == [
            (change.Kind.HAND_OVER, B),
            (change.Kind.HAND_OVER, A),
            (change.Kind.HAND_OVER, B),
            (change.Kind.HAND_OVER, A),
        ]
        assert [each.before for each in changes] == mine

    def test_the_share_of_a_worker_that_takes_released_leases_is_released(self) -> None:
        found = leases(ME, ME, ME, ME, A, B)
        found[4] = replace(found[4], takes_released=True)

        changes = give_away(ME, found[:4], seen(*found), NOW, DURATION)

        assert [(each.kind, each.worker) for each in changes] == [
            (change.Kind.RELEASE, ""),
            (change.Kind.HAND_OVER, B),
            (change.Kind.RELEASE, ""),
            (change.Kind.HAND_OVER, B),
        ]

    def test_a_thief_gets_what_it_asked_for_and_no_other_lease_for_that(self) -> None:
        found = leases(ME, ME, A)
        found[0] = replace(found[0], stealer=C)
        found[1] = replace(found[1], stealer=ME)

        changes = give_away(ME, found[:2], seen(*found), NOW, DURATION)

        assert [each.after.owner for each in changes] == [C, A]
        assert changes[0] == change.transfer(found[0])

    def test_a_thief_that_owns_leases_has_one_more(self) -> None:
        found = leases(ME, ME, A, B)
        found[0] = replace(found[0], stealer=A)

        assert [each.after.owner for each in give_away(ME, found[:2], seen(*found), NOW, DURATION)] == [A, B]

    def test_without_an_heir_that_lives_leases_are_released(self) -> None:
        found = leases(ME, A, B, "")
        found[1] = replace(found[1], stealer=A)  # handed over, and not taken yet

        changes = give_away(ME, found[:1], seen(*found, expired=[2, 3]), NOW, DURATION)

        assert changes == [change.release(found[0])]


class TestStarting:
    def test_a_shard_waits_until_every_parent_is_at_its_end_or_dropped(self) -> None:
        parents = [Lease("s", shard(number)) for number in (1, 2)]
        child = Lease("s", shard(3), parents=frozenset({shard(0), shard(1), shard(2)}))

        def waits(*found: Lease, half: Sequence[HalfLease] = ()) -> set[int]:
            return set(numbers([replace(child, shard_id=key) for key in waits_for(child, by_id(*found), half)]))

        assert waits(*parents) == {1, 2}
        assert waits(parents[0], replace(parents[1], checkpoint=SHARD_END)) == {1}
        assert waits(replace(parents[0], checkpoint=SHARD_END)) == set()
        assert waits() == set()
        assert waits(half=[HalfLease("s", shard(2), ("Checkpoint",))]) == {2}

    def test_a_parent_that_the_list_lacks_is_to_be_read_by_itself(self) -> None:
        child = Lease("s", shard(3), parents=frozenset({shard(0), shard(1), shard(2)}))
        half = [HalfLease("s", shard(2), ("Checkpoint",))]

        assert to_confirm(child, by_id(Lease("s", shard(1))), half) == {shard(0)}
        assert to_confirm(child, {}) == child.parents


def by_id(*found: Lease) -> dict[ShardId, Lease]:
    return {lease.shard_id: lease for lease in found}


class TestSync:
    def test_shards_without_a_lease_get_one_parents_first(self) -> None:
        shards = [
            Shard(shard(3), frozenset({shard(1), shard(2)})),
            Shard(shard(2), frozenset({shard(0)})),
            Shard(shard(1), frozenset({shard(0)})),
            Shard(shard(0), frozenset({ShardId("dropped")})),
        ]

        plan = plan_sync("s", [], [], shards)

        created = [lease for lease, _ in plan.create]
        assert created[0] == Lease("s", shard(0), parents=frozenset({ShardId("dropped")}))
        assert set(numbers(created[1:3])) == {1, 2}
        assert created[3] == Lease("s", shard(3), parents=frozenset({shard(1), shard(2)}))
        assert (plan.delete, plan.lost) == ((), ())

    def test_leases_of_dropped_shards_are_deleted_and_unfinished_ones_are_named(self) -> None:
        read, unread, kept = leases(A, "", B)
        read = replace(read, checkpoint=SHARD_END)

        plan = plan_sync("s", [read, unread, kept], [], [Shard(kept.shard_id)])

        assert plan == SyncPlan((), (read, unread), (unread,))

    def test_shards_behind_a_late_one_wait_for_its_lease(self) -> None:
        old = Lease("s", shard(1), checkpoint=SHARD_END, created_ms=0)
        shards = [Shard(shard(2), frozenset({shard(1)})), Shard(shard(4), frozenset({shard(2)})), Shard(shard(5))]
        shards.append(Shard(shard(6), frozenset({shard(4), shard(5)})))

        plan = plan_sync("s", [old], [], shards, kept_since=100_000.0)

        assert set(numbers(plan.late)) == {2, 5}
        assert plan.without_loss.create == ()
        assert set(numbers([lease for lease, _ in plan.create])) == {2, 4, 5, 6}

    def test_half_rows_become_whole_whether_or_not_their_shard_is_listed(self) -> None:
        listed, dropped = (HalfLease("s", shard(number), ("Checkpoint",)) for number in (1, 2))
        parents = frozenset({shard(0)})

        plan = plan_sync("s", leases(A), [listed, dropped], [Shard(shard(0)), Shard(shard(1), parents)])

        assert set(plan.create) == {
            (Lease("s", shard(1), parents=parents), listed),
            (Lease("s", shard(2)), dropped),
        }

    def test_an_empty_list_of_shards_deletes_nothing(self) -> None:
        with pytest.raises(CodecError, match="shards of stream 's': found none"):
            plan_sync("s", leases(A), [], [])

    def test_a_shard_that_is_its_own_ancestor_is_refused(self) -> None:
        circle = [Shard(shard(0), frozenset({shard(1)})), Shard(shard(1), frozenset({shard(0)}))]

        with pytest.raises(CodecError, match=r"found s\d -> s\d -> s\d, none is its own ancestor"):
            plan_sync("s", [], [], circle)
