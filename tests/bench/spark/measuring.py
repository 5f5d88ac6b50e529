"""All works on one emulator: tables, programs, and the entries of `bench.json`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.bench.bench_scene import BenchScene, record_bytes
from tests.bench.emulator_target import Goal
from tests.bench.figures import Figure
from tests.bench.spark.passes import FIRST_OF_STREAM, LARGE, SMALL, Cost, cost_of, passes_of, tables_of
from tests.bench.spark.rows import create_rows
from tests.bench.spark.session import SparkHost
from tests.bench.spark.works import KEYS, SparkWork
from tests.bench.start import say
from tests.bench.tables.speed import SPARK, SPARK_BESIDES
from tests.support.programs.go_program import ACCOUNT
from tests.support.programs.java_program import QUICKEST_JVM
from tests.support.programs.processes import inherited_environment

UNIT = "CPU s/M rows"
LOG = "changes"
#: Bytes of a split where several tasks read a table: the small one has two of them or more.
SPLIT = 16 << 20
SETTINGS = f"rows of {record_bytes()} bytes, one task, one partition, {SMALL:,} and {LARGE:,} rows"


class SparkBench:
    """All works on one emulator.

    Args:
        java: the program around the vendor's Java SDK.
        pairs: of a small and a large table, for each contender.
    """

    def __init__(self, scene: BenchScene, host: SparkHost, java: Path, pairs: int) -> None:
        self._scene, self._host, self._java, self._pairs = scene, host, java, pairs
        self._sizes: list[int] = []

    async def prepare(self, works: Sequence[SparkWork], sizes: list[int]) -> None:
        """Fill two tables, and the log of a third one, as far as works need them."""
        self._sizes = sizes
        if any(work.source == "table" for work in works):
            for name, rows in zip(("small", "large"), sizes, strict=True):
                say(f"writing {rows:,} rows into table {name}")
                await create_rows(self._scene, name, rows)
        if any(work.source == "tunnel" for work in works):
            say(f"writing {sizes[-1]:,} changes into table {LOG}")
            await self._scene.create_source(LOG, sizes, channels=1)

    async def measure(self, work: SparkWork) -> list[dict[str, object]]:
        """Entries of `bench.json`: our cost and its goals, and beside each peer."""
        ours = await self._spark(work)
        say(f"{work.words}: {ours.total:.2f} {UNIT}, {ours.python:.2f} of them Python")
        name = f"{SPARK}: {work.words}"
        found = [Goal(f"{name} ({SETTINGS})", ours.total, work.most, UNIT, at_least=False).document()]
        python = Goal(f"{name}, Python alone ({SETTINGS})", ours.python, work.most_python, UNIT, at_least=False)
        found.append(python.document())
        if work.most_growth is not None:
            found.append((await self._growth(work, work.most_growth)).document())
        for peer, command, environment in self._peers(work) if work.has_peers else ():
            passes = await asyncio.to_thread(
                passes_of, command, (self._host.core,), environment, len(tables_of(self._pairs, "", ""))
            )
            theirs = cost_of(passes)
            say(f"{work.words}, a loop in {peer}: {theirs.total:.2f} {UNIT}")
            found.append(
                Figure(f"{name}, beside a loop in {peer} ({SETTINGS})", ours.total, theirs.total, UNIT).document()
            )
        return found

    async def _growth(self, work: SparkWork, most: float) -> Goal:
        """What the rows cost with two tasks at a time, beside one after the other: the same tasks, on two cores."""
        one, two = [await self._spark(work, tasks, splitBytes=str(SPLIT)) for tasks in (1, 2)]
        say(f"{work.words}, two tasks at a time: {two.total:.2f} {UNIT} beside {one.total:.2f}")
        name = f"{SPARK_BESIDES}: CPU of two tasks at a time beside one, {work.words}"
        return Goal(f"{name} (splits of {SPLIT >> 20} MiB)", two.total / one.total, most, "times", at_least=False)

    async def _spark(self, work: SparkWork, tasks: int = 1, **options: str) -> Cost:
        if work.source == "tunnel":
            small, large = self._sizes
            rows = tables_of(self._pairs, str(small), str(large), work.warm)
            tunnels = [await self._scene.create_tunnel(LOG, int(each)) for each in rows]
            options |= {"table": LOG, "columns": ", ".join(f"{name} {kind}" for name, kind in work.declared)}
            runs, given = [each.name for each in tunnels], {"of": "tunnel", "first": FIRST_OF_STREAM}
        else:
            runs = tables_of(self._pairs, "small", "large")
            given = {"of": "table", "rows": dict(zip(("small", "large"), self._sizes, strict=True))}
        document = {
            **given,
            "kind": work.kind,
            "runs": runs,
            "schema": work.schema,
            "options": {**self._host.account(self._scene.endpoint), **options},
        }
        command = self._host.command("spark_program", f"{work.name}-{tasks}-{len(options)}", document)
        cores = (self._host.core,) if tasks == 1 else (self._host.server_core, self._host.core)
        passes = await asyncio.to_thread(passes_of, command, cores, self._host.environment(tasks), len(runs))
        return cost_of(passes, work.warm)

    def _peers(self, work: SparkWork) -> list[tuple[str, list[str], dict[str, str]]]:
        """Name, command and environment of each loop."""
        tables, endpoint = tables_of(self._pairs, "small", "large"), self._scene.endpoint
        columns = list(work.attributes) if len(work.columns) < len(KEYS) + len(work.attributes) else []
        python = [sys.executable, "-m", "tests.bench.programs.range_loop", endpoint, "demo", *tables]
        account = [f"-{name}={value}" for name, value in ACCOUNT.items()]
        java = [str(self._java), "scan", *account, f"-endpoint={endpoint}", f"-tables={','.join(tables)}"]
        java.append(f"-keys={','.join(KEYS)}")
        if columns:
            python += ["--columns", *columns]
            java.append(f"-columns={','.join(columns)}")
        plain = inherited_environment()
        return [("Python", python, plain), ("Java", java, {**plain, "JAVA_OPTIONS": QUICKEST_JVM})]
