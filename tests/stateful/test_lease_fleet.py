"""Promises of the decisions about leases, for any fleet: one owner, an owner soon, and an end of the moves."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ots_tunnel.stream.lease.lease import WorkerId
from tests.stateful.lease_fleet import DURATION, INTERVAL, LATENCY, Fleet, Worker

#: Most by which a clock runs fast or slow. An owner ends 23 % earlier than its lease.
SKEW = 0.08
#: A round: its pause, and a list, a few takes and a steal.
ROUND = INTERVAL / (1 - SKEW) + 8 * LATENCY
#: Seconds after which a shard has an owner: lease time and two rounds of a taker; and one in which a worker passes on
#: what it owns without holding it, to a worker that has asked for it and may have died since.
OWNED_WITHIN = DURATION / (1 - SKEW) + 3 * ROUND
#: Seconds of disruptions, and until nothing moves any more.
DISRUPTED, SETTLED = 180.0, 900.0


@dataclass(frozen=True)
class Disruption:
    """What happens to one of the workers that run then."""

    at: float
    kind: str
    which: int
    seconds: float


CLOCKS = st.tuples(st.floats(-1e6, 1e6), st.floats(1 - SKEW, 1 + SKEW))
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
    clocks=st.lists(CLOCKS, min_size=1, max_size=5),
    lost=st.sampled_from([0.0, 0.05, 0.3]),
    longest_batch=st.sampled_from([0.0, 5.0, 30.0]),
    disruptions=DISRUPTIONS,
)
@example(  # a worker that dies asks for a lease whose owner lets it expire, and no third one is there
    seed=9952,
    leases=10,
    clocks=[(0.0, 1.0), (0.0, 1.0), (0.0, 0.9375), (0.0, 1.0)],
    lost=0.3,
    longest_batch=0.0,
    disruptions=[Disruption(0.0, "crash", 3, 0.0), Disruption(0.0, "crash", 0, 0.0), Disruption(11.0, "crash", 0, 0.0)],
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
) -> None:
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

    while fleet.time < quiet + SETTLED:
        fleet.advance(fleet.time + 1)
        gaps = {shard: fleet.time - max(quiet, at) for shard, at in fleet.owned_at.items()}
        assert max(gaps.values()) <= OWNED_WITHIN + longest_batch
    assert fleet.overlaps == []
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
