"""Content of the fuzzed emulator, and a valid request for every operation on it."""

from __future__ import annotations

from typing import Any, NamedTuple

from google.protobuf.message import Message

from ots_tunnel.errors import ServiceError
from ots_tunnel.protocol import table_pb2 as table
from ots_tunnel.protocol import tunnel_pb2 as tunnel
from ots_tunnel.protocol.http.operations import OPERATIONS_BY_PATH, TABLE_OPERATIONS
from tests.fuzz.rows import WireCell, WireRow, blob, double, integer, text
from tests.support.emulator.emulator_driver import Driver

NOW_MS = 1_700_000_000_000
KEYS = 12
_CONDITION = table.Condition(row_existence="IGNORE")


class Sample(NamedTuple):
    """One valid call; `done` is whether the emulator has executed it once."""

    path: str
    message: Message
    done: bool = True

    @property
    def name(self) -> str:
        return OPERATIONS_BY_PATH[self.path].name


def key_of(number: int) -> tuple[WireCell, ...]:
    """Key of table ``t``."""
    return (WireCell(b"k", integer(number)),)


def wide_key(name: bytes, number: int) -> tuple[WireCell, ...]:
    """Key of table ``w``."""
    return (WireCell(b"s", text(name)), WireCell(b"n", integer(number)), WireCell(b"y", blob(b"\0\x01")))


_CELLS = (
    WireCell(b"a", integer(7), None, NOW_MS - 5),
    WireCell(b"b", text("текст".encode())),
    WireCell(b"c", double(2.5), None, NOW_MS),
    WireCell(b"d", b"\x02\x01"),
    WireCell(b"e", blob(b"\0\xff")),
)
_UPDATES = (
    WireCell(b"a", None, 3, NOW_MS - 5),
    WireCell(b"b", None, 1),
    WireCell(b"n1", integer(1), 4),
    WireCell(b"z", text(b"put")),
)
#: Rows of every kind of change, for both tables: the samples of PlainBuffer mutations.
ROWS: tuple[WireRow, ...] = (
    WireRow(key_of(1), _CELLS),
    WireRow(key_of(2), _UPDATES),
    WireRow(key_of(3), delete=True),
    WireRow(key_of(4)),
    WireRow(wide_key(b"row", 1), _CELLS),
    WireRow(wide_key(b"row", 2), _UPDATES),
    WireRow(wide_key(b"row", 3), delete=True),
    WireRow(wide_key("ключ".encode(), 3)),
    WireRow((WireCell(b"k", b"\x09"),)),
    WireRow((WireCell(b"k", b"\x0a"),)),
    WireRow((WireCell(b"s", text(b"row")), WireCell(b"n", b"\x0a"), WireCell(b"y", b"\x0a"))),
    WireRow((WireCell(b"k", integer(1)), WireCell(b"id", b"\x0b")), _CELLS),
)


def single_filter(comparator: str = "CT_EQUAL", column: str = "a", value: bytes = integer(7)) -> table.Filter:
    content = table.SingleColumnValueFilter(
        comparator=comparator, column_name=column, column_value=value, filter_if_missing=True, latest_version_only=False
    )
    return table.Filter(type="FT_SINGLE_COLUMN_VALUE", filter=content.SerializeToString())


def composite(combinator: str, *parts: table.Filter) -> table.Filter:
    content = table.CompositeColumnValueFilter(combinator=combinator, sub_filters=parts)
    return table.Filter(type="FT_COMPOSITE_COLUMN_VALUE", filter=content.SerializeToString())


def nested(depth: int, combinator: str = "LO_NOT") -> table.Filter:
    """A filter within a filter within a filter."""
    found = single_filter()
    for _ in range(depth):
        found = composite(combinator, *([found] if combinator == "LO_NOT" else [found, single_filter()]))
    return found


_PAGINATION = table.Filter(
    type="FT_COLUMN_PAGINATION", filter=table.ColumnPaginationFilter(offset=1, limit=2).SerializeToString()
)
FILTERS: tuple[table.Filter, ...] = (
    single_filter(),
    single_filter("CT_GREATER_THAN", "b", text(b"x")),
    single_filter("CT_NOT_EXIST", "q", b""),
    single_filter("CT_LESS_EQUAL", "k", integer(5)),
    single_filter("CT_EQUAL", "c", double(float("nan"))),
    single_filter("CT_EQUAL", "d", b"\x0a"),
    composite("LO_OR", single_filter(), single_filter("CT_EXIST", "b")),
    composite("LO_AND", single_filter("CT_EXIST", "b"), _PAGINATION),
    nested(5),
    nested(9, "LO_AND"),
    _PAGINATION,
)


class World:
    """Two tables with rows, versions, streams and a split; two tunnels with clients, channels and tokens."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.samples: list[Sample] = []
        self.tokens: list[str] = []

    async def build(self) -> None:
        """Remove everything and set it up again, through public calls only."""
        call = self.driver.call
        for name in (await call("ListTable")).table_names:
            await call("DeleteTable", table_name=name)
        await self.driver.create_table("t", max_versions=3, hours=24)
        await self._send(_create_table("w", [("s", "STRING"), ("n", "INTEGER"), ("y", "BINARY")], hours=24))
        await self._send(_create_table("gone", [("k", "INTEGER")]))
        both = await self.driver.create_tunnel("BaseAndStream", name="both", table="t")
        stream = await self.driver.create_tunnel("Stream", name="stream", table="w", flag="EARLIEST")
        await self._write_rows()
        self.driver.emulator.split("demo", "t")
        self.samples = [*_table_samples(), *_row_samples()]
        self.tokens = []
        for tunnel_id, name in ((both, "t"), (stream, "w")):
            self.samples += await self._tunnel_samples(tunnel_id, name)
        self.samples += await self._stream_samples("t")
        self.samples += await self._transaction_samples()
        seen = {sample.path for sample in self.samples}
        self.samples += [
            Sample(path, operation.request_type(), False)
            for path, operation in OPERATIONS_BY_PATH.items()
            if path not in seen
        ]

    async def _send(self, message: Message) -> Any:
        name = type(message).__name__.removesuffix("Request")
        fields = {field.name: value for field, value in message.ListFields()}
        return await self.driver.call(name, **fields)

    async def _write_rows(self) -> None:
        for number in range(KEYS):
            await self._send(_put("t", WireRow(key_of(number), _CELLS)))
            await self._send(_put("w", WireRow(wide_key(b"row", number), _CELLS)))
        update = WireRow(key_of(1), (WireCell(b"a", integer(8), None, NOW_MS - 4),)).encode()
        await self._send(table.UpdateRowRequest(table_name="t", row_change=update, condition=_CONDITION))

    async def _tunnel_samples(self, tunnel_id: str, table_name: str) -> list[Sample]:
        driver = self.driver
        client = await driver.connect(tunnel_id)
        await driver.connect(tunnel_id, tag="other")
        held = await driver.heartbeat(tunnel_id, client)
        described = await driver.call("DescribeTunnel", table_name=table_name, tunnel_name="", tunnel_id=tunnel_id)
        channels = [channel.channel_id for channel in described.channels]
        reports = [tunnel.Channel(channel_id=id_, version=held[id_][0], status="OPEN") for id_ in held]
        who = {"tunnel_id": tunnel_id, "client_id": client}
        samples = [
            Sample(
                "/tunnel/describe",
                tunnel.DescribeTunnelRequest(table_name=table_name, tunnel_name="", tunnel_id=tunnel_id),
            ),
            Sample("/tunnel/list", tunnel.ListTunnelRequest(table_name=table_name)),
            Sample("/tunnel/connect", tunnel.ConnectRequest(tunnel_id=tunnel_id, client_config={"timeout": 30})),
            Sample("/tunnel/heartbeat", tunnel.HeartbeatRequest(**who, channels=reports)),
            Sample("/tunnel/getrpo", tunnel.GetRpoRequest(tunnel_id=tunnel_id)),
            Sample("/tunnel/getrpobyoffset", tunnel.GetRpoRequest(tunnel_id=tunnel_id)),
            Sample("/tunnel/schedule", _schedule(tunnel_id, channels[0], "CLOSING")),
            Sample("/tunnel/schedule", _schedule(tunnel_id, channels[-1], "OPEN")),
            Sample("/tunnel/shutdown", tunnel.ShutdownRequest(tunnel_id=tunnel_id, client_id="absent")),
            Sample("/tunnel/delete", tunnel.DeleteTunnelRequest(table_name=table_name, tunnel_name="absent"), False),
            Sample(
                "/tunnel/create",
                tunnel.CreateTunnelRequest(
                    tunnel=tunnel.Tunnel(
                        table_name=table_name,
                        tunnel_name="third",
                        tunnel_type="Stream",
                        stream_tunnel_config=tunnel.StreamTunnelConfig(startOffset=NOW_MS * 1_000_000),
                    )
                ),
                False,
            ),
        ]
        for channel in channels:
            token = (await driver.checkpoint_of(tunnel_id, channel)).checkpoint
            page = await driver.read(tunnel_id, channel, token)
            self.tokens += [token, page.next_token]
            where = {**who, "channel_id": channel}
            samples += [
                Sample("/tunnel/getcheckpoint", tunnel.GetCheckpointRequest(**where)),
                Sample("/tunnel/readrecords", tunnel.ReadRecordsRequest(**where, token=token)),
                Sample(
                    "/tunnel/checkpoint",
                    tunnel.CheckpointRequest(**where, checkpoint=page.next_token, sequence_number=0),
                ),
            ]
        return samples

    async def _stream_samples(self, table_name: str) -> list[Sample]:
        """The calls of direct stream readers that the emulator supports."""
        stream_id = (await self.driver.call("DescribeTable", table_name=table_name)).stream_details.stream_id
        shard, iterator, done = "shard", "iterator", True
        try:
            shards = (await self.driver.call("DescribeStream", stream_id=stream_id)).shards
            shard = shards[0].shard_id
            wanted = {"stream_id": stream_id, "shard_id": shard}
            iterator = (await self.driver.call("GetShardIterator", **wanted)).shard_iterator
        except ServiceError:
            done = False
        return [
            Sample("/ListStream", table.ListStreamRequest(table_name=table_name), done),
            Sample("/DescribeStream", table.DescribeStreamRequest(stream_id=stream_id, shard_limit=10), done),
            Sample("/GetShardIterator", table.GetShardIteratorRequest(stream_id=stream_id, shard_id=shard), done),
            Sample("/GetStreamRecord", table.GetStreamRecordRequest(shard_iterator=iterator, limit=5), done),
        ]

    async def _transaction_samples(self) -> list[Sample]:
        """The calls of local transactions that the emulator supports."""
        if "StartLocalTransaction" not in TABLE_OPERATIONS:
            return []
        operations = {name: TABLE_OPERATIONS[name] for name in TABLE_OPERATIONS if name.endswith("Transaction")}
        start = operations["StartLocalTransaction"]
        await self._send(_create_table("x", [("k", "INTEGER"), ("n", "INTEGER")], transactions=True))
        key = WireRow(key_of(1)).encode()
        transaction_id = "transaction"
        done = True
        try:
            transaction_id = (await self.driver.call(start.name, table_name="x", key=key)).transaction_id
        except ServiceError:
            done = False
        row = WireRow((*key_of(1), WireCell(b"n", integer(1))), _CELLS).encode()
        samples = [Sample(start.path, start.request_type(table_name="x", key=key), False)]
        samples += [
            Sample(operation.path, operation.request_type(transaction_id=transaction_id), False)
            for operation in operations.values()
            if operation is not start
        ]
        samples.append(
            Sample(
                "/PutRow",
                table.PutRowRequest(table_name="x", row=row, condition=_CONDITION, transaction_id=transaction_id),
                done,
            )
        )
        return samples


def _schedule(tunnel_id: str, channel: str, status: str) -> tunnel.ScheduleRequest:
    return tunnel.ScheduleRequest(
        tunnel_id=tunnel_id, channels=[tunnel.Channel(channel_id=channel, version=0, status=status)]
    )


def _create_table(
    name: str, key: list[tuple[str, str]], *, hours: int | None = None, transactions: bool | None = None
) -> table.CreateTableRequest:
    spec = None if hours is None else table.StreamSpecification(enable_stream=True, expiration_time=hours)
    return table.CreateTableRequest(
        table_meta=table.TableMeta(
            table_name=name,
            primary_key=[table.PrimaryKeySchema(name=column, type=kind) for column, kind in key],
            defined_column=[table.DefinedColumnSchema(name="a", type="DCT_INTEGER")],
        ),
        reserved_throughput=table.ReservedThroughput(capacity_unit=table.CapacityUnit(read=0, write=0)),
        table_options=table.TableOptions(
            time_to_live=-1, max_versions=2, deviation_cell_version_in_sec=10**9, allow_update=True
        ),
        stream_spec=spec,
        enable_local_txn=transactions,
    )


def _put(name: str, row: WireRow) -> table.PutRowRequest:
    return table.PutRowRequest(table_name=name, row=row.encode(), condition=_CONDITION)


def _table_samples() -> list[Sample]:
    auto = _create_table("fresh", [("k", "STRING"), ("id", "INTEGER")], hours=1)
    auto.table_meta.primary_key[1].option = table.AUTO_INCREMENT
    options = table.TableOptions(max_versions=2, time_to_live=86_400, deviation_cell_version_in_sec=10**6)
    return [
        Sample("/CreateTable", auto, False),
        Sample("/CreateTable", _create_table("plain", [("k", "BINARY")]), False),
        Sample("/UpdateTable", table.UpdateTableRequest(table_name="t", table_options=options)),
        Sample(
            "/UpdateTable",
            table.UpdateTableRequest(table_name="gone", stream_spec={"enable_stream": True, "expiration_time": 12}),
            False,
        ),
        Sample("/DescribeTable", table.DescribeTableRequest(table_name="t")),
        Sample("/ListTable", table.ListTableRequest()),
        Sample("/DeleteTable", table.DeleteTableRequest(table_name="gone"), False),
        Sample("/ComputeSplitPointsBySize", table.ComputeSplitPointsBySizeRequest(table_name="t", split_size=1)),
    ]


def _row_samples() -> list[Sample]:
    condition = table.Condition(row_existence="EXPECT_EXIST", column_condition=single_filter().SerializeToString())
    key = WireRow(key_of(1)).encode()
    keys = [WireRow(wide_key(b"row", number)).encode() for number in range(3)]
    low, high = (WireRow((WireCell(b"k", kind),)).encode() for kind in (b"\x09", b"\x0a"))
    after = {"return_type": "RT_AFTER_MODIFY", "return_column_names": ["n1"]}
    batch = [
        {"type": kind, "row_change": row.encode(), "condition": _CONDITION}
        for kind, row in zip(("PUT", "UPDATE", "DELETE"), ROWS, strict=False)
    ]
    return [
        Sample("/PutRow", _put("t", ROWS[0])),
        Sample("/PutRow", _put("w", ROWS[4])),
        Sample(
            "/PutRow",
            table.PutRowRequest(
                table_name="t", row=ROWS[0].encode(), condition=condition, return_content={"return_type": "RT_PK"}
            ),
            False,
        ),
        Sample(
            "/UpdateRow",
            table.UpdateRowRequest(
                table_name="t", row_change=ROWS[1].encode(), condition=_CONDITION, return_content=after
            ),
        ),
        Sample(
            "/DeleteRow", table.DeleteRowRequest(table_name="t", primary_key=ROWS[2].encode(), condition=_CONDITION)
        ),
        Sample("/BatchWriteRow", table.BatchWriteRowRequest(tables=[{"table_name": "t", "rows": batch}])),
        Sample(
            "/BatchWriteRow",
            table.BatchWriteRowRequest(tables=[{"table_name": "w", "rows": batch}, {"table_name": "t", "rows": batch}]),
        ),
        Sample(
            "/GetRow",
            table.GetRowRequest(
                table_name="t", primary_key=key, columns_to_get=["a", "b"], max_versions=2, start_column="a"
            ),
        ),
        *(
            Sample(
                "/GetRow",
                table.GetRowRequest(
                    table_name="w",
                    primary_key=keys[1],
                    time_range={"start_time": 0, "end_time": NOW_MS * 2},
                    filter=found.SerializeToString(),
                ),
                False,
            )
            for found in FILTERS
        ),
        Sample(
            "/BatchGetRow",
            table.BatchGetRowRequest(
                tables=[
                    {"table_name": "w", "primary_key": keys, "max_versions": 1},
                    {"table_name": "t", "primary_key": [key], "time_range": {"specific_time": NOW_MS}},
                ]
            ),
        ),
        Sample(
            "/GetRange",
            table.GetRangeRequest(
                table_name="t",
                direction="FORWARD",
                max_versions=1,
                limit=5,
                inclusive_start_primary_key=low,
                exclusive_end_primary_key=high,
                filter=single_filter("CT_EXIST", "b").SerializeToString(),
            ),
        ),
        Sample(
            "/GetRange",
            table.GetRangeRequest(
                table_name="t",
                direction="BACKWARD",
                max_versions=3,
                inclusive_start_primary_key=high,
                exclusive_end_primary_key=low,
                columns_to_get=["k", "a"],
            ),
        ),
    ]
