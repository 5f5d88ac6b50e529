"""The schedule of strikes and faults for a seed; pure, so that a failed run can be repeated.

python -m tests.chaos.schedule SEED     prints the schedule of a seed
"""

from __future__ import annotations

import enum
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

#: Seconds in which writers write and events happen.
LENGTH: Final = 120.0
#: The workers have shared the channels among them by then.
FIRST_STRIKE: Final = (11.0, 13.0)
#: The last worker is struck early enough for its channels to be free again before the writers stop.
LAST_STRIKE: Final = 102.0
WORKERS: Final = 4
#: Seconds between two strikes at workers, between two splits or merges, and between two faults of the service.
STRIKES, REPARTITIONS, FAULTS = (6.0, 9.0), (3.0, 6.0), (3.0, 7.0)
#: Longer than the heartbeat timeout, sometimes by more than the interval: the channels may or may not have a new owner.
PAUSE: Final = (15.0, 22.0)
#: Seconds until a killed worker is started again.
AWAY: Final = (0.5, 4.0)
#: Seconds after its return in which a worker is not struck: it has to hold channels again first.
RECOVERY: Final = 8.0


class Blow(enum.Enum):
    """One kind of strike or fault."""

    KILL = "kill -9 worker {worker}, start it again after {seconds:.1f} s"
    PAUSE = "stop worker {worker}, resume it after {seconds:.1f} s"
    SPLIT = "split the largest partition"
    MERGE = "merge the smallest partitions"
    CUT = "cut all connections"
    UNAVAILABLE = "answer 503 for {seconds:.1f} s"
    LOST_CHECKPOINTS = "lose the answers to {count} checkpoints"
    LOST_WRITES = "lose the answers to {count} writes"
    BUSY_ROWS = "refuse the first row of {count} writes temporarily"
    SLOW_WRITES = "delay {count} writes by {seconds:.1f} s"
    CUT_PAGES = "break off the answers to {count} reads"
    LOST_HEARTBEATS = "lose the answers to {count} heartbeats"


@dataclass(frozen=True, slots=True)
class Event:
    """A blow at a time, in seconds from the start; unused numbers are 0."""

    at: float
    blow: Blow
    worker: int = 0
    seconds: float = 0.0
    count: int = 0

    def __str__(self) -> str:
        text = self.blow.value.format(worker=self.worker, seconds=self.seconds, count=self.count)
        return f"{self.at:6.1f} s  {text}"


def plan(seed: int, length: float = LENGTH, last_strike: float = LAST_STRIKE) -> tuple[Event, ...]:
    """Everything that happens under a seed, in order of time; strikes alternate between kills and pauses by chance."""
    chance = random.Random(seed)
    events = [
        *_strikes(chance, last_strike),
        *_steadily(chance, REPARTITIONS, length, _repartition),
        *_steadily(chance, FAULTS, length, _fault),
    ]
    return tuple(sorted(events, key=lambda event: event.at))


def _strikes(chance: random.Random, until: float) -> list[Event]:
    """Kills and pauses; at least one worker is always up and not struck."""
    free_at = [0.0] * WORKERS
    events: list[Event] = []
    at = chance.uniform(*FIRST_STRIKE)
    # Every kind comes up in turn, in a new order each time, so that no seed leaves one out.
    kinds: list[Blow] = []
    while at < until:
        waiting = [worker for worker in range(WORKERS) if free_at[worker] <= at]
        if len(waiting) > 1:
            worker = chance.choice(waiting)
            if not kinds:
                kinds = chance.sample([Blow.KILL, Blow.KILL, Blow.PAUSE], 3)
            blow = kinds.pop()
            seconds = chance.uniform(*(AWAY if blow is Blow.KILL else PAUSE))
            events.append(Event(at, blow, worker=worker, seconds=seconds))
            free_at[worker] = at + seconds + RECOVERY
        at += chance.uniform(*STRIKES)
    return events


def _steadily(
    chance: random.Random, pause: tuple[float, float], until: float, make: Callable[[random.Random, float], Event]
) -> list[Event]:
    events: list[Event] = []
    at = chance.uniform(*pause)
    while at < until:
        events.append(make(chance, at))
        at += chance.uniform(*pause)
    return events


def _repartition(chance: random.Random, at: float) -> Event:
    return Event(at, chance.choice([Blow.SPLIT, Blow.MERGE]))


def _fault(chance: random.Random, at: float) -> Event:
    blow = chance.choice(
        [
            Blow.CUT,
            Blow.UNAVAILABLE,
            Blow.LOST_CHECKPOINTS,
            Blow.LOST_CHECKPOINTS,
            Blow.LOST_WRITES,
            Blow.BUSY_ROWS,
            Blow.SLOW_WRITES,
            Blow.CUT_PAGES,
            Blow.LOST_HEARTBEATS,
        ]
    )
    return Event(at, blow, seconds=chance.uniform(0.5, 2.0), count=chance.randint(1, 6))


if __name__ == "__main__":
    print(*plan(int(sys.argv[1])), sep="\n")
