"""Streams into Delta tables, in processes of their own that are killed between Delta's commit and Spark's."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from ots_emulator import Emulator
from ots_tunnel.client.sync_table import SyncTableClient
from ots_tunnel.client.sync_tunnel import SyncTunnelClient
from ots_tunnel.client.table_calls import RowChange
from ots_tunnel.model import Action, Marker, PrimaryKey, Stage, TunnelType
from ots_tunnel.protocol.plainbuffer.codec import decode_rows, encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.query.settings import KEPT_CLASSES
from ots_tunnel.tables import TableAdmin, TableSchema
from tests.spark.conftest import CREDENTIALS, KEYS
from tests.support.lacking import lack
from tests.support.lake.lake_jars import JarsUnavailable, lake_jars
from tests.support.lake.one_version_changes import Changes
from tests.support.programs.processes import inherited_environment
from tests.support.waiting import wait_until

# each run is a process of its own with its own JVM; the group lets one run at a time
# each starts sessions of Spark with Delta, which take 20 s each where nothing runs beside them
pytestmark = [pytest.mark.spark, pytest.mark.timeout(3600), pytest.mark.xdist_group("lake"), pytest.mark.lasts(500)]

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "docs" / "examples"
KEY_NAMES = tuple(key.name for key in KEYS)


@pytest.fixture(scope="session")
def submit_arguments() -> str:
    """Settings of Spark for a program of its own: Delta, nothing but loopback, a small JVM."""
    try:
        jars = lake_jars()
    except JarsUnavailable as reason:
        lack("javac", str(reason))
    settings = {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.driver.memory": "1g",
        **KEPT_CLASSES,
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.driver.extraJavaOptions": "'-XX:TieredStopAtLevel=1 -XX:+UseSerialGC'",
    }
    confs = " ".join(f"--conf {key}={value}" for key, value in settings.items())
    return f"--master local[2,2] --jars {jars} {confs} pyspark-shell"


class Source:
    """The table `flights`, which keeps one version, of an emulator of its own."""

    def __init__(self, emulator: Emulator, folder: Path) -> None:
        secrets = folder / "secrets"
        secrets.mkdir()
        (secrets / "accessKeyId").write_text("test-id")
        (secrets / "accessKeySecret").write_text("test-secret")
        self.emulator = emulator
        admin = TableAdmin(emulator.endpoint, "demo", CREDENTIALS)
        admin.create(TableSchema("flights", KEYS, max_versions=1, deviation_seconds=10 * 365 * 86_400))
        admin.close()
        self.client = SyncTableClient(emulator.endpoint, "demo", CREDENTIALS)
        self.tunnels = SyncTunnelClient(emulator.endpoint, "demo", CREDENTIALS)
        self.options = {
            "endpoint": emulator.endpoint,
            "instance": "demo",
            "table": "flights",
            "tunnel": "lake",
            "credentialsDirectory": str(secrets),
            "heartbeatIntervalSeconds": "5",
        }

    def close(self) -> None:
        self.client.close()
        self.tunnels.close()

    def create_tunnel(self, kind: TunnelType, name: str = "lake") -> None:
        self.tunnels.create_tunnel("flights", name, kind)
        wait_until(lambda: self.tunnels.describe_tunnel("flights", name).tunnel.stage != Stage.INIT)

    def write(self, changes: Iterator[tuple[PrimaryKey, Action, tuple[Column, ...]]]) -> None:
        for key, action, cells in changes:
            body = encode_row(key, cells, delete=action is Action.DELETE)
            (outcome,) = self.client.batch_write("flights", [RowChange(action, body)])
            assert outcome.code is None

    def rows(self) -> dict[tuple[Any, ...], dict[str, tuple[Any, int | None]]]:
        """Values and versions by key."""
        low: PrimaryKey = tuple((name, Marker.INF_MIN) for name in KEY_NAMES)
        high: PrimaryKey = tuple((name, Marker.INF_MAX) for name in KEY_NAMES)
        found = {}
        start: PrimaryKey | None = low
        while start is not None:
            page = self.client.get_range("flights", start, high, max_versions=1)
            for row in decode_rows(page.rows):
                cells = {cell.name: (_plain(cell.value), cell.timestamp_ms) for cell in row.columns}
                found[tuple(value for _, value in row.primary_key)] = cells
            start = page.next_start
        return found


@pytest.fixture
def source(emulator: Emulator, tmp_path: Path) -> Iterator[Source]:
    source = Source(emulator, tmp_path)
    yield source
    source.close()


class Runs:
    """Runs programs, each in a group of processes of its own."""

    def __init__(self, arguments: str, folder: Path) -> None:
        self._environment = inherited_environment(PYSPARK_SUBMIT_ARGS=arguments, PYSPARK_PYTHON=sys.executable)
        self.folder = folder

    def start(self, *command: str) -> subprocess.Popen[bytes]:
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, *command],
                env=self._environment,
                cwd=ROOT,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def run(self, *command: str, seconds: float = 1500) -> int:
        """The exit status; negative after a kill."""
        process = self.start(*command)
        try:
            return process.wait(seconds)
        finally:
            with suppress(ProcessLookupError):  # it has ended by itself
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(30)

    def program(self, kind: str, options: dict[str, str], *more: str) -> int:
        return self.run("-m", "tests.spark.lake.program", kind, json.dumps(options), str(self.folder), *more)

    def merges(self, kind: str, options: dict[str, str]) -> int:
        return self.run("-m", "tests.spark.lake.merges", kind, json.dumps(options), str(self.folder))

    def output(self) -> str:
        return (self.folder / "log").read_text(errors="replace")[-6000:]

    def errors(self) -> list[str]:
        """What the program logged as errors; not what Spark, or an interpreter that ends with it, wrote beside them."""
        lines = (self.folder / "log").read_text(errors="replace").splitlines()
        own = [json.loads(line) for line in lines if line.startswith("{")]
        return [entry["message"] for entry in own if entry["level"] == "ERROR"]

    def dumped(self, name: str) -> list[Any]:
        found: list[Any] = json.loads((self.folder / f"{name}.json").read_text())
        return found


@pytest.fixture
def runs(submit_arguments: str, tmp_path: Path) -> Runs:
    return Runs(submit_arguments, tmp_path)


def _plain(value: Any) -> Any:
    """A value as the dump has it; -0.0 and 0.0, or 1 and True, are not equal."""
    found = {"hex": value.hex()} if isinstance(value, bytes) else value
    return f"{type(found).__name__} {found!r}"


def mirrored(rows: list[dict[str, Any]]) -> dict[tuple[Any, ...], dict[str, tuple[Any, int]]]:
    """The rows of a dumped mirror as `Source.rows` has them."""
    found = {}
    for row in rows:
        others, versions = row.pop("_others"), row.pop("_versions")
        key = tuple(row.pop(name) for name in KEY_NAMES)
        values = {name: value for name, value in row.items() if value is not None}
        for name, value in others.items():
            assert name not in values, f"{name} of {key} is in two places"
            values[name] = next(member for member in value.values() if member is not None)
        assert values.keys() == versions.keys(), key
        assert key not in found, f"{key} comes twice"
        found[key] = {name: (_plain(value), versions[name]) for name, value in values.items()}
    return found


def as_stored(rows: dict[tuple[Any, ...], dict[str, tuple[Any, int | None]]]) -> Any:
    """With integers that a column of doubles has as such: `number` gets one."""
    for cells in rows.values():
        if "number" in cells and cells["number"][0] == "int 5":
            cells["number"] = ("float 5.0", cells["number"][1])
    return rows


def check_batches(found: list[int]) -> list[int]:
    """The batches in the order of their commits; each comes once."""
    assert sorted(found) == sorted(set(found))
    return sorted(found)


class Writing:
    """Writes changes in a thread while programs run."""

    def __init__(self, source: Source, changes: Changes) -> None:
        self._source, self._changes = source, changes
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._write)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(60)
        assert not self._thread.is_alive()

    def _write(self) -> None:
        while not self._over.wait(0.2):
            self._source.write(self._changes.make(20))


@pytest.mark.parametrize(
    ("kind", "growth"),
    [
        pytest.param(TunnelType.Stream, "add", id="snapshot"),
        pytest.param(TunnelType.BaseAndStream, "map", id="tunnel", marks=pytest.mark.long),
    ],
)
def test_a_mirror_equals_its_table_after_kills_behind_commits(
    source: Source, runs: Runs, kind: TunnelType, growth: str
) -> None:
    changes = Changes(17, 60, int(time.time() * 1000))
    source.write(changes.make(300))
    source.create_tunnel(kind)
    # the snapshot is newer than these changes, and the stream has them
    source.write(changes.make(300))
    given = ("--growth", growth, "--columns", "price DOUBLE, number DOUBLE")

    with Writing(source, changes):
        killed = ("--follow", "--kill-after", "1")
        assert runs.program("mirror", source.options, *given, *killed) == -signal.SIGKILL, runs.output()
    source.write(changes.make(100))
    assert runs.program("mirror", source.options, *given, "--dump") == 0, runs.output()

    assert mirrored(runs.dumped("rows")) == as_stored(source.rows())
    assert len(check_batches(runs.dumped("batches"))) >= 2
    assert not any(_rows_copied(runs.folder / "table"))
    if growth == "add":
        added = {"price", "count", "odd `name`, (1).\\'", "gone", "${spark.app.name}"}
        assert added <= runs.dumped("rows")[0].keys()


@pytest.mark.parametrize("mode", ["Mirror", pytest.param("ChangeLog", marks=pytest.mark.long)])
def test_a_document_makes_the_same_table_as_a_program(source: Source, runs: Runs, mode: str) -> None:
    kind = {"Mirror": "mirror", "ChangeLog": "log"}[mode]
    changes = Changes(23, 40, int(time.time() * 1000))
    source.write(changes.make(100))
    source.create_tunnel(TunnelType.Stream)
    source.write(changes.make(50))
    driver = runs.start("-m", "ots_tunnel.spark.query.driver", "--config", str(document_of(source, runs.folder, mode)))
    try:
        wait_until(lambda: "batch 0 is written" in runs.output() or driver.poll() is not None, 900, explain=runs.output)
        source.write(changes.make(50))
        driver.send_signal(signal.SIGTERM)
        assert driver.wait(120) == 143, runs.output()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(driver.pid, signal.SIGKILL)
        driver.wait(30)

    # the folder is laid out as the program's, which goes on where the driver stopped
    options = source.options if mode == "Mirror" else {**source.options, "columns": "price DOUBLE"}
    columns = ("--columns", "price DOUBLE") if mode == "Mirror" else ()
    assert runs.program(kind, options, "--dump", *columns) == 0, runs.output()
    check_batches(runs.dumped("batches"))
    if mode == "Mirror":
        assert mirrored(runs.dumped("rows")) == as_stored(source.rows())
    else:
        assert len(runs.dumped("rows")) == 100


def document_of(source: Source, folder: Path, mode: str, **more: Any) -> Path:
    files = {"url": (folder / "table").as_uri(), "format": "Delta", "mode": mode, "compression": "zstd", **more}
    document = {
        "source": {
            **{name: source.options[name] for name in ("endpoint", "instance", "table", "tunnel")},
            "credentials": {"directory": source.options["credentialsDirectory"]},
        },
        "sink": {"files": {**files, "columns": [{"name": "price", "type": "double"}]}},
        "checkpointDirectory": str(folder / "checkpoint"),
        "triggerIntervalSeconds": 1,
        "heartbeatIntervalSeconds": 5,
        "heartbeatTimeoutSeconds": 15,
    }
    path = folder / "query.yaml"
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize("mode", ["Mirror", pytest.param("ChangeLog", marks=pytest.mark.long)])
def test_a_folder_that_is_one_batch_older_than_its_table_is_refused(source: Source, runs: Runs, mode: str) -> None:
    """Its next batch would have the number of one that the table has, and Delta would leave its changes out."""
    changes = Changes(29, 40, int(time.time() * 1000))
    source.create_tunnel(TunnelType.Stream)
    kind = {"Mirror": "mirror", "ChangeLog": "log"}[mode]
    options = source.options if mode == "Mirror" else {**source.options, "columns": "price DOUBLE"}
    columns = ("--columns", "price DOUBLE") if mode == "Mirror" else ()
    source.write(changes.make(10))
    assert runs.program(kind, options, *columns) == 0, runs.output()
    old = shutil.copytree(runs.folder / "checkpoint", runs.folder / "old")
    source.write(changes.make(10))
    assert runs.program(kind, options, *columns) == 0, runs.output()

    shutil.rmtree(runs.folder / "checkpoint")
    old.rename(runs.folder / "checkpoint")
    source.write(changes.make(10))

    document = document_of(source, runs.folder, mode)
    assert runs.run("-m", "ots_tunnel.spark.query.driver", "--config", str(document)) == 2, runs.output()
    assert "the folder is older than the table" in runs.output()


def test_a_folder_with_files_that_are_no_table_is_refused(source: Source, runs: Runs) -> None:
    source.create_tunnel(TunnelType.Stream)
    (runs.folder / "table").mkdir()
    (runs.folder / "table" / "old.parquet").write_bytes(b"PAR1")

    document = document_of(source, runs.folder, "Mirror")
    assert runs.run("-m", "ots_tunnel.spark.query.driver", "--config", str(document)) == 2, runs.output()
    assert "found files that are no table of Delta" in runs.output()

    (runs.folder / "other" / "_delta_log").mkdir(parents=True)
    inside = str(runs.folder / "other" / "deep" / "inside")
    assert runs.program("mirror", source.options, "--table", inside) > 0
    assert "found a place inside the table" in runs.output()
    assert not Path(inside).exists()


def test_a_change_log_has_each_change_once_after_a_kill_behind_a_commit(source: Source, runs: Runs) -> None:
    made: list[tuple[PrimaryKey, Action, tuple[Column, ...]]] = []
    changes = Changes(5, 40, int(time.time() * 1000))

    def write(count: int) -> None:
        fresh = list(changes.make(count))
        source.write(iter(fresh))
        made.extend(fresh)

    source.create_tunnel(TunnelType.Stream)
    options = {**source.options, "columns": "price DOUBLE"}
    write(50)
    assert runs.program("log", options, "--kill-after", "0") == -signal.SIGKILL, runs.output()
    old = shutil.copytree(runs.folder / "checkpoint", runs.folder / "old")
    write(50)
    assert runs.program("log", options, "--dump") == 0, runs.output()

    rows = runs.dumped("rows")
    assert Counter(map(logged, rows)) == Counter(map(made_of, made))
    assert check_batches(runs.dumped("batches")) == [0, 1]
    assert {"count", "note"} <= rows[0].keys()

    # an old copy of the checkpoint folder: its batch 1 is not the one that the table has
    shutil.rmtree(runs.folder / "checkpoint")
    old.rename(runs.folder / "checkpoint")
    write(50)
    assert runs.program("log", options) > 0
    assert "is older than the table" in runs.output()


def logged(row: dict[str, Any]) -> tuple[Any, ...]:
    """What a row of the log tells: its key, its action, what it put, and what it deleted."""
    own = ("action", "channel", "sequence", "key", "deleted", "others", "version", "versions", "cells")
    put = {name: value for name, value in row.items() if name not in own and value is not None}
    put |= {name: next(one for one in value.values() if one is not None) for name, value in row["others"].items()}
    single = [cell["name"] for cell in row["cells"] if cell["operation"] == "DELETE_ONE_VERSION"]
    deleted = frozenset([*row["deleted"], *single])
    return tuple(row["key"].values()), row["action"], _values(put), deleted


def made_of(change: tuple[PrimaryKey, Action, tuple[Column, ...]]) -> tuple[Any, ...]:
    key, action, cells = change
    put = {cell.name: cell.value for cell in cells if cell.value is not None}
    deleted = frozenset(cell.name for cell in cells if cell.value is None)
    return tuple(value for _, value in key), action.name, _values(put), deleted


def _values(put: dict[str, Any]) -> frozenset[tuple[str, str]]:
    """Names and values; a column of doubles takes integers that are equal to one."""
    return frozenset(
        (name, _plain(float(value) if name == "number" and type(value) is int and value == 5 else value))
        for name, value in put.items()
    )


@pytest.mark.parametrize("kind", ["mirror", "log"])
def test_batches_without_rows_leave_their_numbers(source: Source, runs: Runs, kind: str) -> None:
    """An idle table makes one every ten minutes; a table without its number would refuse the next driver."""
    source.create_tunnel(TunnelType.Stream)

    assert runs.program(kind, source.options, "--empty", "3") == 0, runs.output()

    assert check_batches(runs.dumped("batches")) == [0, 1, 2]
    assert runs.dumped("rows") == []


def test_a_batch_of_a_mirror_compiles_nothing_that_spark_has_compiled_for_an_earlier_one(
    source: Source, runs: Runs
) -> None:
    """Spark keeps 100 classes by its own settings; a MERGE needs more, and each batch compiled many of them anew."""
    source.create_tunnel(TunnelType.Stream)
    key: PrimaryKey = (("carrier", "x"), ("flight", 7))
    # Delta needs names like these itself: a column of one would end every MERGE
    own = tuple(Column(name, 1) for name in ("_metadata", "deletionVectorId", "dvFilePath", "_tmp_metadata_row_index"))
    source.write(iter([(key, Action.PUT, (Column("a", 1), *own)), (key, Action.UPDATE, (Column("b", "x"),))]))

    assert runs.merges("compiled", source.options) == 0, runs.output()

    assert runs.dumped("compiled")[-1] < 10


def test_compaction_writes_rows_out_of_large_files_where_many_are_gone(source: Source, runs: Runs) -> None:
    """OPTIMIZE leaves a file alone that it joins with no other one: a tenth of all rows may be gone, a quarter not."""
    assert runs.merges("marks", source.options) == 0, runs.output()

    alone, beside = [4, 0], [4, 20]
    assert runs.dumped("marks") == alone + beside


def test_a_change_log_leaves_a_column_of_its_owner_alone(source: Source, runs: Runs) -> None:
    """No attribute has its type; one of its name stays in the map. What got a column before is not refused."""
    source.create_tunnel(TunnelType.Stream)
    options = {**source.options, "columns": "delay BIGINT"}

    def put(flight: int, *cells: Column) -> None:
        source.write(iter([((("carrier", "c1"), ("flight", flight)), Action.PUT, cells)]))

    put(1, Column("price", 1.5, 1_700_000_000_000))
    assert runs.program("log", options, "--own-column", "loaded DATE") == 0, runs.output()
    put(2, Column("price", 2.5, 1_700_000_000_000), Column("loaded", "today", 1_700_000_000_000))
    assert runs.program("log", options) == 0, runs.output()
    put(3, Column("price", 3.5, 1_700_000_000_000))
    assert runs.program("log", options, "--growth", "refuse", "--dump") == 0, runs.output()

    found = sorted(
        (row["key"]["flight"], row["price"], row["loaded"], len(row["others"])) for row in runs.dumped("rows")
    )
    assert found == [(1, 1.5, None, 0), (2, 2.5, None, 1), (3, 3.5, None, 0)]


def test_an_attribute_that_growth_refuses_is_one_line(source: Source, runs: Runs) -> None:
    source.create_tunnel(TunnelType.Stream)
    key: PrimaryKey = (("carrier", "c1"), ("flight", 1))
    source.write(iter([(key, Action.PUT, (Column("price", 1.5, 1_700_000_000_000),))]))
    options = {**source.options, "columns": "delay BIGINT"}

    assert runs.program("log", options, "--growth", "refuse") > 0
    assert "growth: found attribute 'price' with a value of DOUBLE" in runs.output()


def test_the_examples_run_as_they_are(source: Source, runs: Runs) -> None:
    changes = Changes(9, 30, int(time.time() * 1000))
    source.write(changes.make(100))
    place = (source.options["endpoint"], "demo", "flights")
    secrets = source.options["credentialsDirectory"]

    assert runs.run(str(EXAMPLES / "read_a_table.py"), *place, secrets, "--where", "carrier = 'c1'") == 0, runs.output()
    assert "carrier: string" in runs.output()

    files = runs.folder / "files"
    columns = ("--columns", "price DOUBLE, flag BOOLEAN")
    assert runs.run(str(EXAMPLES / "export_to_parquet.py"), *place, secrets, str(files), *columns) == 0, runs.output()
    exported = {(row["carrier"], row["flight"]): row["price"] for row in pq.read_table(files).to_pylist()}
    stored = source.rows()
    assert {key: _plain(price) for key, price in exported.items()} == {
        key: cells["price"][0] if "price" in cells else _plain(None) for key, cells in stored.items()
    }

    for tunnel in ("lake", "log"):
        source.create_tunnel(TunnelType.Stream, tunnel)
    source.write(changes.make(100))
    log = runs.folder / "log_of_changes"
    command = (*place, "log", secrets, str(log), "--available-now")
    assert runs.run(str(EXAMPLES / "stream_to_delta.py"), *command) == 0, runs.output()
    assert _rows_added(log / "changes") == 100

    command = (*place, "lake", secrets, str(runs.folder), "--available-now", "--columns", "number DOUBLE")
    assert runs.run(str(EXAMPLES / "mirror_to_delta.py"), *command) == 0, runs.output()
    source.write(changes.make(50))
    # the folder is laid out as the program's
    assert runs.program("mirror", source.options, "--dump", "--columns", "number DOUBLE") == 0, runs.output()
    assert mirrored(runs.dumped("rows")) == as_stored(source.rows())


def _actions(table: Path) -> list[dict[str, Any]]:
    """Those of all commits of a Delta table."""
    return [json.loads(line) for one in (table / "_delta_log").glob("*.json") for line in one.read_text().splitlines()]


def _rows_copied(table: Path) -> list[int]:
    """For each batch of a mirror the rows that it has written anew without a change; one batch at least."""
    commits = [action["commitInfo"] for action in _actions(table) if "commitInfo" in action]
    merges = [commit["operationMetrics"] for commit in commits if commit["operation"] == "MERGE"]
    assert merges
    return [int(metrics["numTargetRowsCopied"]) for metrics in merges]


def _rows_added(table: Path) -> int:
    """Rows of a Delta table to which rows were only added, by its log."""
    actions = _actions(table)
    assert not any("remove" in action for action in actions)
    return sum(json.loads(action["add"]["stats"])["numRecords"] for action in actions if "add" in action)
