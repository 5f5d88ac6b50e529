"""The stream's reader, called as Spark calls it: batches, restarts between any two calls, refusals."""

from __future__ import annotations

import asyncio
import json
import pickle
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.types import LongType, StructField, StructType

from ots_emulator import Emulator
from ots_emulator.server.faults import FaultRule
from ots_tunnel.client.sync_tunnel import SyncTunnelClient
from ots_tunnel.client.table_calls import RowChange
from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.errors import ConfigError, PossibleGap, ReplayDiffers, TunnelError, TunnelExpired
from ots_tunnel.model import FINISHED, Action, ChannelStatus, Checkpoint, Stage, TunnelDescription, TunnelType
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.spark.source import TablestoreDataSource
from ots_tunnel.spark.stream import channel_pages, follower
from ots_tunnel.spark.stream.offset_json import offset_from_json
from ots_tunnel.spark.stream.options import DEFAULT_BATCH_BYTES, StreamOptions
from ots_tunnel.spark.stream.tunnel_calls import NO_CLIENT
from tests.support.waiting import wait_until

from .conftest import CREDENTIALS, ROWS, Instance

pytestmark = [pytest.mark.timeout(300), pytest.mark.lasts(10)]


def options(instance: Instance, **more: str) -> dict[str, str]:
    return {
        "endpoint": instance.endpoint,
        "instance": "demo",
        "table": "flights",
        "tunnel": "stream",
        "credentialsDirectory": str(instance.secrets),
        "heartbeatIntervalSeconds": "5",
        **more,
    }


def reader_of(instance: Instance, **more: str) -> DataSourceStreamReader:
    source = TablestoreDataSource(options(instance, **more))
    schema = source.schema()
    assert isinstance(schema, StructType)
    return source.streamReader(schema)


def test_what_is_imported_for_a_stream_is_left_out_of_the_collections_behind_each_batch(
    instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    frozen: list[bool] = []
    monkeypatch.setattr("ots_tunnel.spark.source.settle", lambda: frozen.append(True))

    reader_of(instance)

    assert frozen


def write(instance: Instance, *numbers: int, action: Action = Action.PUT) -> None:
    """Change the rows of these numbers, each in its own write."""
    for number in numbers:
        key = (("carrier", f"n{number % 3}"), ("flight", number))
        cells = () if action is Action.DELETE else (Column("delay", number, None),)
        body = encode_row(key, cells, delete=action is Action.DELETE)
        outcomes = instance.client.batch_write("flights", [RowChange(action, body)])
        assert [outcome.code for outcome in outcomes] == [None]


@dataclass
class Tunnels:
    """Tunnels of the table `flights`."""

    client: SyncTunnelClient

    def create(self, name: str = "stream", kind: TunnelType = TunnelType.Stream) -> None:
        self.client.create_tunnel("flights", name, kind)
        wait_until(lambda: self.describe(name).tunnel.stage != Stage.INIT)

    def describe(self, name: str = "stream") -> TunnelDescription:
        return self.client.describe_tunnel("flights", name)

    def is_over(self, channel_id: str) -> bool:
        found = {channel.channel_id: channel.status for channel in self.describe().channels}
        return any(name == channel_id and status is ChannelStatus.TERMINATED for name, status in found.items())


@pytest.fixture
def tunnels(instance: Instance) -> Iterator[Tunnels]:
    client = SyncTunnelClient(instance.endpoint, "demo", CREDENTIALS)
    yield Tunnels(client)
    client.close()


@dataclass
class Engine:
    """Spark's part: its two logs, and its calls in their order; each text goes through JSON, as in the log."""

    reader: DataSourceStreamReader
    offsets: list[str] = field(default_factory=list)
    committed: int = 0
    batches: dict[int, list[dict[str, Any]]] = field(default_factory=dict)

    def plan(self) -> bool:
        """Log the end of the next batch; whether there is one."""
        if not self.offsets:
            self.offsets.append(json.dumps(self.reader.initialOffset()))
        start = self.offsets[-1]
        end = json.dumps(self.reader.latestOffset(json.loads(start), self.reader.getDefaultReadLimit()))
        if end != start:
            self.offsets.append(end)
        return end != start

    def run(self) -> None:
        """Read the batch that was logged last."""
        start, end = (json.loads(text) for text in self.offsets[-2:])
        partitions = self.reader.partitions(start, end)
        sent = [pickle.loads(pickle.dumps(partition)) for partition in partitions]
        batches = [batch for partition in sent for batch in self.reader.read(partition)]
        rows = pa.Table.from_batches(batches).to_pylist() if batches else []
        number = len(self.offsets) - 1
        assert self.batches.setdefault(number, rows) == rows, "a batch that came again differs"

    def commit(self) -> None:
        self.committed = len(self.offsets) - 1

    def rows(self) -> list[dict[str, Any]]:
        return [row for number in sorted(self.batches) for row in self.batches[number]]

    def turn(self) -> bool:
        """One whole batch; whether there was one."""
        found = self.plan()
        if found:
            self.run()
        self.commit()
        return found

    def until_rows(self, count: int, seconds: float = 60) -> list[dict[str, Any]]:
        """Batches until there are so many rows."""
        give_up = time.monotonic() + seconds
        while len(self.rows()) < count:
            assert time.monotonic() < give_up, f"{len(self.rows())} of {count} rows within {seconds} s"
            self.turn()
        return self.rows()

    def restart(self, reader: DataSourceStreamReader) -> None:
        """A new process: what is logged and not committed comes again."""
        self.reader.stop()
        self.reader = reader
        if self.committed < len(self.offsets) - 1:
            self.run()
            self.commit()


@pytest.fixture
def engines() -> Iterator[list[Engine]]:
    started: list[Engine] = []
    yield started
    for engine in started:
        engine.reader.stop()


def engine_of(instance: Instance, engines: list[Engine], **more: str) -> Engine:
    engine = Engine(reader_of(instance, **more))
    engines.append(engine)
    return engine


def flights(rows: list[dict[str, Any]]) -> list[int]:
    return [row["key"]["flight"] for row in rows]


def test_changes_come_in_their_order_with_their_cells(
    instance: Instance, tunnels: Tunnels, engines: list[Engine]
) -> None:
    tunnels.create()
    write(instance, 9001, 9002)
    write(instance, 9001, action=Action.UPDATE)
    write(instance, 9002, action=Action.DELETE)

    rows = engine_of(instance, engines).until_rows(4)

    assert [(row["action"], row["key"]["flight"]) for row in rows] == [
        ("PUT", 9001),
        ("PUT", 9002),
        ("UPDATE", 9001),
        ("DELETE", 9002),
    ]
    assert rows[0]["key"] == {"carrier": "n1", "flight": 9001}
    assert [(cell["name"], cell["value"]["integer"]) for cell in rows[0]["cells"]] == [("delay", 9001)]
    assert [row["sequence"]["timestamp_us"] for row in rows] == sorted(row["sequence"]["timestamp_us"] for row in rows)
    assert rows[3]["cells"] == []


def test_declared_columns_are_columns(instance: Instance, tunnels: Tunnels, engines: list[Engine]) -> None:
    tunnels.create()
    write(instance, 9001)

    (row,) = engine_of(instance, engines, columns="delay BIGINT, remark STRING").until_rows(1)

    assert (row["delay"], row["remark"], row["deleted"], row["cells"]) == (9001, None, [], [])


def test_existing_rows_come_before_changes(instance: Instance, tunnels: Tunnels, engines: list[Engine]) -> None:
    tunnels.create(kind=TunnelType.BaseAndStream)
    write(instance, 9001)
    engine = engine_of(instance, engines)

    rows = engine.until_rows(ROWS + 2)

    assert [row["sequence"] is None for row in rows] == [True] * (ROWS + 1) + [False]
    assert sorted(flights(rows)[:ROWS]) == list(range(ROWS))
    assert flights(rows)[ROWS:] == [9001, 9001]  # the scan of the existing rows is live


def test_a_batch_in_doubt_comes_again_after_a_restart(
    instance: Instance, tunnels: Tunnels, engines: list[Engine]
) -> None:
    tunnels.create()
    engine = engine_of(instance, engines)
    write(instance, *range(9000, 9005))
    engine.until_rows(5)
    write(instance, *range(9005, 9010))
    wait_until(engine.plan)
    engine.run()

    # killed before the commit; meanwhile the table goes on
    write(instance, *range(9010, 9015))
    engine.restart(reader_of(instance))

    assert flights(engine.until_rows(15)) == list(range(9000, 9015))


def test_a_restart_goes_on_where_spark_is_and_not_where_the_tunnel_is(
    instance: Instance, tunnels: Tunnels, engines: list[Engine]
) -> None:
    tunnels.create()
    engine = engine_of(instance, engines)
    write(instance, *range(9000, 9005))
    engine.until_rows(5)  # committed, and the process ends before it learns of it

    engine.restart(reader_of(instance))
    write(instance, 9005)

    assert flights(engine.until_rows(6)) == list(range(9000, 9006))


@pytest.mark.parametrize("options", [{}, {"clientTag": "01234567"}], ids=["the same tag", "another tag"])
def test_the_clients_of_a_former_process_are_ended(
    instance: Instance, tunnels: Tunnels, engines: list[Engine], options: dict[str, str]
) -> None:
    """Their channels would be taken until the heartbeat timeout."""
    tunnels.create()
    engine = engine_of(instance, engines)
    write(instance, 9000)
    engine.until_rows(1)
    former = engine.reader
    clients = {channel.client_id for channel in tunnels.describe().channels}

    engine.reader = reader_of(instance, **options)  # the former one did not stop
    engine.plan()

    wait_until(lambda: {channel.client_id for channel in tunnels.describe().channels}.isdisjoint({*clients, ""}))
    tags = {str(channel.client_id).partition("spark-")[0] for channel in tunnels.describe().channels}
    assert tags == {"01234567-" if options else ""}
    former.stop()


def test_a_split_and_a_merge_lose_nothing(
    instance: Instance, emulator: Emulator, tunnels: Tunnels, engines: list[Engine]
) -> None:
    tunnels.create()
    engine = engine_of(instance, engines)
    write(instance, *range(9000, 9010))
    engine.until_rows(10)

    parent, *children = emulator.call("split", "demo", "flights")
    write(instance, *range(9010, 9020))
    rows = engine.until_rows(20)
    assert sorted(flights(rows)) == list(range(9000, 9020))
    assert {row["channel"] for row in rows[10:]} <= {parent, *children}
    wait_until(lambda: not engine.turn() and tunnels.is_over(parent))

    *_, child = emulator.call("merge", "demo", "flights")
    write(instance, *range(9020, 9030))
    rows = engine.until_rows(30)

    assert sorted(flights(rows)) == list(range(9000, 9030))
    assert rows[-1]["channel"] == child
    for key in {row["key"]["carrier"] for row in rows}:
        found = [row["key"]["flight"] for row in rows if row["key"]["carrier"] == key]
        assert found == sorted(found), "parents before children"


@pytest.mark.parametrize("is_read", [True, False], ids=["written", "logged"])
def test_a_batch_with_the_end_of_a_parent_comes_again_before_the_children(
    instance: Instance, emulator: Emulator, tunnels: Tunnels, engines: list[Engine], is_read: bool
) -> None:
    tunnels.create()
    engine = engine_of(instance, engines)
    write(instance, *range(9000, 9005))
    engine.until_rows(5)
    write(instance, *range(9005, 9010))
    parent, *children = emulator.call("split", "demo", "flights")
    write(instance, *range(9010, 9020))

    def has_end() -> bool:
        """Whether the batch that is logged last has the end; the ones before are committed."""
        if engine.committed < len(engine.offsets) - 1:
            engine.run()
            engine.commit()
        return engine.plan() and offset_from_json(json.loads(engine.offsets[-1])).channels[parent].is_finished

    wait_until(has_end)
    if is_read:
        engine.run()
    # killed before the commit: nothing of the children may be read yet, and the parent has to be readable still
    assert not tunnels.is_over(parent)
    engine.restart(reader_of(instance))
    before = flights(engine.rows())
    rows = engine.until_rows(20)

    assert before == list(range(9000, 9010))
    assert flights(rows)[:10] == before
    assert sorted(flights(rows)) == list(range(9000, 9020))
    assert {row["channel"] for row in rows[10:]} <= set(children)
    wait_until(lambda: not engine.turn() and tunnels.is_over(parent))


def test_a_channel_that_ends_needs_no_further_records(
    instance: Instance, emulator: Emulator, tunnels: Tunnels, engines: list[Engine]
) -> None:
    """The end of the parent is acknowledged without a later batch; otherwise its children would never open."""
    tunnels.create()
    engine = engine_of(instance, engines)
    write(instance, 9000)
    engine.until_rows(1)

    parent, *_ = emulator.call("split", "demo", "flights")

    wait_until(lambda: not engine.turn() and tunnels.is_over(parent))


def test_a_batch_has_a_limit(instance: Instance, tunnels: Tunnels, engines: list[Engine]) -> None:
    tunnels.create(kind=TunnelType.BaseData)
    engine = engine_of(instance, engines, maxBytesPerBatch=str(1 << 20))

    engine.until_rows(ROWS)

    # a page of the emulator has 1,000 rows of about 1,200 bytes at most: each is a batch alone
    sizes = [len(rows) for rows in engine.batches.values() if rows]
    assert sum(sizes) == ROWS
    assert max(sizes) <= 1000


def test_what_is_available_now_is_read_to_its_end(instance: Instance, tunnels: Tunnels, engines: list[Engine]) -> None:
    tunnels.create(kind=TunnelType.BaseAndStream)
    write(instance, *range(9000, 9005))
    engine = engine_of(instance, engines)
    engine.reader.prepareForTriggerAvailableNow()

    while engine.turn():
        pass

    assert len(engine.rows()) == ROWS + 10
    assert engine.reader.reportLatestOffset()["heldBytes"] == 0


def test_a_second_query_is_refused(instance: Instance, tunnels: Tunnels, engines: list[Engine]) -> None:
    tunnels.create()
    write(instance, 9000)
    engine_of(instance, engines).until_rows(1)

    with pytest.raises(
        ConfigError, match=r"^option 'tunnel': found 'stream', which client spark-\S+ consumes; allowed"
    ):
        engine_of(instance, engines).plan()


def test_the_checkpoint_of_another_tunnel_is_refused(
    instance: Instance, tunnels: Tunnels, engines: list[Engine]
) -> None:
    tunnels.create()
    tunnels.create("other")
    engine = engine_of(instance, engines)
    wait_until(engine.plan)

    with pytest.raises(
        ConfigError, match=r"^checkpointLocation: found the offsets of tunnel \S+, option 'tunnel' names"
    ):
        engine.restart(reader_of(instance, tunnel="other"))


def test_a_channel_that_another_client_ended_is_refused(
    instance: Instance, emulator: Emulator, tunnels: Tunnels, engines: list[Engine]
) -> None:
    tunnels.create()
    engine = engine_of(instance, engines)
    write(instance, 9000)
    engine.until_rows(1)
    engine.reader.stop()
    emulator.call("split", "demo", "flights")
    other = engine_of(instance, engines)

    wait_until(
        lambda: (
            not other.turn() and any(found.status is ChannelStatus.TERMINATED for found in tunnels.describe().channels)
        )
    )
    other.reader.stop()
    engine.reader = reader_of(instance)

    with pytest.raises(ConfigError, match=r"^checkpointLocation: channel \S+ was ended by another client"):
        engine.plan()
    engine.reader.stop()


def test_a_channel_that_others_had_read_to_its_end_is_none_of_a_new_folder(
    instance: Instance, emulator: Emulator, tunnels: Tunnels, engines: list[Engine]
) -> None:
    tunnels.create()
    parent, *_ = emulator.call("split", "demo", "flights")

    async def read_to_its_end() -> None:
        """As a client that is killed before its heartbeat tells that."""
        client, tunnel_id = TunnelClient(instance.endpoint, "demo", CREDENTIALS), tunnels.describe().tunnel.tunnel_id
        await client.checkpoint(tunnel_id, NO_CLIENT, parent, Checkpoint(FINISHED, 1))
        await client.close()

    asyncio.run(read_to_its_end())
    engine = engine_of(instance, engines)
    write(instance, 9000)
    engine.until_rows(1)
    wait_until(lambda: not engine.turn() and tunnels.is_over(parent))

    engine.restart(reader_of(instance))
    write(instance, 9001)

    assert flights(engine.until_rows(2)) == [9000, 9001]


def query_with_unread_children(
    instance: Instance, emulator: Emulator, tunnels: Tunnels, engines: list[Engine]
) -> tuple[Engine, list[str]]:
    """A stopped query that has read a channel to its end, and none of its children; the ids of these."""
    tunnels.create()
    engine = engine_of(instance, engines)
    write(instance, *range(9000, 9010))
    engine.until_rows(10)
    parent, *children = emulator.call("split", "demo", "flights")
    tunnel_id = tunnels.describe().tunnel.tunnel_id
    for child in children:
        emulator.call("suspend", "demo", tunnel_id, child)
    wait_until(lambda: not engine.turn() and tunnels.is_over(parent))
    engine.reader.stop()
    for child in children:
        emulator.call("resume", "demo", tunnel_id, child)
    write(instance, *range(9010, 9020))
    return engine, children


def test_channels_that_began_while_the_query_was_stopped_are_read_from_their_beginning(
    instance: Instance, emulator: Emulator, tunnels: Tunnels, engines: list[Engine]
) -> None:
    engine, _ = query_with_unread_children(instance, emulator, tunnels, engines)

    engine.reader = reader_of(instance)

    assert sorted(flights(engine.until_rows(20))) == list(range(9000, 9020))
    engine.restart(reader_of(instance))
    write(instance, 9020)
    assert flights(engine.until_rows(21))[20:] == [9020]


@pytest.mark.parametrize("to_their_ends", [False, True], ids=["moved", "ended"])
def test_channels_that_another_client_read_since_the_last_batch_are_refused(
    instance: Instance, emulator: Emulator, tunnels: Tunnels, engines: list[Engine], to_their_ends: bool
) -> None:
    engine, children = query_with_unread_children(instance, emulator, tunnels, engines)
    other = engine_of(instance, engines)
    other.until_rows(10)
    if to_their_ends:
        emulator.call("merge", "demo", "flights")
        wait_until(lambda: not other.turn() and all(tunnels.is_over(child) for child in children))
    else:
        wait_until(lambda: not other.turn() and any(found.rows for found in tunnels.describe().channels[1:]))
    other.reader.stop()

    engine.reader = reader_of(instance)
    with pytest.raises(ConfigError, match=r"^checkpointLocation: channel \S+ was read by another client before"):
        engine.plan()
    engine.reader.stop()

    other.restart(reader_of(instance))
    write(instance, 9020)
    assert 9020 in flights(other.until_rows(11)), "its own folder began with what was there"


def test_a_wrong_type_names_column_and_key_and_starts_no_task(
    instance: Instance, tunnels: Tunnels, engines: list[Engine]
) -> None:
    tunnels.create()
    write(instance, 9000)
    engine = engine_of(instance, engines, columns="delay STRING")
    wait_until(engine.plan)

    with pytest.raises(ConfigError, match=r"9000.*column 'delay': found integer, allowed is string; leave the column"):
        engine.run()


def test_changes_that_may_be_missing_stop_the_query(
    instance: Instance, emulator: Emulator, tunnels: Tunnels, engines: list[Engine]
) -> None:
    tunnels.create()
    emulator.call("change_settings", after_retention="Oldest", date_skew=None)
    write(instance, 9000)
    emulator.call("advance_clock", 169 * 3600.0)
    write(instance, 9001)
    engine = engine_of(instance, engines)

    with pytest.raises(PossibleGap, match="may be missing"):
        wait_until(engine.plan)

    engine.reader.stop()
    passing = engine_of(instance, engines, onPossibleGap="continue")
    assert flights(passing.until_rows(1)) == [9001]
    (channel,) = tunnels.describe().channels
    told = passing.reader.reportLatestOffset()
    assert told is not None
    ((start, end),) = (told["passedGaps"][channel.channel_id],)
    assert end - start > 3600


def test_a_query_that_was_idle_for_longer_than_the_retention_misses_nothing(
    instance: Instance,
    emulator: Emulator,
    tunnels: Tunnels,
    engines: list[Engine],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The service leaves the token of an idle channel, and so its consume point, where it is."""
    monkeypatch.setattr(channel_pages, "REFRESH_SECONDS", 0.0)
    tunnels.create()
    emulator.call("change_settings", idle_advance=False, after_retention="Oldest", date_skew=None)
    write(instance, 9000)
    engine = engine_of(instance, engines)
    engine.until_rows(1)
    written = tunnels.describe().service_time
    assert written is not None
    for _ in range(3):
        emulator.call("advance_clock", 100 * 3600.0)
        now = tunnels.describe().service_time
        assert now is not None
        wait_until(lambda now=now: engine.turn() and all(until >= int(now) for until in untils(engine)))
        assert tunnels.describe().channels[0].consume_point_ns < (written + 60) * 1e9

    engine.restart(reader_of(instance))
    write(instance, 9001)

    assert flights(engine.until_rows(2)) == [9000, 9001]


def test_short_runs_on_a_table_that_is_idle_for_longer_than_the_retention_miss_nothing(
    instance: Instance, emulator: Emulator, tunnels: Tunnels, engines: list[Engine]
) -> None:
    """Each run reads to the end and ends, long before a batch without records is due in its own time."""
    tunnels.create()
    emulator.call("change_settings", idle_advance=False, after_retention="Oldest", date_skew=None)
    write(instance, 9000)
    engine = engine_of(instance, engines)
    engine.until_rows(1)
    for _ in range(5):
        emulator.call("advance_clock", 40 * 3600.0)  # the retention is a week
        engine.restart(reader_of(instance))
        engine.reader.prepareForTriggerAvailableNow()
        while engine.turn():
            pass

    engine.restart(reader_of(instance))
    write(instance, 9001)

    assert flights(engine.until_rows(2)) == [9000, 9001]


def untils(engine: Engine) -> list[int]:
    """Until when each channel was read, as the last offset tells."""
    return [found.position.until or 0 for found in offset_from_json(json.loads(engine.offsets[-1])).channels.values()]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"tunnel": ""}, "option 'tunnel' is missing"),
        ({"tunnel": "none"}, "option 'tunnel': found 'none', table 'flights' has no such tunnel; create it with"),
        ({"maxBytesPerBatch": "5"}, "option 'maxBytesPerBatch': found '5', allowed are 1048576 and more"),
        ({"heartbeatTimeoutSeconds": "9"}, "option 'heartbeatTimeoutSeconds': found '9', allowed are 15 and more"),
        ({"columns": "key STRING"}, "option 'columns': found 'key', which each row has by itself"),
        ({"columns": ""}, "option 'columns': found none"),
        ({"mode": "raw"}, "option 'mode' is unknown, allowed are endpoint, instance"),
        ({"onPossibleGap": "ignore"}, "option 'onPossibleGap': found 'ignore', allowed are stop and continue"),
    ],
)
def test_bad_options_are_one_line(instance: Instance, more: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=f"^{message}") as caught:
        reader_of(instance, **more).initialOffset()

    assert "\n" not in str(caught.value)


def test_what_a_stream_is_not(instance: Instance) -> None:
    source = TablestoreDataSource(options(instance))
    other = StructType([StructField("flight", LongType())])

    with pytest.raises(ConfigError, match=r"^the schema: found struct<flight:bigint>, allowed is that of load\(\)"):
        source.streamReader(other)
    with pytest.raises(ConfigError, match=r"^option 'tunnel': found in spark\.read"):
        source.reader(other)
    with pytest.raises(ConfigError, match=r"^writeStream: format 'ots' has no sink of its own; use foreachBatch"):
        source.streamWriter(other, False)


def test_the_reader_can_be_pickled_before_it_is_used(instance: Instance) -> None:
    assert isinstance(pickle.loads(pickle.dumps(reader_of(instance))), DataSourceStreamReader)
    assert StreamOptions.parse(options(instance)).batch_bytes == DEFAULT_BATCH_BYTES


def test_an_expired_tunnel_ends_the_query_that_follows_it(
    instance: Instance, emulator: Emulator, tunnels: Tunnels, engines: list[Engine]
) -> None:
    tunnels.create()
    engine = engine_of(instance, engines)
    write(instance, 9000)
    engine.until_rows(1)

    emulator.call("expire_tunnel", "demo", "stream")

    with pytest.raises(TunnelExpired):
        wait_until(engine.plan, 60)


def test_a_tunnel_whose_description_alone_tells_that_it_has_expired_ends_the_query(
    instance: Instance, tunnels: Tunnels, engines: list[Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which other calls tell it is known of no service; the query would wait without end and without an error."""
    tunnels.create()
    engine = engine_of(instance, engines)
    write(instance, 9000)
    monkeypatch.setattr(follower, "WATCH_SECONDS", 0.1)
    engine.until_rows(1)

    async def expired(*_: object) -> TunnelDescription:
        raise TunnelExpired("OTSTunnelExpired", "tunnel 'stream' of table 'flights' has expired: create it again")

    monkeypatch.setattr(follower, "describe", expired)

    with pytest.raises(TunnelExpired, match="'stream' of table 'flights' has expired"):
        wait_until(engine.plan, 60)


def test_errors_of_the_service_reach_the_query(instance: Instance, tunnels: Tunnels, engines: list[Engine]) -> None:
    tunnels.create()
    engine = engine_of(instance, engines)
    write(instance, 9000)
    engine.until_rows(1)

    tunnels.client.delete_tunnel("flights", "stream")

    with pytest.raises(TunnelError, match="tunnel"):
        wait_until(lambda: engine.plan(), 60)


@pytest.mark.parametrize(
    ("operation", "code"),
    [("Checkpoint", "OTSServerBusy"), ("Shutdown", "OTSServerBusy"), ("Shutdown", "OTSResourceGone")],
)
def test_one_call_that_passes_does_not_end_a_query_at_its_start(
    instance: Instance, emulator: Emulator, tunnels: Tunnels, engines: list[Engine], operation: str, code: str
) -> None:
    tunnels.create()
    engine = engine_of(instance, engines)
    write(instance, *range(9000, 9005))
    engine.until_rows(5)
    former = engine.reader
    if operation == "Checkpoint":
        former.stop()
    emulator.faults.add(FaultRule(operation, count=1, code=code))
    engine.reader = reader_of(instance)
    try:
        engine.plan()
    finally:
        former.stop()


def late(
    instance: Instance,
    emulator: Emulator,
    tunnels: Tunnels,
    engines: list[Engine],
    variant: str,
    *,
    is_split: bool = False,
) -> Engine:
    """A query with a folder that stood still for longer than the retention; 9001 is gone, 9002 is left.

    Args:
        is_split: whether the table was split between both.
    """
    tunnels.create()
    emulator.call("change_settings", after_retention=variant, date_skew=None)
    write(instance, 9000)
    engine = engine_of(instance, engines)
    engine.until_rows(1)
    while engine.turn():
        pass
    engine.reader.stop()
    write(instance, 9001)
    if is_split:
        emulator.call("split", "demo", "flights")
    emulator.call("advance_clock", 100 * 3600.0)
    write(instance, 9002)
    emulator.call("advance_clock", 100 * 3600.0)
    return engine


#: How the service goes on behind lost changes; in the last way it moves the checkpoint when the channel is opened.
VARIANTS = ["Oldest", "Latest", "LatestAtOpen"]


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_query_with_a_folder_stops_at_a_gap(
    instance: Instance, emulator: Emulator, tunnels: Tunnels, engines: list[Engine], variant: str
) -> None:
    engine = late(instance, emulator, tunnels, engines, variant)
    engine.reader = reader_of(instance)

    with pytest.raises(PossibleGap):
        wait_until(engine.plan, 60)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_query_with_a_folder_passes_a_gap(
    instance: Instance, emulator: Emulator, tunnels: Tunnels, engines: list[Engine], variant: str
) -> None:
    engine = late(instance, emulator, tunnels, engines, variant)
    engine.reader = reader_of(instance, onPossibleGap="continue")

    def has_passed() -> bool:
        engine.turn()
        told = engine.reader.reportLatestOffset()
        return bool(told and told["passedGaps"])

    wait_until(has_passed, 60)
    write(instance, 9003)
    wait_until(lambda: engine.turn() and 9003 in flights(engine.rows()), 60)


def overtaken(
    instance: Instance, emulator: Emulator, tunnels: Tunnels, engines: list[Engine], variant: str, **more: str
) -> Engine:
    """A query that has read 9000 and 9001, of which Spark has 9000, as it reads on; 9002 is gone, 9003 is left."""
    tunnels.create()
    emulator.call("change_settings", after_retention=variant, date_skew=None)
    engine = engine_of(instance, engines, **more)
    write(instance, 9000)
    engine.until_rows(1)
    wait_until(lambda: not engine.turn() and not held_bytes(engine))
    write(instance, 9001)
    wait_until(lambda: held_bytes(engine))
    emulator.faults.add(FaultRule("ReadRecords", code="OTSServerBusy"))
    write(instance, 9002)
    emulator.call("advance_clock", 100 * 3600.0)
    write(instance, 9003)
    emulator.call("advance_clock", 100 * 3600.0)
    emulator.clear_faults()
    return engine


def held_bytes(engine: Engine) -> int:
    return int((engine.reader.reportLatestOffset() or {}).get("heldBytes", 0))


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_query_that_the_retention_overtakes_stops_at_the_gap(
    instance: Instance, emulator: Emulator, tunnels: Tunnels, engines: list[Engine], variant: str
) -> None:
    engine = overtaken(instance, emulator, tunnels, engines, variant)

    with pytest.raises(PossibleGap):
        wait_until(lambda: engine.turn() and False, 60)
    assert flights(engine.rows()) in ([9000], [9000, 9001])
    engine.restart(reader_of(instance))
    with pytest.raises(PossibleGap):
        wait_until(engine.turn, 60)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_query_that_the_retention_overtakes_passes_the_gap(
    instance: Instance, emulator: Emulator, tunnels: Tunnels, engines: list[Engine], variant: str
) -> None:
    engine = overtaken(instance, emulator, tunnels, engines, variant, onPossibleGap="continue")

    def has_passed() -> bool:
        engine.turn()
        told = engine.reader.reportLatestOffset()
        return bool(told and told["passedGaps"])

    wait_until(has_passed, 60)
    write(instance, 9004)
    wait_until(lambda: engine.turn() and 9004 in flights(engine.rows()), 60)
    left = [9003] if variant == "Oldest" else []
    assert flights(engine.rows()) == [9000, 9001, *left, 9004], "what was read before is not lost"
    (found,) = offset_from_json(json.loads(engine.offsets[-1])).channels.values()
    assert found.position.gap is not None, "a process that is killed now has told of it"


@pytest.mark.parametrize("variant", ["Oldest", "Latest", "LatestAtOpen"])
def test_a_logged_batch_whose_records_are_gone_names_its_channel(
    instance: Instance, emulator: Emulator, tunnels: Tunnels, engines: list[Engine], variant: str
) -> None:
    tunnels.create()
    emulator.call("change_settings", after_retention=variant, date_skew=None)
    engine = engine_of(instance, engines)
    write(instance, 9000)
    wait_until(engine.plan, 60)
    engine.reader.stop()
    emulator.call("advance_clock", 200 * 3600.0)
    engine.reader = reader_of(instance)

    (channel,) = offset_from_json(json.loads(engine.offsets[-1])).channels
    with pytest.raises(ReplayDiffers, match=f"^channel {channel}: .* cannot be read again: .*; begin with a new"):
        engine.run()


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_parent_that_the_service_has_ended_unread_is_a_gap_and_no_other_client(
    instance: Instance, emulator: Emulator, tunnels: Tunnels, engines: list[Engine], variant: str
) -> None:
    engine = late(instance, emulator, tunnels, engines, variant, is_split=True)
    for _ in range(2):
        engine.reader = reader_of(instance)
        with pytest.raises(PossibleGap):
            wait_until(engine.plan, 60)
        engine.reader.stop()

    # a process, and another one behind it
    engine.reader = reader_of(instance, onPossibleGap="continue")
    for number in (9003, 9004):
        write(instance, number)
        wait_until(lambda number=number: engine.turn() and number in flights(engine.rows()), 60)
        told = engine.reader.reportLatestOffset()
        assert number == 9004 or (told and told["passedGaps"])
        engine.restart(reader_of(instance, onPossibleGap="continue"))


def test_a_gap_is_told_by_the_next_process_where_one_was_killed_before_it_told(
    instance: Instance, emulator: Emulator, tunnels: Tunnels, engines: list[Engine]
) -> None:
    engine = late(instance, emulator, tunnels, engines, "Oldest")
    engine.reader = reader_of(instance, onPossibleGap="continue")
    wait_until(engine.plan, 60)  # the batch behind the gap is logged; Spark tells of no batch before it is written

    engine.restart(reader_of(instance))
    engine.plan()
    told = engine.reader.reportLatestOffset()
    assert told is not None
    ((start, end),) = told["passedGaps"].values()
    assert end - start > 99 * 3600


def test_figures_are_in_a_file_where_one_is_asked_for(
    instance: Instance, tunnels: Tunnels, engines: list[Engine], tmp_path: Path
) -> None:
    tunnels.create()
    write(instance, 9001)

    engine_of(instance, engines, reportFile=str(tmp_path / "report")).until_rows(1)

    assert json.loads((tmp_path / "report").read_text())["channels"] == 1
