"""Promises of the decisions about leases, for any fleet: one owner, an owner soon, and an end of the moves."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ots_tunnel.stream.lease.lease import NO_WORKER, WorkerId
from tests.stateful.lease_fleet import DURATION, INTERVAL, LATENCY, Fleet, Worker

#: Most by which a clock runs fast or slow. An owner ends 23 % earlier than its lease.
SKEW = 0.08
#: A round: its pause, and a list, a few takes and a steal.
ROUND = INTERVAL / (1 - SKEW) + 8 * LATENCY
#: Seconds after which a shard has an owner: lease time and two rounds of a taker. Where a hand-over is under way, its
#: batch comes on top: a worker that waits for a lease takes one fewer meanwhile.
OWNED_WITHIN = DURATION / (1 - SKEW) + 2 * ROUND
#: Seconds of disruptions, and until nothing moves any more.
DISRUPTED, SETTLED = 180.0, 900.0


@dataclass(frozen=True)
class Disruption:
    """What happens to one of the workers that run then."""

    at: float
    kind: str
    which: int
    seconds: float


OFFSETS = st.floats(-1e6, 1e6)
#: The clocks of a fleet: they run differently, or all alike.
CLOCKS = st.one_of(
    st.lists(st.tuples(OFFSETS, st.floats(1 - SKEW, 1 + SKEW)), min_size=1, max_size=5),
    st.lists(st.tuples(OFFSETS, st.just(1.0)), min_size=1, max_size=5),
)
DISRUPTIONS = st.lists(
    st.builds(
        Disruption,
        st.floats(0, DISRUPTED),
        st.sampled_from(["crash", "suspend", "stop", "join"]),
        st.integers(0, 4),
        st.floats(0, 60),
    ),
    max_size=6,
)


def disturb(fleet: Fleet, disruption: Disruption, clocks: list[tuple[float, float]]) -> None:
    running = [worker for worker in fleet.workers if worker.is_running and not worker.stopping]
    worker = running[disruption.which % len(running)]
    match disruption.kind:
        case "join":
            offset, rate = clocks[len(fleet.workers) % len(clocks)]
            fleet.add(Worker(fleet, WorkerId(f"worker-{len(fleet.workers)}"), offset, rate))
        case "suspend":
            worker.suspended_until = fleet.time + disruption.seconds
        case "crash" if len(running) > 1:
            worker.is_running = False
        case "stop" if len(running) > 1:
            worker.stopping = True


@given(
    seed=st.integers(0, 2**32),
    leases=st.integers(1, 12),
    clocks=CLOCKS,
    lost=st.sampled_from([0.0, 0.05, 0.3]),
    longest_batch=st.sampled_from([0.0, 5.0, 30.0]),
    disruptions=DISRUPTIONS,
    last_crash=st.floats(ROUND, 60),
)
@example(  # a worker that dies asks for a lease whose owner lets it expire, and no third one is there
    seed=9952,
    leases=10,
    clocks=[(0.0, 1.0), (0.0, 1.0), (0.0, 0.9375), (0.0, 1.0)],
    lost=0.3,
    longest_batch=0.0,
    disruptions=[Disruption(0.0, "crash", 3, 0.0), Disruption(0.0, "crash", 0, 0.0), Disruption(11.0, "crash", 0, 0.0)],
    last_crash=ROUND,
)
@settings(max_examples=60)
@pytest.mark.lasts(60)
@pytest.mark.timeout(300)
def test_any_fleet_keeps_its_promises(
    seed: int,
    leases: int,
    clocks: list[tuple[float, float]],
    lost: float,
    longest_batch: float,
    disruptions: list[Disruption],
    last_crash: float,
) -> None:
    """One worker more dies a round after all is quiet, so that an owner has to be found for its leases."""
    fleet = Fleet(leases, seed, lost=lost, longest_batch=longest_batch)
    for number, (offset, rate) in enumerate(clocks):
        fleet.add(Worker(fleet, WorkerId(f"worker-{number}"), offset, rate))
    for disruption in sorted(disruptions, key=lambda each: each.at):
        fleet.advance(disruption.at)
        disturb(fleet, disruption, clocks)
    # The last suspension is over, what was lost was answered, and who stops has stopped.
    quiet = DISRUPTED + 60 + max(longest_batch, 6.0) / (1 - SKEW)
    fleet.advance(quiet)
    fleet.lost = 0.0
    fleet.at(quiet + last_crash, lambda: disturb(fleet, Disruption(fleet.time, "crash", 0, 0.0), clocks))

    handing_over = 0.0
    while fleet.time < quiet + SETTLED:
        fleet.advance(fleet.time + 1)
        if any(lease.stealer not in (NO_WORKER, lease.owner) for lease in fleet.rows.values()):
            handing_over = fleet.time
        gaps = {shard: fleet.time - max(quiet, at) for shard, at in fleet.owned_at.items()}
        longest = max(gaps.values())
        assert longest <= OWNED_WITHIN + (longest_batch if handing_over >= fleet.time - longest else 0)
    assert fleet.overlaps == []
    if all(rate == 1 for _, rate in clocks):
        assert fleet.double_leases == []
    assert [at for at in fleet.moves if at > fleet.time - SETTLED / 2] == []
    counts = fleet.counts()
    working = [counts[worker.id] for worker in fleet.workers if worker.is_running and not worker.stopping]
    assert sum(working) == leases
    assert max(working) - min(working) <= 1


@given(
    seed=st.integers(0, 2**32),
    leases=st.integers(1, 12),
    kinds=st.lists(st.booleans(), min_size=2, max_size=5),
    longest_batch=st.sampled_from([0.0, 5.0, 30.0]),
)
@settings(max_examples=40)
@pytest.mark.lasts(30)
@pytest.mark.timeout(300)
def test_moves_end_beside_workers_of_the_java_library(
    seed: int, leases: int, kinds: list[bool], longest_batch: float
) -> None:
    fleet = Fleet(leases, seed, longest_batch=longest_batch)
    for number, java in enumerate(kinds):
        fleet.add(Worker(fleet, WorkerId(f"worker-{number}"), offset=number * 1000.0, java=java))
        fleet.advance(fleet.time + 40)

    fleet.advance(fleet.time + SETTLED)

    assert [at for at in fleet.moves if at > fleet.time - SETTLED / 2] == []
    counts = fleet.counts()
    assert sum(counts.values()) == leases
    assert max(counts.values()) - min(counts.values()) <= 1


def test_a_worker_that_stops_leaves_its_leases_to_the_others_within_two_rounds() -> None:
    fleet = Fleet(6, 1)
    first, second = (fleet.add(Worker(fleet, WorkerId(name))) for name in ("first", "second"))
    fleet.advance(120)
    assert fleet.counts() == {"first": 3, "second": 3}

    second.stopping = True
    fleet.advance(120 + fleet.longest_batch + 2 * ROUND)

    assert second.held == {}
    assert all(first.owns(shard) for shard in fleet.rows)


def test_a_crashed_workers_leases_are_taken_after_their_time() -> None:
    fleet = Fleet(6, 1)
    first, second = (fleet.add(Worker(fleet, WorkerId(name))) for name in ("first", "second"))
    fleet.advance(120)
    lost = set(second.held)

    second.is_running = False
    fleet.advance(120 + DURATION - INTERVAL - 1)
    assert not any(first.owns(shard) for shard in lost)
    fleet.advance(120 + OWNED_WITHIN)

    assert all(first.owns(shard) for shard in fleet.rows)


def test_a_paused_workers_leases_live_no_more_when_they_are_taken() -> None:
    """Their whole time is over, where the clocks run equally fast: whenever the others look, and the pause begins."""
    for number in range(80):
        fleet = Fleet(6, number)
        paused = fleet.add(Worker(fleet, WorkerId("paused")))
        fleet.advance(number * 0.31)
        other = fleet.add(Worker(fleet, WorkerId("other"), offset=1e6))
        begin = 120 + number * 0.7
        fleet.advance(begin)
        paused.suspended_until = begin + 50

        fleet.advance(begin + 50)

        assert all(other.owns(shard) for shard in fleet.rows)
        assert fleet.double_leases == []
