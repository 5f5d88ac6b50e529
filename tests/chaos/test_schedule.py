"""The schedule of a seed is always the same, and every seed has every kind of fault."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.chaos.schedule import LAST_STRIKE, LENGTH, PAUSE, WORKERS, Blow, plan

SEEDS = range(20)


def test_a_seed_is_always_the_same_schedule_and_others_differ() -> None:
    assert plan(3) == plan(3)
    assert len({plan(seed) for seed in SEEDS}) == len(SEEDS)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_seed_strikes_enough(seed: int) -> None:
    events = plan(seed)
    counts = Counter(event.blow for event in events)

    assert [event.at for event in events] == sorted(event.at for event in events)
    assert counts[Blow.KILL] >= 4
    assert counts[Blow.PAUSE] >= 2
    assert counts[Blow.SPLIT] >= 3
    assert counts[Blow.MERGE] >= 3
    assert sum(counts.values()) - counts[Blow.KILL] - counts[Blow.PAUSE] > 30
    assert all(event.at < LENGTH for event in events)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_worker_is_always_up(seed: int) -> None:
    strikes = [event for event in plan(seed) if event.blow in (Blow.KILL, Blow.PAUSE)]

    for event in strikes:
        down = {other.worker for other in strikes if other.at <= event.at < other.at + other.seconds}
        assert len(down) < WORKERS
    assert max(event.at for event in strikes) < LAST_STRIKE
    assert all(event.seconds >= PAUSE[0] for event in strikes if event.blow is Blow.PAUSE)


def test_events_print_themselves() -> None:
    (kill, *_) = [event for event in plan(0) if event.blow is Blow.KILL]

    assert str(kill).endswith(f"kill -9 worker {kill.worker}, start it again after {kill.seconds:.1f} s")
