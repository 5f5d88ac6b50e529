"""The stream's reader, called as Spark before 4.2 calls it: it is not told where a batch begins."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ots_emulator import Emulator
from ots_tunnel.errors import ConfigError
from ots_tunnel.model import TunnelType
from ots_tunnel.spark.stream.options import StreamOptions
from ots_tunnel.spark.stream.remembering_reader import RememberingReader
from ots_tunnel.spark.stream.rows import StreamRows
from tests.support.waiting import wait_until

from .conftest import ROWS, Instance
from .test_stream_alone import Engine, Tunnels, flights, options, tunnels, write

__all__ = ["tunnels"]

pytestmark = [pytest.mark.timeout(300), pytest.mark.lasts(10)]

KEY = (("carrier", "string"), ("flight", "bigint"))


class Engine41(Engine):
    """Spark's part as PySpark 4.0 and 4.1 have it."""

    def plan(self) -> bool:
        found = json.dumps(self.reader.latestOffset())
        if not self.offsets:
            # asked for later than the end of the first batch
            self.offsets.append(json.dumps(self.reader.initialOffset()))
            self.offsets.append(found)
            return True
        is_new = found != self.offsets[-1]
        if is_new:
            self.offsets.append(found)
        return is_new

    def start_again(self, instance: Instance) -> None:
        """A new process: an empty batch at the end of the log, and then what is logged and not committed."""
        self.reader.stop()
        self.reader = reader_of(instance)
        last = json.loads(self.offsets[-1])
        assert self.reader.partitions(last, last) == []
        if self.committed < len(self.offsets) - 1:
            self.run()
            self.commit()


def reader_of(instance: Instance, **more: str) -> RememberingReader:
    return RememberingReader(StreamOptions.parse(options(instance, **more)), StreamRows(KEY, None))


@pytest.fixture
def engine(instance: Instance) -> Iterator[Engine41]:
    engine = Engine41(reader_of(instance))
    yield engine
    engine.reader.stop()


def test_batches_follow_each_other(instance: Instance, tunnels: Tunnels, engine: Engine41) -> None:
    tunnels.create(kind=TunnelType.BaseAndStream)
    write(instance, 9000)

    rows = engine.until_rows(ROWS + 2)

    assert sorted(flights(rows)[:ROWS]) == list(range(ROWS))
    assert flights(rows)[ROWS:] == [9000, 9000]  # the scan of the existing rows is live


def test_a_batch_in_doubt_comes_again_after_a_restart(instance: Instance, tunnels: Tunnels, engine: Engine41) -> None:
    tunnels.create()
    write(instance, *range(9000, 9005))
    engine.until_rows(5)
    write(instance, *range(9005, 9010))
    wait_until(engine.plan)
    engine.run()

    # killed before the commit; meanwhile the table goes on
    write(instance, *range(9010, 9015))
    engine.start_again(instance)

    assert flights(engine.until_rows(15)) == list(range(9000, 9015))


def test_a_restart_goes_on_behind_what_is_committed(instance: Instance, tunnels: Tunnels, engine: Engine41) -> None:
    tunnels.create()
    write(instance, *range(9000, 9005))
    engine.until_rows(5)

    engine.start_again(instance)
    write(instance, 9005)

    assert flights(engine.until_rows(6)) == list(range(9000, 9006))


def test_a_first_batch_that_is_not_committed_comes_again(
    instance: Instance, tunnels: Tunnels, engine: Engine41
) -> None:
    """It has no offset before it in the log; the new process makes another first one."""
    tunnels.create()
    write(instance, *range(9000, 9005))
    wait_until(lambda: engine.plan() and "from" in engine.offsets[-1])

    engine.start_again(instance)

    assert flights(engine.until_rows(5)) == list(range(9000, 9005))


def test_a_split_loses_nothing_over_a_restart(
    instance: Instance, emulator: Emulator, tunnels: Tunnels, engine: Engine41
) -> None:
    tunnels.create()
    write(instance, *range(9000, 9010))
    engine.until_rows(10)
    emulator.call("split", "demo", "flights")
    write(instance, *range(9010, 9020))
    wait_until(engine.plan)

    engine.start_again(instance)

    assert sorted(flights(engine.until_rows(20))) == list(range(9000, 9020))


def test_the_checkpoints_of_another_tunnel_are_refused(instance: Instance, tunnels: Tunnels, engine: Engine41) -> None:
    tunnels.create()
    engine.plan()
    tunnels.create("other")
    reader = reader_of(instance, tunnel="other")
    try:
        reader.partitions(json.loads(engine.offsets[-1]), json.loads(engine.offsets[-1]))
        with pytest.raises(ConfigError, match="checkpointLocation: found the offsets of tunnel"):
            reader.latestOffset()
    finally:
        reader.stop()


def test_figures_are_in_the_file_of_the_option(instance: Instance, tunnels: Tunnels, tmp_path: Path) -> None:
    tunnels.create()
    path = tmp_path / "report"
    engine = Engine41(reader_of(instance, reportFile=str(path)))
    began = time.time()
    try:
        write(instance, 9000)
        engine.until_rows(1)
        wait_until(lambda: not engine.turn() and (json.loads(path.read_text())["lagSeconds"] == 0), 60)
    finally:
        engine.reader.stop()

    found = json.loads(path.read_text())
    assert (found["channels"], found["passedGaps"], found["error"]) == (1, {}, None)
    assert path.stat().st_mtime >= began - 1
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith("report")] == ["report"]
