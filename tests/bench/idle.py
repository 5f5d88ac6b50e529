"""Following 100 channels in which nothing happens: CPU per minute and resident memory, all sides at the same time."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from statistics import median

from tests.bench.consumers import Consumer, Lab
from tests.bench.figures import Figure
from tests.bench.sides import Beat, Job, Side
from tests.bench.stand import DEADLINE, POLL

NAME = "idle"
TABLE = "quiet"
CHANNELS = 100
#: The vendor's defaults.
BEAT = Beat(heartbeat=30, timeout=300, checkpoint=10, longest_pause=5)
#: One heartbeat is in each window.
WARM_UP, WINDOW = 30.0, 30.0
SIDES = (Side.OURS, Side.JAVA_DEFAULT, Side.GO_DEFAULT)
CPU_GOAL = 1.0
MEMORY_GOALS = {Side.JAVA_DEFAULT: 5.0, Side.GO_DEFAULT: 1 / 2.5}


@dataclass
class Idle:
    """All sides beside each other over so many windows of time."""

    lab: Lab
    windows: int
    say: Callable[[str], None]
    _cpu: dict[Side, float] = field(default_factory=dict)
    _memory: dict[Side, float] = field(default_factory=dict)

    async def run(self) -> None:
        """Measure."""
        stand = self.lab.stand
        await stand.create_table(TABLE, CHANNELS)
        with ExitStack() as stack:
            consumers = {side: await self._start(side, stack) for side in SIDES}
            await asyncio.sleep(WARM_UP)
            used: dict[Side, list[float]] = {side: [consumer.cpu_seconds()] for side, consumer in consumers.items()}
            for _ in range(self.windows):
                await asyncio.sleep(WINDOW)
                for side, consumer in consumers.items():
                    used[side].append(consumer.cpu_seconds())
            for side, consumer in consumers.items():
                self._cpu[side] = median(cpu_per_minute(used[side], WINDOW))
                self._memory[side] = consumer.resident_mb()
                await consumer.end()
                self.say(f"idle, {side}: {self._cpu[side]:.2f} CPU s per minute, {self._memory[side]:.0f} MB")

    def figures(self) -> list[Figure]:
        """CPU and memory beside both peers."""
        settings = (
            f"{CHANNELS} channels, heartbeat {BEAT.heartbeat} s, checkpoint {BEAT.checkpoint} s, "
            f"pauses up to {BEAT.longest_pause:g} s"
        )
        found = []
        for side, goal in MEMORY_GOALS.items():
            name = f"beside {side} ({settings})"
            cpu, memory = self._cpu, self._memory
            found.append(Figure(f"idle, CPU, {name}", cpu[Side.OURS], cpu[side], "CPU s/minute", CPU_GOAL))
            found.append(Figure(f"idle, memory, {name}", memory[Side.OURS], memory[side], "MB resident", goal))
        return found

    async def _start(self, side: Side, stack: ExitStack) -> Consumer:
        stand = self.lab.stand
        tunnel = await stand.create_tunnel(TABLE)
        consumer = stack.enter_context(self.lab.consumer(side, tunnel, Job("count", BEAT)))
        async with asyncio.timeout(DEADLINE):
            while not await stand.are_open(tunnel):
                consumer.check()
                await asyncio.sleep(POLL)
        return consumer


def cpu_per_minute(used: list[float], seconds: float) -> list[float]:
    """What each window of so many seconds took, from the CPU seconds at its bounds."""
    return [(after - before) * 60 / seconds for before, after in itertools.pairwise(used)]
