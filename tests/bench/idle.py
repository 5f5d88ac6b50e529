"""CPU per minute and resident memory of workers that follow 100 idle channels; all contenders run at once."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from statistics import median

from tests.bench.bench_scene import DEADLINE, POLL
from tests.bench.consumers import Consumer, Lab
from tests.bench.contenders import Beat, Contender, Job
from tests.bench.figures import Figure

NAME = "idle"
TABLE = "quiet"
CHANNELS = 100
#: The vendor's defaults.
BEAT = Beat(heartbeat=30, timeout=300, checkpoint=10, longest_pause=5)
#: Each window contains one heartbeat.
WARM_UP, WINDOW = 30.0, 30.0
CONTENDERS = (Contender.OURS, Contender.JAVA_DEFAULT, Contender.GO_DEFAULT)
CPU_GOAL = 1.0
MEMORY_GOALS = {Contender.JAVA_DEFAULT: 5.0, Contender.GO_DEFAULT: 1 / 2.5}


@dataclass
class Idle:
    """All contenders at once, over a number of windows of time."""

    lab: Lab
    windows: int
    say: Callable[[str], None]
    _cpu: dict[Contender, float] = field(default_factory=dict)
    _memory: dict[Contender, float] = field(default_factory=dict)

    async def run(self) -> None:
        """Measure."""
        scene = self.lab.scene
        await scene.create_table(TABLE, CHANNELS)
        with ExitStack() as stack:
            consumers = {contender: await self._start(contender, stack) for contender in CONTENDERS}
            await asyncio.sleep(WARM_UP)
            used: dict[Contender, list[float]] = {
                contender: [consumer.cpu_seconds()] for contender, consumer in consumers.items()
            }
            for _ in range(self.windows):
                await asyncio.sleep(WINDOW)
                for contender, consumer in consumers.items():
                    used[contender].append(consumer.cpu_seconds())
            for contender, consumer in consumers.items():
                self._cpu[contender] = median(cpu_per_minute(used[contender], WINDOW))
                self._memory[contender] = consumer.resident_mb()
                await consumer.end()
                self.say(
                    f"idle, {contender}: {self._cpu[contender]:.2f} CPU s per minute, {self._memory[contender]:.0f} MB"
                )

    def figures(self) -> list[Figure]:
        """CPU and memory beside both peers."""
        settings = (
            f"{CHANNELS} channels, heartbeat {BEAT.heartbeat} s, checkpoint {BEAT.checkpoint} s, "
            f"pauses up to {BEAT.longest_pause:g} s"
        )
        found = []
        for contender, goal in MEMORY_GOALS.items():
            name = f"beside {contender} ({settings})"
            cpu, memory = self._cpu, self._memory
            found.append(Figure(f"idle, CPU, {name}", cpu[Contender.OURS], cpu[contender], "CPU s/minute", CPU_GOAL))
            found.append(
                Figure(f"idle, memory, {name}", memory[Contender.OURS], memory[contender], "MB resident", goal)
            )
        return found

    async def _start(self, contender: Contender, stack: ExitStack) -> Consumer:
        scene = self.lab.scene
        tunnel = await scene.create_tunnel(TABLE)
        consumer = stack.enter_context(self.lab.consumer(contender, tunnel, Job("count", BEAT)))
        async with asyncio.timeout(DEADLINE):
            while not await scene.are_open(tunnel):
                consumer.check()
                await asyncio.sleep(POLL)
        return consumer


def cpu_per_minute(used: list[float], seconds: float) -> list[float]:
    """CPU seconds per minute of each window, from the CPU seconds at its bounds."""
    return [(after - before) * 60 / seconds for before, after in itertools.pairwise(used)]
