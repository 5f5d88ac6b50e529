"""The data directory: restored state, removal of deleted rows, and unusable directories."""

from __future__ import annotations

import logging
import os
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ots_emulator import Emulator, Settings
from ots_emulator.__main__ import main
from ots_emulator.durable import DataError
from ots_emulator.durable.database import Batch
from ots_emulator.durable.datadir import DATABASE_NAME, FORMAT, LOCK_NAME
from ots_emulator.durable.disk_journal import DiskJournal
from ots_emulator.settings import AfterRetention
from ots_tunnel.errors import ServiceError, TunnelExpired
from ots_tunnel.model import Action, Marker, TunnelId
from ots_tunnel.protocol import table_pb2
from ots_tunnel.protocol.plainbuffer.codec import decode_row, encode_row
from tests.support.emulator.emulator_driver import Driver, delete_one, increment, put
from tests.support.emulator.emulator_state import crashed, picture_of, reopened

MakeDriver = Callable[..., Driver]


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[sqlite3.Connection]:
    """Connections to the databases that the test opens."""
    opened: list[sqlite3.Connection] = []
    connect = sqlite3.connect

    def recorded(*arguments: Any, **options: Any) -> sqlite3.Connection:
        opened.append(connect(*arguments, **options))
        return opened[-1]

    monkeypatch.setattr(sqlite3, "connect", recorded)
    return opened


def restarted(driver: Driver) -> Driver:
    """A driver on a copy of the directory as a kill would leave it at this moment."""
    assert driver.data is not None
    second = Driver(crashed(driver.data))
    second.clock, second.settings = driver.clock, driver.settings
    second.emulator.close()
    second.emulator = Emulator(settings=driver.settings, clock=driver.clock, data=second.data)
    return second


def stored(directory: Path, table: str) -> int:
    """Number of rows in a table of the database; the directory must be closed."""
    with closing(sqlite3.connect(directory / DATABASE_NAME)) as db:
        return int(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def names_in(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def sweep(driver: Driver) -> int:
    """Commit until all deleted rows are removed; return the number of commits."""
    pieces = 0
    storage = driver.emulator.service.storage
    assert storage is not None
    while not storage.is_swept:
        pieces += 1
        driver.emulator.commit()
    return pieces


async def fill_everything(driver: Driver) -> str:
    """Create every kind of stored state; return the id of a tunnel."""
    await driver.create_table(max_versions=3, hours=24)
    await driver.fill(40)
    for key in range(3):
        await driver.update(key, put("v", key), increment("count", 2))
        await driver.update(key, put("v", "x", driver.now_ms - 5), put("w", b"\0\xff"), delete_one("v", driver.now_ms))
    await driver.delete(7)
    driver.emulator.split("demo", "t")
    driver.emulator.set_partitions("demo", "later", 3)
    tunnel = await driver.create_tunnel("BaseAndStream")
    first, second = await driver.connect(tunnel), await driver.connect(tunnel)
    held = await driver.heartbeat(tunnel, first)
    await driver.heartbeat(tunnel, second)
    channel = next(iter(held))
    records, token = await driver.drain(tunnel, channel)
    assert records
    await driver.checkpoint(tunnel, channel, token, 5)
    await driver.heartbeat(tunnel, first, (channel, held[channel][0] + 1, "TERMINATED"))
    driver.emulator.split("demo", "t")
    driver.emulator.merge("demo", "t")
    await driver.create_table("gone", hours=1)
    await driver.fill(10, table="gone")
    await driver.call("DeleteTable", table_name="gone")
    await driver.create_table("silent", hours=1)
    await driver.fill(10, table="silent")
    await driver.call(
        "UpdateTable", table_name="silent", stream_spec=table_pb2.StreamSpecification(enable_stream=False)
    )
    return tunnel


async def test_everything_survives_and_continues(make_driver: MakeDriver) -> None:
    driver = make_driver()
    tunnel = await fill_everything(driver)

    second = restarted(driver)
    assert picture_of(second.emulator) == picture_of(driver.emulator)

    # Restored state works like the original: writes find their partition, tokens their place, times keep increasing.
    await second.fill(60, start=20)
    await second.delete(1)
    await second.create_table("later", hours=24)
    await second.fill(100, table="later")
    second.emulator.split("demo", "t")
    for client in list(second.emulator.instances["demo"].tunnels[TunnelId(tunnel)].clients):
        await second.heartbeat(tunnel, client)
    second.check_crash()


async def test_keys_of_every_type_and_order(make_driver: MakeDriver) -> None:
    driver = make_driver()
    meta = table_pb2.TableMeta(table_name="keys")
    for name, kind in (("s", "STRING"), ("b", "BINARY"), ("i", "INTEGER")):
        meta.primary_key.add(name=name, type=kind)
    await driver.call(
        "CreateTable",
        table_meta=meta,
        reserved_throughput=table_pb2.ReservedThroughput(capacity_unit=table_pb2.CapacityUnit(read=0, write=0)),
        table_options=table_pb2.TableOptions(time_to_live=-1, max_versions=1),
        stream_spec=table_pb2.StreamSpecification(enable_stream=True, expiration_time=24),
    )
    for text in ("", "é", "\0"):
        for octets in (b"", b"\0", b"\xff"):
            for number in (-(1 << 63), 0, (1 << 63) - 1):
                await driver.call(
                    "PutRow",
                    table_name="keys",
                    row=encode_row((("s", text), ("b", octets), ("i", number)), [put("v", 1)]),
                    condition=table_pb2.Condition(row_existence="EXPECT_NOT_EXIST"),
                )
    driver.emulator.split("demo", "keys")
    await driver.create_tunnel("BaseAndStream", table="keys")
    # The fixture compares.


async def test_no_record_comes_before_a_consume_point_after_a_restart_without_the_shift(tmp_path: Path) -> None:
    driver = Driver(tmp_path / "data")
    await driver.create_table(hours=24)
    tunnel = await driver.create_tunnel("Stream")
    (channel,) = await driver.channels(tunnel, "Stream")
    driver.clock.advance(3600)
    token = (await driver.checkpoint_of(tunnel, channel)).checkpoint
    await driver.checkpoint(tunnel, channel, (await driver.read(tunnel, channel, token)).next_token, 1)
    driver.clock.advance(-3600)
    second = restarted(driver)

    await second.put(1, put("v", 1))

    (_, row), *_ = (await second.drain(tunnel, channel))[0]
    assert row.sequence is not None
    assert row.sequence.timestamp_us * 1000 > (await second.describe(tunnel)).tunnel_rpo > 0
    for each in (driver, second):
        each.emulator.close()


async def test_an_end_time_of_the_last_release_that_was_reached_early_moves_no_commit_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = Driver(tmp_path / "data")
    await driver.create_table(hours=24)
    tunnel = await driver.create_tunnel("Stream")
    (channel,) = await driver.channels(tunnel, "Stream")

    def at_the_end(_: Any, found: Any, *__: Any) -> None:
        found.consume_point_ns = 2**63 - 1

    with monkeypatch.context() as patch:
        patch.setattr("ots_emulator.api.tunnels.record_checkpoint", at_the_end)
        await driver.checkpoint(tunnel, channel, "finished", 1)
    second = restarted(driver)
    await second.put(1, put("v", 1))
    other = await second.create_tunnel("Stream", name="other", startOffset=int((second.clock.now() - 600) * 1e9))

    (_, row), *_ = (await second.drain(other, next(iter(await second.channels(other, "Stream")))))[0]
    assert row.sequence is not None
    assert row.sequence.timestamp_us < (second.clock.now() + 1) * 1e6
    for each in (driver, second):
        each.emulator.close()


async def test_commit_times_increase_over_a_restart_with_the_clock_set_back(make_driver: MakeDriver) -> None:
    driver = make_driver()
    await driver.create_table(hours=24)
    await driver.fill(5)
    log = driver.emulator.instances["demo"].tables["t"].log
    assert log is not None
    last_us = log.last_us
    driver.emulator.trim("demo", "t")
    driver.emulator.commit()

    driver.clock.advance(-3600)
    second = restarted(driver)
    await second.put(1, put("v", 1))

    log = second.emulator.instances["demo"].tables["t"].log
    assert log is not None
    assert log.last_us > last_us
    second.check_crash()
    driver.clock.advance(3600)


@pytest.mark.parametrize("with_restart", [False, True])
async def test_deleted_rows_are_removed_in_pieces(tmp_path: Path, *, with_restart: bool) -> None:
    driver = Driver(tmp_path / "data")
    await driver.create_table(hours=24)
    await driver.fill(1200)
    await driver.create_table("rest", hours=24)
    await driver.fill(300, table="rest")
    driver.emulator.trim("demo", "rest")
    await driver.call("DeleteTable", table_name="t")

    swept = restarted(driver) if with_restart else driver
    assert swept.data is not None
    assert sweep(swept) > 3
    driver.emulator.close()
    swept.emulator.close()

    assert stored(swept.data, "image") == 300
    assert stored(swept.data, "entry") == 0
    assert stored(swept.data, "document") == 3


async def test_expired_entries_are_removed(make_driver: MakeDriver) -> None:
    driver = make_driver()
    await driver.create_table(hours=1)
    tunnel = await driver.create_tunnel("Stream")
    await driver.fill(600)
    driver.clock.advance(3601)
    await driver.fill(10)
    (channel,) = (await driver.describe(tunnel)).channels
    token = (await driver.checkpoint_of(tunnel, channel.channel_id)).checkpoint
    with pytest.raises(TunnelExpired):
        await driver.read(tunnel, channel.channel_id, token)

    sweep(driver)
    driver.check_crash()

    assert driver.data is not None
    assert stored(driver.data, "entry") == 10


async def test_expired_entries_are_not_brought_back(make_driver: MakeDriver) -> None:
    driver = make_driver()
    await driver.create_table(hours=1)
    await driver.fill(600)
    driver.clock.advance(3601)
    await driver.fill(10)

    second = restarted(driver)
    assert second.data is not None
    for _ in range(5):
        await second.call("ListTable")
    second.check_crash()

    assert stored(second.data, "entry") == 10


@pytest.mark.parametrize("variant", list(AfterRetention))
async def test_a_partition_that_has_left_the_log_answers_as_before(tmp_path: Path, variant: AfterRetention) -> None:
    driver = Driver(tmp_path / "data", after_retention=variant)
    await driver.create_table(hours=1)
    tunnel = await driver.create_tunnel("Stream")
    (channel,) = await driver.channels(tunnel, "Stream")
    await driver.fill(10)
    _, token = await driver.drain(tunnel, channel)
    driver.emulator.split("demo", "t")
    driver.clock.advance(3600 * 2)

    async def answers(asked: Driver) -> list[Any]:
        stored_token = (await asked.checkpoint_of(tunnel, channel)).checkpoint
        # One client has checkpointed nothing, another has read on without a checkpoint.
        return [stored_token, *[await _answer_of_read(asked, tunnel, channel, each) for each in (stored_token, token)]]

    before = await answers(driver)
    once = restarted(driver)
    twice = restarted(once)

    assert await answers(once) == before
    assert await answers(twice) == before
    for each in (driver, once, twice):
        each.emulator.close()


async def test_a_checkpoint_is_never_behind_its_partition(driver: Driver) -> None:
    await driver.call("UpdateTable", table_name="t", stream_spec={"enable_stream": True, "expiration_time": 24})
    tunnel = await driver.create_tunnel("Stream")
    (channel,) = await driver.channels(tunnel, "Stream")
    await driver.fill(10)
    _, token = await driver.drain(tunnel, channel)
    await driver.checkpoint(tunnel, channel, token, 1)
    await driver.fill(10)
    await driver.call("UpdateTable", table_name="t", stream_spec={"enable_stream": False})
    second = restarted(driver)

    # The partition went with the stream, not closed, when its channel's document was older than its last entries.
    await second.checkpoint(tunnel, channel, token, 2)

    assert (await second.checkpoint_of(tunnel, channel)).sequence_number == 2
    second.emulator.close()


async def _answer_of_read(driver: Driver, tunnel: str, channel: str, token: str) -> Any:
    try:
        return (await driver.read(tunnel, channel, token)).next_token
    except ServiceError as error:
        return type(error), error.code, error.message


async def test_a_restart_without_the_shift_of_the_clock_waits_for_nothing_in_the_future(tmp_path: Path) -> None:
    driver = Driver(tmp_path / "data", table_ready_delay=5.0)
    await driver.create_table(hours=168)
    driver.clock.advance(608_400)
    await driver.create_table("later", hours=168)
    tunnel, later = [await driver.create_tunnel("Stream", table=name) for name in ("t", "later")]
    await driver.heartbeat(tunnel, await driver.connect(tunnel, timeout=15))
    driver.clock.advance(-608_400)
    second = restarted(driver)
    second.clock.advance(3600)

    for each in (tunnel, later):
        assert await second.heartbeat(each, await second.connect(each))
    await second.put(1, put("v", 1), table="later")
    for each in (driver, second):
        each.emulator.close()


async def test_a_directory_serves_one_process(make_driver: MakeDriver) -> None:
    driver = make_driver()
    assert driver.data is not None

    with pytest.raises(DataError, match="is in use by another process"):
        Emulator(data=driver.data)

    driver.emulator.close()
    Emulator(data=driver.data).close()


async def test_a_closed_directory_takes_no_calls(tmp_path: Path) -> None:
    driver = Driver(tmp_path)
    driver.emulator.close()

    with pytest.raises(ServiceError, match="OTSInternalServerError"):
        await driver.create_table()
    assert names_in(tmp_path) == {"emulator.db", "lock"}


async def test_instances_that_are_not_served_are_kept(tmp_path: Path) -> None:
    keys = {"id": "secret"}
    both = Emulator({"a": keys, "b": keys}, data=tmp_path)
    both.set_partitions("b", "t", 7)
    both.close()

    one = Emulator({"a": keys}, data=tmp_path)
    one.set_partitions("a", "t", 3)
    one.close()

    both = Emulator({"b": keys, "a": keys}, data=tmp_path)
    assert [both.instances[name].partition_aims for name in "ab"] == [{"t": 3}, {"t": 7}]
    both.close()


async def test_a_text_that_is_not_utf8_does_not_break_the_journal(make_driver: MakeDriver) -> None:
    driver = make_driver()
    driver.emulator.instances["demo"].partition_aims["\ud800"] = 2

    await driver.create_table()

    second = restarted(driver)
    assert second.emulator.instances["demo"].partition_aims == {"\ud800": 2}
    second.emulator.close()


async def test_auto_increments_continue_with_the_clock_set_back(make_driver: MakeDriver) -> None:
    driver = make_driver()
    await create_auto(driver)
    first = await put_with_placeholder(driver)
    driver.clock.advance(-3600)

    second = restarted(driver)
    following = await put_with_placeholder(second)

    assert following > first
    second.check_crash()


@pytest.mark.parametrize("action", ["PUT", "UPDATE"])
async def test_auto_increments_are_greater_than_what_clients_chose(make_driver: MakeDriver, action: str) -> None:
    driver = make_driver()
    await create_auto(driver)
    await write_chosen(driver, 10**18, action)
    second = restarted(driver)

    assert await put_with_placeholder(driver) > 10**18
    assert await put_with_placeholder(second) > 10**18

    second.check_crash()


async def test_auto_increments_are_greater_than_rows_of_an_older_directory(make_driver: MakeDriver) -> None:
    driver = make_driver()
    await create_auto(driver)
    await write_chosen(driver, 10**18, "PUT")
    table = driver.emulator.instances["demo"].tables["auto"]
    # As a former release left it, which did not look at values that clients chose.
    table.last_auto_increment = 0
    driver.emulator.commit()

    second = restarted(driver)
    table.last_auto_increment = 10**18

    assert await put_with_placeholder(second) > 10**18
    second.check_crash()


async def test_auto_increments_end_with_the_highest_integer(make_driver: MakeDriver) -> None:
    driver = make_driver()
    await create_auto(driver)
    await write_chosen(driver, 2**63 - 1, "PUT")

    with pytest.raises(ServiceError, match="no value is left for the auto-increment column of table 'auto'"):
        await put_with_placeholder(driver)


async def write_chosen(driver: Driver, value: int, action: str) -> None:
    row = encode_row((("k", 1), ("id", value)), [put("v", 1)])
    condition = table_pb2.Condition(row_existence="IGNORE")
    parts = [table_pb2.RowInBatchWriteRowRequest(type=action, row_change=row, condition=condition)]
    batch = [table_pb2.TableInBatchWriteRowRequest(table_name="auto", rows=parts)]
    assert (await driver.call("BatchWriteRow", tables=batch)).tables[0].rows[0].is_ok


async def create_auto(driver: Driver) -> None:
    meta = table_pb2.TableMeta(table_name="auto")
    meta.primary_key.add(name="k", type="INTEGER")
    meta.primary_key.add(name="id", type="INTEGER", option="AUTO_INCREMENT")
    await driver.call(
        "CreateTable",
        table_meta=meta,
        reserved_throughput=table_pb2.ReservedThroughput(capacity_unit=table_pb2.CapacityUnit(read=0, write=0)),
        table_options=table_pb2.TableOptions(time_to_live=-1, max_versions=1),
    )


async def put_with_placeholder(driver: Driver) -> int:
    answer = await driver.call(
        "PutRow",
        table_name="auto",
        row=encode_row((("k", 1), ("id", Marker.AUTO_INCREMENT)), [put("v", 1)]),
        condition=table_pb2.Condition(row_existence="IGNORE"),
        return_content=table_pb2.ReturnContent(return_type="RT_PK"),
    )
    value = decode_row(answer.row).primary_key[1][1]
    assert isinstance(value, int)
    return value


async def test_instances_come_and_go_while_it_runs(driver: Driver) -> None:
    emulator = driver.emulator
    emulator.add_instance("other", {"test-id": "test-secret"})
    emulator.set_partitions("other", "t", 3)
    emulator.commit()

    second = restarted(driver)
    assert "other" not in second.emulator.instances
    second.emulator.add_instance("other", {"test-id": "test-secret"})
    assert second.emulator.instances["other"].partition_aims == {"t": 3}
    second.emulator.remove_instance("demo")
    second.emulator.remove_instance("other")

    third = restarted(second)
    third.emulator.add_instance("other", {"test-id": "test-secret"})
    assert picture_of(third.emulator) == {name: {"aims": {}, "tables": [], "tunnels": []} for name in ("demo", "other")}
    emulator.remove_instance("other")
    second.emulator.close()
    third.emulator.close()


async def test_a_change_that_cannot_be_stored_is_not_acknowledged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, connections: list[sqlite3.Connection]
) -> None:
    driver = Driver(tmp_path / "data")
    await driver.create_table()
    await driver.put(1, put("v", 1))
    assert driver.data is not None
    before = picture_of(driver.emulator)
    connections[-1].execute("PRAGMA max_page_count = 1").fetchone()

    rows = [(Action.PUT, key, [put("v", "x" * 10_000)]) for key in range(100)]
    with caplog.at_level(logging.CRITICAL), pytest.raises(ServiceError, match="OTSInternalServerError"):
        await driver.write(*rows)
    # No client may see a change that a restart would lose.
    with pytest.raises(ServiceError, match="OTSInternalServerError"):
        await driver.get(1)

    assert "cannot be written: database or disk is full" in str(driver.emulator.state()["failure"])
    driver.emulator.close()
    assert "cannot be written: database or disk is full" in caplog.text
    assert driver.emulator.service.failure is not None
    assert reopened(crashed(driver.data), driver.settings, driver.clock) == before


async def test_a_full_disk_at_the_start_is_not_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connections: list[sqlite3.Connection]
) -> None:
    driver = Driver(tmp_path / "data")
    await driver.create_table(hours=1)
    await driver.fill(600)
    driver.emulator.close()
    driver.clock.advance(7200)
    changes = DiskJournal.changes

    def limited(journal: DiskJournal) -> Batch:
        # The start stores that entries have expired.
        connections[-1].execute("PRAGMA query_only = 1")
        return changes(journal)

    monkeypatch.setattr(DiskJournal, "changes", limited)

    with pytest.raises(DataError) as failure:
        Emulator(settings=driver.settings, clock=driver.clock, data=driver.data)

    assert (
        str(failure.value) == f"data directory {driver.data}: cannot be written: attempt to write a readonly database"
    )


def spoil(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path / DATABASE_NAME)) as db:
        for statement in statements:
            db.execute(statement)
        db.commit()


def flip(path: Path, table: str, column: str, old: bytes, new: bytes) -> None:
    """Change bytes in the first value that has them."""
    with closing(sqlite3.connect(path / DATABASE_NAME)) as db:
        query = f"SELECT place, {column} FROM {table} WHERE instr({column}, ?)"
        place, value = db.execute(query, (old,)).fetchone()
        db.execute(f"UPDATE {table} SET {column} = ? WHERE place = ?", (value.replace(old, new), place))
        db.commit()


def a_newer_format(path: Path) -> None:
    spoil(path, f"PRAGMA user_version = {FORMAT + 1}")


def another_program(path: Path) -> None:
    spoil(path, "PRAGMA application_id = 7")


def no_database(path: Path) -> None:
    (path / DATABASE_NAME).write_bytes(b"no database " * 1000)


def a_directory_for_a_database(path: Path) -> None:
    (path / DATABASE_NAME).unlink()
    (path / DATABASE_NAME).mkdir()


def a_torn_document(path: Path) -> None:
    spoil(path, "UPDATE document SET body = substr(body, 1, 20) WHERE kind = 'table'")


def a_torn_row(path: Path) -> None:
    spoil(path, "UPDATE image SET row = substr(row, 1, 9)")


def a_flipped_bit_in_a_row(path: Path) -> None:
    flip(path, "image", "row", b"letters", b"lettess")


def a_flipped_bit_in_a_record(path: Path) -> None:
    flip(path, "entry", "record", b"letters", b"lettess")


def a_lost_record(path: Path) -> None:
    spoil(path, "DELETE FROM entry WHERE place = (SELECT min(place) + 1 FROM entry)")


def a_record_of_another_time(path: Path) -> None:
    spoil(path, "UPDATE entry SET time_us = time_us + 1 WHERE place = (SELECT max(place) FROM entry)")


def a_lost_table(path: Path) -> None:
    spoil(path, "DELETE FROM document WHERE kind = 'table'")


def broken_pages(path: Path) -> None:
    content = bytearray((path / DATABASE_NAME).read_bytes())
    content[4096:] = b"\xa5" * (len(content) - 4096)
    (path / DATABASE_NAME).write_bytes(content)


async def test_a_directory_of_an_older_format_is_read_and_marked(driver: Driver) -> None:
    await driver.put(1, put("v", 1))
    assert driver.data is not None
    copy = crashed(driver.data)
    Emulator(data=copy).close()
    # Format 1 had streams without origin columns.
    spoil(copy, "UPDATE document SET body = json_remove(body, '$.log.origin_columns')", "PRAGMA user_version = 1")

    assert reopened(copy, driver.settings, driver.clock) == picture_of(driver.emulator)

    with closing(sqlite3.connect(copy / DATABASE_NAME)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (FORMAT,)
    assert FORMAT > 1


@pytest.mark.parametrize(
    ("spoiling", "reason"),
    [
        (a_newer_format, f"is of format {FORMAT + 1}, this version reads formats up to {FORMAT}"),
        (another_program, "emulator.db is a database of some other program"),
        (no_database, "file is not a database"),
        (a_directory_for_a_database, "unable to open database file"),
        (a_torn_document, "damaged: JSONDecodeError: Unterminated string"),
        (a_torn_row, "damaged: "),
        (a_flipped_bit_in_a_row, "damaged: CodecError: cell checksum is "),
        (a_flipped_bit_in_a_record, "damaged: CodecError: cell checksum is "),
        (a_lost_record, "damaged: ValueError: the log goes on with position 2, expected is 1"),
        (a_record_of_another_time, "us has another time"),
        (a_lost_table, "damaged: KeyError: 't'"),
        (broken_pages, "malformed"),
    ],
)
async def test_directories_that_cannot_be_used(driver: Driver, spoiling: Callable[[Path], None], reason: str) -> None:
    await driver.create_tunnel("Stream")
    for key in range(3):
        await driver.put(key, put("v", "letters"))
    assert driver.data is not None
    copy = crashed(driver.data)
    Emulator(data=copy, clock=driver.clock).close()
    spoiling(copy)

    complaint = refused(copy)

    assert reason in complaint


def without_the_database(path: Path) -> None:
    (path / DATABASE_NAME).unlink()


def with_an_empty_database(path: Path) -> None:
    (path / DATABASE_NAME).write_bytes(b"")


def without_the_log(path: Path) -> None:
    (path / f"{DATABASE_NAME}-wal").unlink()


def without_both(path: Path) -> None:
    without_the_database(path)
    without_the_log(path)


def without_database_and_mark(path: Path) -> None:
    without_the_database(path)
    (path / LOCK_NAME).unlink()


def with_a_flipped_bit_in_the_log(path: Path) -> None:
    log = path / f"{DATABASE_NAME}-wal"
    content = bytearray(log.read_bytes())
    content[len(content) // 2] ^= 1
    log.write_bytes(content)


LOST = "although data was stored in it: bring the file back, or empty the directory to begin without data"


@pytest.mark.parametrize(
    ("losing", "reason"),
    [
        (without_the_database, f"emulator.db is missing, {LOST}"),
        (with_an_empty_database, f"emulator.db is empty, {LOST}"),
        (without_the_log, f"emulator.db has no content, {LOST}"),
        (without_both, f"emulator.db is missing, {LOST}"),
        (without_database_and_mark, f"emulator.db is missing, {LOST}"),
        (with_a_flipped_bit_in_the_log, "and stored changes follow: bring the file back, or cut it to "),
    ],
)
async def test_what_was_stored_is_missed(driver: Driver, losing: Callable[[Path], None], reason: str) -> None:
    """Never starts as an empty emulator, or without the changes behind the first damage."""
    await driver.fill(20)
    await driver.put(1, put("v", 1))
    await driver.put(2, put("v", 2))
    assert driver.data is not None
    copy = crashed(driver.data)
    losing(copy)

    assert reason in refused(copy)


async def test_a_log_that_is_cut_as_the_error_says_brings_back_what_was_before(driver: Driver) -> None:
    for key in range(10):
        await driver.put(key, put("v", key))
    assert driver.data is not None
    copy = crashed(driver.data)
    with_a_flipped_bit_in_the_log(copy)
    found = re.search(r"truncate -s (\d+)\)", refused(copy))
    assert found is not None

    os.truncate(copy / f"{DATABASE_NAME}-wal", int(found[1]))

    with closing(Emulator(settings=driver.settings, clock=driver.clock, data=copy)) as emulator:
        assert 0 < len(emulator.instances["demo"].tables["t"]) < 10


async def test_a_directory_of_a_release_without_the_mark_gets_it(driver: Driver) -> None:
    assert driver.data is not None
    copy = crashed(driver.data)
    (copy / LOCK_NAME).write_bytes(b"")
    Emulator(data=copy).close()
    without_the_database(copy)

    assert f"emulator.db is missing, {LOST}" in refused(copy)


def refused(path: Path) -> str:
    """The error line of the command."""
    result = CliRunner().invoke(main, ["serve", "--port", "0", "--admin-port", "0", "--data", str(path)])
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith(f"data directory {path}: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


async def test_a_directory_in_use_or_none_at_all(driver: Driver, tmp_path: Path) -> None:
    assert driver.data is not None
    assert "is in use by another process" in refused(driver.data)
    (tmp_path / "file").write_text("")
    assert "is a file, a directory is needed" in refused(tmp_path / "file")
    assert "Not a directory" in refused(tmp_path / "file" / "below")


@pytest.mark.parametrize(("fsync", "level"), [(False, 1), (True, 2)])
def test_fsync_waits_for_the_disk_with_every_commit(
    tmp_path: Path, connections: list[sqlite3.Connection], *, fsync: bool, level: int
) -> None:
    emulator = Emulator(settings=Settings(fsync=fsync), data=tmp_path)
    try:
        # SQLite's NORMAL and FULL.
        assert connections[-1].execute("PRAGMA synchronous").fetchone() == (level,)
    finally:
        emulator.close()


def test_fsync_can_be_changed_while_it_runs(tmp_path: Path, connections: list[sqlite3.Connection]) -> None:
    emulator = Emulator(data=tmp_path / "data")

    levels = []
    for fsync in (False, True, False):
        assert emulator.change_settings(fsync=fsync).fsync is fsync
        levels.append(connections[-1].execute("PRAGMA synchronous").fetchone()[0])

    assert levels == [1, 2, 1]
    emulator.close()


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--init-delay", "nan"], "init_delay: found nan, allowed is a number from 0 to "),
        (["--partitions", "100000"], "partitions: found 100000, allowed is a number from 1 to 65536"),
    ],
)
def test_the_command_names_options_out_of_their_range(options: list[str], complaint: str) -> None:
    result = CliRunner().invoke(main, ["serve", *options])

    assert result.exit_code == 2
    assert complaint in result.output


def test_fsync_needs_a_directory() -> None:
    result = CliRunner().invoke(main, ["serve", "--fsync"])

    assert result.exit_code == 2
    assert "needs --data" in result.stderr
