"""What a seed stands for: a tunnel, workers, their settings, a load, and faults. As JSON it is a regression file."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from tests.simulation.faults import KINDS, Fault, draw_faults
from tests.simulation.replayable import Replayable

#: The least memory that a document may give a worker: room for the largest page alone.
LEAST_MEMORY_MIB = 16


@dataclass(frozen=True, slots=True)
class Scenario(Replayable):
    """One story's setting.

    Args:
        sink: `tablestore`, or `python` with manual checkpoints.
        tunnel: `Stream` or `BaseAndStream`.
        rows_per_second: limit of the delivery; 0 means none.
        length: seconds in which writers write.
        pause: longest time between two bursts of a writer.
        end: second of the end time, behind which nothing is copied; 0 means none.
        drain: seconds that it may take to hand the channels back; in a short one writes have to be abandoned.
        empty_reads: of so many reads of a stream that find records one is answered by an empty page that announces
            more; 0 means none.
        assign_interval: least seconds between two assignments of channels to clients.
        memory_mib: bytes of records in a worker's memory, in MiB.
    """

    happenings: ClassVar[str] = "faults"
    happening: ClassVar[type] = Fault
    prefix: ClassVar[str] = ""

    sink: str = "tablestore"
    tunnel: str = "Stream"
    workers: int = 2
    partitions: int = 2
    keys: int = 16
    interval: int = 10
    timeout: int = 60
    checkpoint_interval: float = 5.0
    lanes: int = 4
    max_parallel_channels: int = 0
    page_rows: int = 20
    batch_rows: int = 200
    rows_per_second: int = 0
    policy: str = "Fail"
    length: float = 400.0
    pause: float = 4.0
    burst: int = 12
    end: float = 0.0
    drain: int = 45
    empty_reads: int = 0
    assign_interval: float = 0.0
    memory_mib: int = 256
    faults: tuple[Fault, ...] = ()

    @classmethod
    def of(cls, seed: int) -> Self:
        """The scenario of a seed."""
        told = cls.drawn(seed)
        if seed % 20 == 5:
            return _stopped(told)
        return _starved(told) if seed % 10 == 9 else told

    @classmethod
    def drawn(cls, seed: int) -> Self:
        """A scenario by chance, for all kinds of stories of the data path."""
        chance = random.Random(f"scenario:{seed}")
        sink = chance.choice(("tablestore", "tablestore", "tablestore", "python"))
        interval, timeout = chance.choice(((10, 60), (10, 60), (5, 30), (5, 20)))
        pause = chance.choice((2.0, 6.0, 20.0))
        length = float(chance.choice((300, 500, 800)))
        settled = cls(
            seed,
            sink=sink,
            tunnel=chance.choice(("Stream", "BaseAndStream")),
            workers=chance.choice((1, 2, 2, 3)),
            partitions=chance.choice((1, 2, 3, 4)),
            keys=chance.choice((4, 12, 40)),
            interval=interval,
            timeout=timeout,
            checkpoint_interval=chance.choice((0.5, 2.0, 5.0)),
            lanes=chance.choice((1, 4, 8)),
            max_parallel_channels=chance.choice((0, 0, 0, 1)),
            page_rows=chance.choice((5, 20, 100)),
            batch_rows=chance.choice((3, 200)),
            rows_per_second=chance.choice((0, 0, 20)),
            policy=chance.choice(("Fail", "Skip")) if sink == "tablestore" else "Fail",
            length=length,
            pause=pause,
            # Two rows a second in the mean: most of a page's cost is per row, and faults find no more with more rows.
            burst=max(1, round(pause * chance.uniform(0.3, 2.0))),
        )
        if settled.workers == 1 and random.Random(f"heartbeats:{seed}").random() < 0.5:
            # the longest doubt beside the shortest interval: a channel comes back while its writes are under way
            settled = replace(settled, interval=5, timeout=60)
        end = random.Random(f"end:{seed}").choice((0.0, 0.0, 0.0, 0.0, 0.0, 0.4, 0.7, 0.95))
        settled = replace(settled, end=round(end * length, 1), drain=15 if seed % 2 else 45)
        if settled.end:
            settled = replace(settled, empty_reads=random.Random(f"empty reads:{seed}").choice((0, 0, 2, 5)))
        count = chance.choice((3, 6, 12, 20))
        told = replace(settled, faults=draw_faults(chance, 0.75 * length, settled.timeout, count))
        return _assigned_late(told) if settled.end and random.Random(f"assigned:{seed}").random() < 0.25 else told


def _stopped(scenario: Scenario) -> Scenario:
    """Workers are stopped with rows on their way, until others have their channels and the way is free again."""
    chance = random.Random(f"stopped:{scenario.seed}")
    workers = {"workers": 2, "partitions": 4, "interval": 5, "timeout": 30, "max_parallel_channels": 0}
    faults = tuple(KINDS["stopped"].draw(chance, "stopped", at, 30) for at in (30.0, 180.0))
    return replace(scenario, sink="tablestore", length=400.0, end=0.0, empty_reads=0, faults=faults, **workers)


def _starved(scenario: Scenario) -> Scenario:
    """A worker with the least memory reads several channels, whose answers stay away and come together."""
    chance = random.Random(f"starved:{scenario.seed}")
    times = sorted(chance.uniform(10, 200) for _ in range(2))
    return replace(
        scenario,
        sink="tablestore",
        tunnel="BaseAndStream",
        workers=1,
        partitions=4,
        keys=12,
        interval=10,
        timeout=60,
        max_parallel_channels=0,
        rows_per_second=0,
        length=300.0,
        end=0.0,
        empty_reads=0,
        assign_interval=0.0,
        memory_mib=LEAST_MEMORY_MIB,
        faults=tuple(KINDS["silence"].draw(chance, "silence", at, 60) for at in times),
    )


def _assigned_late(scenario: Scenario) -> Scenario:
    """A partition splits before the end time, and its children are given to a client long after it was read."""
    chance = random.Random(f"assigned late:{scenario.seed}")
    split = KINDS["split"].draw(chance, "split", max(5.0, scenario.end - chance.uniform(5, 60)), scenario.timeout)
    faults = tuple(sorted((*scenario.faults, split), key=lambda fault: fault.at))
    return replace(scenario, assign_interval=2.5 * scenario.timeout, faults=faults)
