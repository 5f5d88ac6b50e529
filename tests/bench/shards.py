"""Measure our worker of shards beside one of the vendor's Stream Client library, on one emulator and the same tables.

    python -m tests.bench.shards [--rounds N] [--minutes N] [--only count all idle] [--quick] [--output bench.json]

The emulator has one core, the worker another. Both workers run a processor of the same shape with the defaults of the
library, which are ours as well: it counts, or reads every column, and stores a checkpoint once a second while records
come. CPU seconds are those of the process between a mark and the last record, so that start and just-in-time
compilation do not count. Each run has a table of leases of its own, begins with the oldest change, and has to see every
record once. An idle worker follows a hundred shards without changes, alone: its requests are counted by the emulator.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import aiohttp

from tests.bench.bench_scene import CHANNELS, DEADLINE, BenchScene, bench_scene_on, record_bytes
from tests.bench.consumers import Consumer, check_count
from tests.bench.contenders import Contender, Job
from tests.bench.emulator_target import Goal
from tests.bench.figures import Figure, Rounds, Stretch, add_to_file
from tests.bench.start import MachineUnfit, built, options_of, parser_of, say, two_cores
from tests.bench.tables.goals import print_goals
from tests.bench.tables.speed import BESIDE_LIBRARY
from tests.bench.tables.speed import SHARDS as SHARDS_BEGIN
from tests.support.programs.java_program import QUICKEST_JVM, build_stream_client

CONTENDERS = (Contender.OURS, Contender.JAVA)
#: The goals of the works: how many times as many records per CPU second as the library.
WORKS = {"count": ("count", 5.0), "all": ("every column touched", 1.5)}
IDLE = "idle"
#: Rows at the mark and in all: the library's compiler is done after a million.
MARK, ROWS = 1_000_000, 2_000_000
QUICK = 20
SHARDS = 100
#: Seconds before an idle worker is measured, and of the measurement: ten looks for leases.
WARM_UP, WINDOW = 30.0, 60.0
#: How many times less an idle worker costs.
IDLE_GOAL = 10.0
SETTINGS = f"{CHANNELS} shards, PUT rows of {record_bytes()} bytes, pages of 1,000, checkpoint 1 s"
#: More calls than a run makes.
MANY = 1_000_000_000


@dataclass
class Bench:
    """The runs of both workers, and what they cost."""

    scene: BenchScene
    program: Path
    folder: Path
    core: int
    mark: int
    rows: int
    stretches: dict[tuple[str, Contender], list[Stretch]] = field(default_factory=lambda: defaultdict(list))
    idle_cpu: dict[Contender, list[float]] = field(default_factory=lambda: defaultdict(list))
    idle_calls: dict[Contender, list[float]] = field(default_factory=lambda: defaultdict(list))
    _runs: int = 0

    async def round(self, names: Sequence[str]) -> None:
        """Each work by each worker, once."""
        for name in names:
            for contender in CONTENDERS:
                if name == IDLE:
                    await self._idle(contender)
                else:
                    await self._work(name, contender)

    def figures(self, names: Sequence[str]) -> list[Figure]:
        """The medians beside the library's."""
        found = []
        for name, (words, goal) in WORKS.items():
            if name in names:
                cost = [median(each.cpu_per_million for each in self.stretches[name, who]) for who in CONTENDERS]
                found.append(self._figure(f"{words}, CPU", SETTINGS, cost, "CPU s/M rows", goal))
        if IDLE in names:
            for what, unit, used in (
                ("CPU", "CPU s/minute", self.idle_cpu),
                ("requests", "requests/s", self.idle_calls),
            ):
                cost = [median(used[who]) for who in CONTENDERS]
                found.append(self._figure(f"idle, {what}", f"{SHARDS} shards", cost, unit, IDLE_GOAL))
        return found

    def _figure(self, what: str, settings: str, cost: Sequence[float], unit: str, goal: float) -> Figure:
        name = f"{SHARDS_BEGIN}: {what}, {BESIDE_LIBRARY} ({settings})"
        return Figure(name, cost[0], cost[1], unit, goal)

    async def _work(self, name: str, contender: Contender) -> None:
        """One run over every change of the table.

        Raises:
            RuntimeError: the worker failed, or did not see every row once.
        """
        with self._consumer(contender, "changes", name, self.mark, self.rows) as consumer:
            await consumer.ended(DEADLINE)
        report = consumer.report()
        check_count(contender, Job(name), self.rows, report)
        stretch = Stretch.of(report)
        self.stretches[name, contender].append(stretch)
        cost = f"{stretch.cpu_per_million:.2f} CPU s per million"
        say(f"{name}, {contender}: {cost}, {stretch.rows_per_second:,.0f} rows/s")

    async def _idle(self, contender: Contender) -> None:
        """One worker beside a table that nothing changes."""
        with self._consumer(contender, "quiet", "count", 0, 0) as consumer:
            await asyncio.sleep(WARM_UP)
            calls, cpu, began = await self._calls(), consumer.cpu_seconds(), time.monotonic()
            await asyncio.sleep(WINDOW)
            consumer.check()
            seconds = time.monotonic() - began
            self.idle_calls[contender].append((calls - await self._calls()) / seconds)
            self.idle_cpu[contender].append((consumer.cpu_seconds() - cpu) * 60 / seconds)
        say(
            f"idle, {contender}: {self.idle_cpu[contender][-1]:.2f} CPU s per minute, "
            f"{self.idle_calls[contender][-1]:.1f} requests/s"
        )

    async def _calls(self) -> int:
        """Calls that are left of MANY: a rule without a fault counts them."""
        async with aiohttp.ClientSession() as session, session.get(f"{self.scene.admin_url}/faults") as answer:
            return int((await answer.json())["rules"][0]["count"])

    def _consumer(self, contender: Contender, table: str, mode: str, mark: int, rows: int) -> Consumer:
        self._runs += 1
        flags = {
            "endpoint": self.scene.endpoint,
            "instance": "demo",
            "key-id": "test-id",
            "key-secret": "test-secret",
            "table": table,
            "status-table": f"leases_{self._runs}",
            "mode": mode,
            "mark": mark,
            "rows": rows,
        }
        command = [sys.executable, "-m", "tests.bench.programs.shard_worker"]
        if contender is not Contender.OURS:
            command = ["env", f"JAVA_OPTIONS={QUICKEST_JVM}", str(self.program)]
        folder = self.folder / contender.name.lower()
        folder.mkdir(exist_ok=True)
        pinned = ["taskset", "--cpu-list", str(self.core), *command]
        return Consumer(contender, [*pinned, *(f"-{name}={value}" for name, value in flags.items())], folder)


async def _measure(names: Sequence[str], rounds: Rounds, program: Path, cores: tuple[int, int], divisor: int) -> Bench:
    with tempfile.TemporaryDirectory() as folder:
        async with bench_scene_on(cores[0]) as scene:
            bench = Bench(scene, program, Path(folder), cores[1], MARK // divisor, ROWS // divisor)
            if set(names) & WORKS.keys():
                await scene.create_source("changes", [bench.rows])
            if IDLE in names:
                await scene.create_table("quiet", SHARDS)
                rules = f"{scene.admin_url}/faults"
                async with aiohttp.ClientSession() as session, session.post(rules, json={"count": MANY}) as answer:
                    answer.raise_for_status()
            for _ in rounds:
                await bench.round(names)
            return bench


def main() -> int:
    """Measure, print, write the file."""
    options = options_of(parser_of(__doc__, [*WORKS, IDLE], minutes=20))
    try:
        cores = two_cores()
        program = built(build_stream_client)
    except MachineUnfit as reason:
        print(reason, file=sys.stderr)
        return 2
    os.sched_setaffinity(0, cores[:1])
    rounds = Rounds(options.rounds, options.minutes * 60, time.monotonic)
    bench = asyncio.run(_measure(options.only, rounds, program, cores, QUICK if options.quick else 1))
    figures = bench.figures(options.only)
    goals = [Goal(each.name, each.ratio, each.goal, "times better") for each in figures]
    print_goals(goals, "Shards without a tunnel", f"median of {rounds.begun}, load {os.getloadavg()[0]:.1f}")
    if not options.quick:
        add_to_file(options.output, (each.document() for each in figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
