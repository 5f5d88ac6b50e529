"""What a seed of a story with leases stands for."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from tests.simulation.faults import Fault, draw_faults
from tests.simulation.leases.faults import KINDS
from tests.simulation.replayable import Replayable


@dataclass(frozen=True, slots=True)
class LeasesScenario(Replayable):
    """One story's setting.

    Args:
        workers, java: how many workers are ours, and how many are of the Java library.
        sink: of ours: `tablestore`, or `python`.
        timeout, interval, take: duration of a lease, seconds between renewals and between looks for leases.
        length: seconds in which writers write.
        pause: longest time between two bursts of a writer.
        drain: seconds that it may take to hand the leases over.
    """

    happenings: ClassVar[str] = "faults"
    happening: ClassVar[type] = Fault
    prefix: ClassVar[str] = "leases:"

    workers: int = 2
    java: int = 1
    sink: str = "tablestore"
    partitions: int = 3
    keys: int = 16
    timeout: float = 20.0
    interval: float = 6.0
    take: float = 6.0
    sync: float = 10.0
    checkpoint_interval: float = 5.0
    lanes: int = 4
    page_rows: int = 20
    batch_rows: int = 200
    length: float = 300.0
    pause: float = 4.0
    burst: int = 8
    drain: int = 45
    faults: tuple[Fault, ...] = ()

    @classmethod
    def of(cls, seed: int) -> Self:
        """The scenario of a seed."""
        chance = random.Random(f"leases:{seed}")
        times = ((20.0, 6.0, 6.0), (20.0, 6.0, 6.0), (12.0, 3.0, 3.0), (30.0, 9.0, 6.0))
        timeout, interval, take = chance.choice(times)
        pause = chance.choice((2.0, 6.0, 20.0))
        settled = cls(
            seed,
            workers=chance.choice((1, 2, 2, 3)),
            java=chance.choice((0, 0, 1, 2)),
            sink=chance.choice(("tablestore", "tablestore", "tablestore", "python")),
            partitions=chance.choice((1, 2, 4, 6)),
            keys=chance.choice((4, 12, 40)),
            timeout=timeout,
            interval=interval,
            take=take,
            checkpoint_interval=chance.choice((0.5, 2.0, 5.0)),
            lanes=chance.choice((1, 4, 8)),
            page_rows=chance.choice((5, 20, 100)),
            batch_rows=chance.choice((3, 200)),
            length=float(chance.choice((200, 300, 500))),
            pause=pause,
            burst=max(1, round(pause * chance.uniform(0.3, 2.0))),
            drain=chance.choice((15, 45)),
        )
        count = chance.choice((3, 6, 12, 20))
        return replace(settled, faults=draw_faults(chance, 0.75 * settled.length, timeout, count, KINDS))
