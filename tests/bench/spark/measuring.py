"""All works on one emulator: tables, programs, and the entries of `bench.json`."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from ots_tunnel.client.table_calls import RowChange
from ots_tunnel.model import Action, KeyColumn, KeyType
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.tables import TableSchema
from tests.bench.bench_scene import REQUEST_ROWS, BenchScene, key_of, record_bytes, row_of
from tests.bench.emulator_target import Goal
from tests.bench.figures import Figure
from tests.bench.spark.passes import LARGE, SMALL, Cost, cost_of, passes_of, tables_of
from tests.bench.spark.works import KEYS, SparkWork
from tests.bench.start import say
from tests.bench.tables.speed import SPARK
from tests.support.programs.go_program import ACCOUNT
from tests.support.programs.java_program import QUICKEST_JVM
from tests.support.programs.processes import inherited_environment

UNIT = "CPU s/M rows"
LOG = "changes"
SETTINGS = f"rows of {record_bytes()} bytes, one task, one partition, {SMALL:,} and {LARGE:,} rows"


class SparkBench:
    """All works on one emulator.

    Args:
        environment: of programs with Spark.
        java: the program around the vendor's Java SDK.
        pairs: of a small and a large table, for each contender.
    """

    def __init__(
        self, scene: BenchScene, folder: Path, environment: dict[str, str], java: Path, core: int, pairs: int
    ) -> None:
        self._scene, self._folder = scene, folder
        self._environment, self._java = environment, java
        self._core, self._pairs = core, pairs
        self._sizes: list[int] = []

    async def prepare(self, works: Sequence[SparkWork], sizes: list[int]) -> None:
        """Fill two tables, and the log of a third one, as far as works need them."""
        self._sizes = sizes
        if any(work.source == "table" for work in works):
            for name, rows in zip(("small", "large"), sizes, strict=True):
                say(f"writing {rows:,} rows into table {name}")
                await self._fill(name, rows)
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
        for peer, command, environment in self._peers(work) if work.has_peers else ():
            passes = await asyncio.to_thread(
                passes_of, command, self._core, environment, len(tables_of(self._pairs, "", ""))
            )
            theirs = cost_of(passes)
            say(f"{work.words}, a loop in {peer}: {theirs.total:.2f} {UNIT}")
            found.append(
                Figure(f"{name}, beside a loop in {peer} ({SETTINGS})", ours.total, theirs.total, UNIT).document()
            )
        return found

    async def _spark(self, work: SparkWork) -> Cost:
        if work.source == "tunnel":
            small, large = self._sizes
            rows = tables_of(self._pairs, str(small), str(large))
            tunnels = [await self._scene.create_tunnel(LOG, int(each)) for each in rows]
            options = {"table": LOG, "columns": ", ".join(f"{name} {kind}" for name, kind in work.declared)}
            runs, given = [each.name for each in tunnels], {"of": "tunnel", "options": options}
        else:
            runs = tables_of(self._pairs, "small", "large")
            given = {"of": "table", "options": {}, "rows": dict(zip(("small", "large"), self._sizes, strict=True))}
        account = {"endpoint": self._scene.endpoint, "instance": "demo", "credentialsDirectory": str(self._keys())}
        document = {
            **given,
            "kind": work.kind,
            "runs": runs,
            "schema": work.schema,
            "options": {**account, **given["options"]},
            "folder": str(self._folder / work.name),
        }
        (self._folder / work.name).mkdir()
        command = [sys.executable, "-m", "tests.bench.programs.spark_program", json.dumps(document)]
        return cost_of(await asyncio.to_thread(passes_of, command, self._core, self._environment, len(runs)))

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

    async def _fill(self, name: str, rows: int) -> None:
        schema = TableSchema(name, (KeyColumn("device", KeyType.STRING), KeyColumn("reading", KeyType.INTEGER)))
        await self._scene.create_empty(schema, channels=1)
        for start in range(0, rows, REQUEST_ROWS):
            numbers = range(start, min(start + REQUEST_ROWS, rows))
            changes = [RowChange(Action.PUT, encode_row(key_of(each), row_of(each))) for each in numbers]
            await self._scene.write(name, changes)

    def _keys(self) -> Path:
        folder = self._folder / "keys"
        folder.mkdir(exist_ok=True)
        (folder / "accessKeyId").write_text(ACCOUNT["key-id"])
        (folder / "accessKeySecret").write_text(ACCOUNT["key-secret"])
        return folder
