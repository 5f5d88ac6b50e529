"""Streams into Iceberg tables with a minor of Spark for which Iceberg has a jar (`tests.spark.matrix`)."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections import Counter
from contextlib import suppress

import pytest

from ots_tunnel.model import Action, PrimaryKey, TunnelType
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.query.settings import KEPT_CLASSES
from ots_tunnel.spark.lake.tables.iceberg import EXTENSION
from tests.support.lacking import lack
from tests.support.lake.lake_jars import JarsUnavailable, lake_jars
from tests.support.lake.one_version_changes import Changes
from tests.support.waiting import wait_until

from .test_lake import (
    Runs,
    Source,
    Writing,
    as_stored,
    check_batches,
    document_of,
    logged,
    made_of,
    mirrored,
    runs,
    source,
)

__all__ = ["runs", "source"]

pytestmark = [pytest.mark.spark, pytest.mark.timeout(3600), pytest.mark.xdist_group("lake"), pytest.mark.lasts(500)]

#: A catalog of the session's own, beside those that a path makes.
CATALOG = "spark.sql.catalog.own"


@pytest.fixture(scope="session")
def submit_arguments(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Settings of Spark for a program of its own: Iceberg, nothing but loopback, a small JVM."""
    try:
        jars = lake_jars("iceberg")
    except JarsUnavailable as reason:
        lack("javac", str(reason))
    settings = {
        "spark.sql.extensions": EXTENSION,
        CATALOG: "org.apache.iceberg.spark.SparkCatalog",
        f"{CATALOG}.type": "hadoop",
        f"{CATALOG}.warehouse": str(tmp_path_factory.mktemp("warehouse")),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.driver.memory": "1g",
        **KEPT_CLASSES,
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.extraJavaOptions": "'-XX:TieredStopAtLevel=1 -XX:+UseSerialGC'",
    }
    confs = " ".join(f"--conf {key}={value}" for key, value in settings.items())
    return f"--master local[2,2] --jars {jars} {confs} pyspark-shell"


def program(runs: Runs, kind: str, options: dict[str, str], *more: str) -> int:
    return runs.program(kind, options, "--format", "iceberg", *more)


@pytest.mark.parametrize(
    ("kind", "growth", "table"),
    [
        pytest.param(TunnelType.Stream, "add", None, id="snapshot"),
        pytest.param(TunnelType.BaseAndStream, "map", "own.shop.flights", id="tunnel"),
    ],
)
def test_a_mirror_equals_its_table_after_kills_behind_commits(
    source: Source, runs: Runs, kind: TunnelType, growth: str, table: str | None
) -> None:
    changes = Changes(17, 60, int(time.time() * 1000))
    source.write(changes.make(300))
    source.create_tunnel(kind)
    # the snapshot is newer than these changes, and the stream has them
    source.write(changes.make(300))
    given = ("--growth", growth, "--columns", "price DOUBLE, number DOUBLE", *(("--table", table) if table else ()))

    with Writing(source, changes):
        killed = ("--follow", "--kill-after", "1")
        assert program(runs, "mirror", source.options, *given, *killed) == -signal.SIGKILL, runs.output()
    source.write(changes.make(100))
    assert program(runs, "mirror", source.options, *given, "--dump") == 0, runs.output()

    assert mirrored(runs.dumped("rows")) == as_stored(source.rows())
    assert len(check_batches(runs.dumped("batches"))) >= 2
    if growth == "add":
        added = {"price", "count", "odd `name`, (1).\\'", "gone", "${spark.app.name}"}
        assert added <= runs.dumped("rows")[0].keys()


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
    assert program(runs, "log", options, "--follow", "--kill-after", "0") == -signal.SIGKILL, runs.output()
    old = shutil.copytree(runs.folder / "checkpoint", runs.folder / "old")
    write(50)
    assert program(runs, "log", options, "--dump") == 0, runs.output()

    rows = runs.dumped("rows")
    assert Counter(map(logged, rows)) == Counter(map(made_of, made))
    check_batches(runs.dumped("batches"))
    assert {"count", "note"} <= rows[0].keys()

    # an old copy of the checkpoint folder: its next batch is not the one that the table has
    shutil.rmtree(runs.folder / "checkpoint")
    old.rename(runs.folder / "checkpoint")
    write(50)
    assert program(runs, "log", options) > 0
    assert "is older than the table" in runs.output()


def test_a_document_makes_the_same_table_as_a_program(source: Source, runs: Runs) -> None:
    changes = Changes(23, 40, int(time.time() * 1000))
    source.write(changes.make(100))
    source.create_tunnel(TunnelType.Stream)
    source.write(changes.make(50))
    document = document_of(source, runs.folder, "Mirror", format="Iceberg")
    driver = runs.start("-m", "ots_tunnel.spark.query.driver", "--config", str(document))
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
    assert program(runs, "mirror", source.options, "--columns", "price DOUBLE", "--dump") == 0, runs.output()
    check_batches(runs.dumped("batches"))
    assert mirrored(runs.dumped("rows")) == as_stored(source.rows())


@pytest.mark.parametrize("kind", ["mirror", "log"])
def test_batches_without_rows_leave_their_numbers(source: Source, runs: Runs, kind: str) -> None:
    source.create_tunnel(TunnelType.Stream)

    assert program(runs, kind, source.options, "--empty", "3") == 0, runs.output()

    assert check_batches(runs.dumped("batches")) == [0, 1, 2]
    assert runs.dumped("rows") == []


#: Makes a table in a place, ages every file in it, and cleans it.
CLEANED = """
import os, sys
from pathlib import Path
from pyspark.sql import SparkSession
from ots_tunnel.spark.lake import Iceberg
from ots_tunnel.spark.lake.tables import iceberg

spark = SparkSession.builder.getOrCreate()
table = Iceberg(sys.argv[1]).seen_by(spark)
table.check_session()
table.create([("id", "bigint")], {"made": "here"})
for batch in range(3):
    table.append(spark.range(batch, batch + 1), "query", batch)
data = Path(sys.argv[2], "data")
(data / "left.parquet").write_bytes(b"PAR1")
for file in data.parent.rglob("*"):
    os.utime(file, (0, 0))
iceberg._MOST_SNAPSHOTS = 2
table.compact()
assert spark.table(f"{table.place}.snapshots").count() == 2
table.clean(168)
assert sorted(row.id for row in table.frame().collect()) == [0, 1, 2]
assert table.last_batch("query") == 2
assert not (data / "left.parquet").exists()
"""


@pytest.mark.parametrize("scheme", ["", "file:", "file://"])
def test_cleaning_removes_what_no_version_has_and_nothing_else(runs: Runs, scheme: str) -> None:
    folder = runs.folder / "lake 1" / "table"

    assert runs.run("-c", CLEANED, f"{scheme}{folder}", str(folder)) == 0, runs.output()


def test_a_folder_with_other_files_is_refused(source: Source, runs: Runs) -> None:
    source.create_tunnel(TunnelType.Stream)
    (runs.folder / "table" / "_delta_log").mkdir(parents=True)

    assert program(runs, "mirror", source.options) > 0
    assert "found files that are no table of Iceberg" in runs.output()


def test_names_of_icebergs_own_columns_stay_in_the_map(source: Source, runs: Runs) -> None:
    source.create_tunnel(TunnelType.Stream)
    cells = tuple(Column(name, 1, 1_700_000_000_000) for name in ("_file", "_pos", "_spec_id", "_row_id", "fine"))
    key: PrimaryKey = (("carrier", "c1"), ("flight", 1))
    source.write(iter([(key, Action.PUT, cells)]))

    assert program(runs, "mirror", source.options, "--dump") == 0, runs.output()

    (row,) = runs.dumped("rows")
    assert set(row["_others"]) == {"_file", "_pos", "_spec_id", "_row_id"}
    assert row["fine"] == 1
