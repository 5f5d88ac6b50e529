"""`spark.readStream.format("ots")` in real sessions: sinks, restarts, kills of the whole tree of processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ots_emulator import Emulator
from ots_tunnel.client.sync_tunnel import SyncTunnelClient
from ots_tunnel.client.table_calls import RowChange
from ots_tunnel.model import Action, Stage, TunnelType
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.query.settings import BY_FILE_SYSTEM, LOG_FILES
from ots_tunnel.spark import register
from ots_tunnel.spark.sessions import has_class
from ots_tunnel.spark.versions import bounds_streams
from tests.support.programs.processes import inherited_environment
from tests.support.waiting import wait_until

from .conftest import CREDENTIALS, ROWS, Instance

# one process: one session
pytestmark = [pytest.mark.spark, pytest.mark.timeout(600), pytest.mark.xdist_group("spark"), pytest.mark.lasts(60)]

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "stream_to_parquet.py"
#: Settings of Spark for a program of its own: nothing but loopback, a small JVM.
LOCAL = (
    "--master local[2,2] --conf spark.driver.host=127.0.0.1 --conf spark.driver.bindAddress=127.0.0.1 "
    "--conf spark.ui.enabled=false --conf spark.driver.memory=1g "
    "--conf spark.driver.extraJavaOptions='-XX:TieredStopAtLevel=1 -XX:+UseSerialGC' pyspark-shell"
)


@pytest.fixture
def tunnels(instance: Instance) -> Iterator[SyncTunnelClient]:
    client = SyncTunnelClient(instance.endpoint, "demo", CREDENTIALS)
    yield client
    client.close()


def create(tunnels: SyncTunnelClient, kind: TunnelType, name: str = "stream") -> None:
    tunnels.create_tunnel("flights", name, kind)
    wait_until(lambda: tunnels.describe_tunnel("flights", name).tunnel.stage != Stage.INIT)


def write(instance: Instance, *numbers: int) -> None:
    """Put the rows of these numbers; the number is in `delay` as well."""
    changes = [
        RowChange(
            Action.PUT,
            encode_row((("carrier", f"n{number % 7}"), ("flight", number)), (Column("delay", number, None),)),
        )
        for number in numbers
    ]
    for start in range(0, len(changes), 200):
        outcomes = instance.client.batch_write("flights", changes[start : start + 200])
        assert {outcome.code for outcome in outcomes} == {None}


def stream(spark: Any, instance: Instance, **more: str) -> Any:
    register(spark)
    options = {
        "endpoint": instance.endpoint,
        "instance": "demo",
        "table": "flights",
        "tunnel": "stream",
        "credentialsDirectory": str(instance.secrets),
        "heartbeatIntervalSeconds": "5",
        **more,
    }
    return spark.readStream.format("ots").options(**options)


def numbers(spark: Any, folder: Path) -> list[int]:
    """The flights of the committed files, in their order."""
    if not (folder / "_spark_metadata").exists():
        return []
    return sorted(row.flight for row in spark.read.parquet(str(folder)).select("key.flight").collect())


def run_once(spark: Any, instance: Instance, folder: Path, **more: str) -> None:
    """Run a query until it has what was there when it began."""
    report = folder / "report"
    report.unlink(missing_ok=True)
    trigger: dict[str, Any] = {"availableNow": True}
    if not bounds_streams(spark.version):
        more["reportFile"] = str(report)
        trigger = {"processingTime": "300 milliseconds"}
    began = time.time()
    writer = stream(spark, instance, **more).load().writeStream.format("parquet")
    query = (
        writer.option("path", str(folder / "changes"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(**trigger)
        .start()
    )
    try:
        if bounds_streams(spark.version):
            assert query.awaitTermination(120), "not within 120 s"
            return
        wait_until(lambda: not query.isActive or has_read_until(report, began), 120)
        query.processAllAvailable()
    finally:
        query.stop()


def has_read_until(report: Path, moment: float) -> bool:
    """Whether all channels were read to their end at or after a moment."""
    return report.exists() and (json.loads(report.read_text())["readUntil"] or 0) >= moment


def test_changes_arrive_once_in_memory(spark: Any, instance: Instance, tunnels: SyncTunnelClient) -> None:
    create(tunnels, TunnelType.Stream)
    frame = stream(spark, instance, columns="delay BIGINT").load()
    query = frame.writeStream.format("memory").queryName("arrived").trigger(processingTime="300 milliseconds").start()
    try:
        write(instance, *range(9000, 9100))
        wait_until(lambda: query.exception() or spark.table("arrived").count() >= 100, 90)
        write(instance, *range(9100, 9200))
        wait_until(lambda: query.exception() or spark.table("arrived").count() >= 200, 90)
        assert query.exception() is None
        found = spark.table("arrived").collect()
    finally:
        query.stop()

    assert [row.delay for row in found] == list(range(9000, 9200))
    assert [row.key.flight for row in found] == list(range(9000, 9200))
    assert {row.action for row in found} == {"PUT"}


def test_a_restart_goes_on_in_the_same_folder(
    spark: Any, instance: Instance, tunnels: SyncTunnelClient, tmp_path: Path
) -> None:
    create(tunnels, TunnelType.BaseAndStream)
    write(instance, *range(9000, 9010))
    run_once(spark, instance, tmp_path)
    # the live scan of the existing rows has them, and so has the stream
    first = sorted([*range(ROWS), *range(9000, 9010), *range(9000, 9010)])
    assert numbers(spark, tmp_path / "changes") == first

    run_once(spark, instance, tmp_path)
    assert numbers(spark, tmp_path / "changes") == first

    write(instance, *range(9010, 9020))
    run_once(spark, instance, tmp_path)

    assert numbers(spark, tmp_path / "changes") == sorted([*first, *range(9010, 9020)])


def test_a_second_query_and_another_tunnel_are_one_line(
    spark: Any, instance: Instance, tunnels: SyncTunnelClient, tmp_path: Path
) -> None:
    create(tunnels, TunnelType.Stream)
    create(tunnels, TunnelType.Stream, "other")
    write(instance, 9000)
    run_once(spark, instance, tmp_path)

    with pytest.raises(Exception, match="checkpointLocation: found the offsets of tunnel"):
        run_once(spark, instance, tmp_path, tunnel="other")

    def clients() -> set[str]:
        return {each.client_id for each in tunnels.describe_tunnel("flights", "stream").channels} - {""}

    former = clients()  # that of a query which has just ended may still be named
    query = stream(spark, instance).load().writeStream.format("noop").start()
    try:
        wait_until(lambda: clients() - former, 60)
        with pytest.raises(Exception, match="option 'tunnel': found 'stream', which client spark-"):
            run_once(spark, instance, tmp_path)
    finally:
        query.stop()


class Program:
    """The example, in a group of processes of its own: the driver, its JVM, the planner and the workers of Python."""

    def __init__(self, instance: Instance, folder: Path, *more: str, settings: str = "") -> None:
        place = [instance.endpoint, "demo", "flights", "stream", str(instance.secrets), str(folder)]
        self._log = (folder / "log").open("ab")
        self._folder = folder
        self._process = subprocess.Popen(
            [sys.executable, str(EXAMPLE), *place, *more],
            env=inherited_environment(PYSPARK_SUBMIT_ARGS=f"{settings} {LOCAL}", PYSPARK_PYTHON=sys.executable),
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def wait(self, seconds: float) -> int:
        return self._process.wait(seconds)

    def kill(self) -> None:
        """End every process of the group at once, as a lost node would."""
        with suppress(ProcessLookupError):  # it may have ended by itself
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(30)
        self._log.close()

    def output(self) -> str:
        return (self._folder / "log").read_text(errors="replace")[-3000:]


def run_to_the_end(spark: Any, instance: Instance, folder: Path, changes: range) -> None:
    """Run the example until it has everything; before PySpark 4.2 it cannot know that, and is ended from outside."""
    if bounds_streams(spark.version):
        last = Program(instance, folder, "--available-now")
        try:
            assert last.wait(240) == 0, last.output()
        finally:
            last.kill()
        return
    last = Program(instance, folder)
    try:
        wanted = {*range(ROWS), *changes}
        wait_until(lambda: wanted <= set(numbers(spark, folder / "changes")), 240, explain=last.output)
    finally:
        last.kill()


def test_two_kills_of_all_processes_leave_each_change_once(
    spark: Any, instance: Instance, emulator: Emulator, tunnels: SyncTunnelClient, tmp_path: Path
) -> None:
    """The example is killed as a whole while rows are written and a partition splits, and is then run to its end.

    Spark's logs go from its own way to write them to that of a query's driver, and back.
    """
    create(tunnels, TunnelType.BaseAndStream)
    by_file_system = next(name for name in BY_FILE_SYSTEM if has_class(spark, name))
    written = 9000

    def grow(count: int = 300) -> None:
        nonlocal written
        write(instance, *range(written, written + count))
        written += count

    def has_grown_to(batches: int) -> bool:
        grow(50)
        return files() >= batches

    def files() -> int:
        return len(list((tmp_path / "changes" / "_spark_metadata").glob("[0-9]*")))

    for kill, settings in enumerate(("", f"--conf {LOG_FILES}={by_file_system}")):
        program = Program(instance, tmp_path, settings=settings)
        try:
            wanted = files() + 2
            # the batch after these is then somewhere on its way
            wait_until(partial(has_grown_to, wanted), 180, explain=program.output)
            grow()
            if kill == 0:
                emulator.call("split", "demo", "flights")
        finally:
            program.kill()
        grow()

    run_to_the_end(spark, instance, tmp_path, range(9000, written))

    found = numbers(spark, tmp_path / "changes")
    rows = spark.read.parquet(str(tmp_path / "changes")).select("key.flight", "sequence").collect()
    changes = sorted(row.flight for row in rows if row.sequence is not None)
    existing = [row.flight for row in rows if row.sequence is None]
    assert changes == list(range(9000, written))
    assert len(existing) == len(set(existing))
    assert set(range(ROWS)) <= set(existing)
    assert len(found) == len(changes) + len(existing)
