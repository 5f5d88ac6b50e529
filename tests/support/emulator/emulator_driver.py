"""Calls an emulator in process with typed messages and a stopped clock."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ots_emulator import Emulator, ManualClock, Settings
from ots_tunnel.model import Action, CellOp, Credentials, PrimaryKey
from ots_tunnel.protocol import table_pb2, tunnel_pb2
from ots_tunnel.protocol.http.message import HttpResponse
from ots_tunnel.protocol.http.operations import TABLE_OPERATIONS, TUNNEL_OPERATIONS
from ots_tunnel.protocol.http.rpc import build_request, parse_response
from ots_tunnel.protocol.plainbuffer.codec import DecodedRow, decode_row, decode_rows, encode_primary_key, encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from tests.support.emulator.emulator_state import crashed, picture_of, reopened, unkept

CREDENTIALS = Credentials("test-id", "test-secret")
IGNORE = table_pb2.Condition(row_existence="IGNORE")


def put(name: str, value: Any, timestamp_ms: int | None = None) -> Column:
    return Column(name, value, timestamp_ms)


def delete_all(name: str) -> Column:
    return Column(name, None, None, CellOp.DELETE_ALL_VERSIONS)


def delete_one(name: str, timestamp_ms: int) -> Column:
    return Column(name, None, timestamp_ms, CellOp.DELETE_ONE_VERSION)


def increment(name: str, step: int) -> Column:
    return Column(name, step, None, CellOp.INCREMENT)


class Driver:
    """One instance ``demo``; keys of its tables are one integer column ``k``.

    Args:
        data: a data directory; with it every call is checked to have kept all that it changed.
    """

    def __init__(self, data: Path | None = None, **settings: Any) -> None:
        self.clock = ManualClock()
        self.data = data
        self.settings = Settings(**{"init_delay": 0.0, **settings})
        self.emulator = Emulator(settings=self.settings, clock=self.clock, data=data)

    @property
    def now_ms(self) -> int:
        return int(self.clock.now() * 1000)

    async def send(self, name: str, message: Any) -> HttpResponse:
        operation = TUNNEL_OPERATIONS.get(name) or TABLE_OPERATIONS[name]
        request = build_request(
            operation, message, instance="demo", credentials=CREDENTIALS, now=self.clock.now(), trace_id="t"
        )
        if self.data is None:
            return await self.emulator.handle(request)
        # Commit what the test changed directly: it is not part of the call.
        self.emulator.commit()
        try:
            return await self.emulator.handle(request)
        finally:
            assert not (found := unkept(self.emulator)), f"{name} has left changes that are not stored: {found}"

    def check_crash(self) -> None:
        """Close the emulator and compare it with one that starts from its directory."""
        assert self.data is not None
        self.emulator.commit()
        for instance in self.emulator.instances.values():
            for table in instance.tables.values():
                if table.log is not None:
                    # A start does the same.
                    table.log.expire(int(self.clock.now() * 1_000_000))
        copy = crashed(self.data)
        self.emulator.close()
        assert reopened(copy, self.settings, self.clock) == picture_of(self.emulator)

    async def call(self, name: str, **fields: Any) -> Any:
        operation = TUNNEL_OPERATIONS.get(name) or TABLE_OPERATIONS[name]
        return parse_response(operation, await self.send(name, operation.request_type(**fields)))

    async def refused(self, name: str, **fields: Any) -> tuple[int, str, str]:
        """Status, code and message of a call that the service refuses."""
        operation = TUNNEL_OPERATIONS.get(name) or TABLE_OPERATIONS[name]
        response = await self.send(name, operation.request_type(**fields))
        assert response.status != 200, f"{name} was not refused"
        error = table_pb2.Error.FromString(response.body)
        return response.status, error.code, error.message

    # Tables

    async def create_table(
        self, name: str = "t", *, max_versions: int = 1, ttl: int = -1, deviation: int = 10**9, hours: int | None = None
    ) -> None:
        spec = None
        if hours is not None:
            spec = table_pb2.StreamSpecification(enable_stream=True, expiration_time=hours)
        await self.call(
            "CreateTable",
            table_meta=table_pb2.TableMeta(
                table_name=name, primary_key=[table_pb2.PrimaryKeySchema(name="k", type="INTEGER")]
            ),
            reserved_throughput=table_pb2.ReservedThroughput(capacity_unit=table_pb2.CapacityUnit(read=0, write=0)),
            table_options=table_pb2.TableOptions(
                time_to_live=ttl, max_versions=max_versions, deviation_cell_version_in_sec=deviation
            ),
            stream_spec=spec,
        )

    async def write(self, *changes: tuple[Action, int, Iterable[Column]], table: str = "t") -> Any:
        rows = [
            table_pb2.RowInBatchWriteRowRequest(
                type=action.name,
                row_change=encode_row((("k", key),), columns, delete=action is Action.DELETE),
                condition=IGNORE,
            )
            for action, key, columns in changes
        ]
        batch = table_pb2.TableInBatchWriteRowRequest(table_name=table, rows=rows)
        return (await self.call("BatchWriteRow", tables=[batch])).tables[0].rows

    async def put(self, key: int, *columns: Column, table: str = "t") -> None:
        outcome = await self.write((Action.PUT, key, columns), table=table)
        assert outcome[0].is_ok, outcome[0].error

    async def update(self, key: int, *columns: Column, table: str = "t") -> None:
        outcome = await self.write((Action.UPDATE, key, columns), table=table)
        assert outcome[0].is_ok, outcome[0].error

    async def delete(self, key: int, table: str = "t") -> None:
        await self.write((Action.DELETE, key, ()), table=table)

    async def fill(self, rows: int, table: str = "t", start: int = 0) -> None:
        for first in range(start, start + rows, 200):
            last = min(first + 200, start + rows)
            await self.write(*[(Action.PUT, key, [put("v", key)]) for key in range(first, last)], table=table)

    async def get(self, key: int, *, max_versions: int = 100, table: str = "t", **fields: Any) -> DecodedRow | None:
        answer = await self.call(
            "GetRow",
            table_name=table,
            primary_key=encode_primary_key((("k", key),)),
            max_versions=max_versions or None,
            **fields,
        )
        return decode_row(answer.row) if answer.row else None

    async def cells(self, key: int) -> list[tuple[str, Any, int | None]]:
        row = await self.get(key)
        assert row is not None
        return [(column.name, column.value, column.timestamp_ms) for column in row.columns]

    async def range(
        self, start: PrimaryKey, end: PrimaryKey, *, table: str = "t", **fields: Any
    ) -> tuple[list[int], bytes]:
        fields.setdefault("direction", "FORWARD")
        fields.setdefault("max_versions", 100)
        answer = await self.call(
            "GetRange",
            table_name=table,
            inclusive_start_primary_key=encode_primary_key(start),
            exclusive_end_primary_key=encode_primary_key(end),
            **fields,
        )
        return [row.primary_key[0][1] for row in decode_rows(answer.rows)], answer.next_start_primary_key

    # Tunnels

    async def create_tunnel(
        self, kind: str = "BaseAndStream", *, name: str = "tunnel", table: str = "t", **config: Any
    ) -> str:
        stream = tunnel_pb2.StreamTunnelConfig(**config) if config else None
        wanted = tunnel_pb2.Tunnel(table_name=table, tunnel_name=name, tunnel_type=kind, stream_tunnel_config=stream)
        return str((await self.call("CreateTunnel", tunnel=wanted)).tunnel_id)

    async def describe(self, tunnel_id: str) -> Any:
        return await self.call("DescribeTunnel", table_name="t", tunnel_name="", tunnel_id=tunnel_id)

    async def connect(self, tunnel_id: str, *, timeout: int = 15, tag: str = "test") -> str:
        config = tunnel_pb2.ClientConfig(timeout=timeout, client_tag=tag)
        return str((await self.call("Connect", tunnel_id=tunnel_id, client_config=config)).client_id)

    async def heartbeat(
        self, tunnel_id: str, client_id: str, *reports: tuple[str, int, str]
    ) -> dict[str, tuple[int, str]]:
        channels = [tunnel_pb2.Channel(channel_id=id_, version=version, status=s) for id_, version, s in reports]
        answer = await self.call("Heartbeat", tunnel_id=tunnel_id, client_id=client_id, channels=channels)
        return {
            channel.channel_id: (channel.version, tunnel_pb2.ChannelStatus.Name(channel.status))
            for channel in answer.channels
        }

    async def checkpoint_of(self, tunnel_id: str, channel_id: str) -> Any:
        return await self.call("GetCheckpoint", tunnel_id=tunnel_id, client_id="", channel_id=channel_id)

    async def read(self, tunnel_id: str, channel_id: str, token: str) -> Any:
        return await self.call("ReadRecords", tunnel_id=tunnel_id, client_id="", channel_id=channel_id, token=token)

    async def checkpoint(self, tunnel_id: str, channel_id: str, token: str, sequence: int) -> None:
        await self.call(
            "Checkpoint",
            tunnel_id=tunnel_id,
            client_id="",
            channel_id=channel_id,
            checkpoint=token,
            sequence_number=sequence,
        )

    async def drain(self, tunnel_id: str, channel_id: str) -> tuple[list[tuple[Action, DecodedRow]], str]:
        """Read a channel from its checkpoint until it is finished or has no more records; store no checkpoint."""
        token = (await self.checkpoint_of(tunnel_id, channel_id)).checkpoint
        records: list[tuple[Action, DecodedRow]] = []
        while token != "finished":
            page = await self.read(tunnel_id, channel_id, token)
            records += [(Action(record.action_type), decode_row(record.record)) for record in page.records]
            token = page.next_token
            if not page.may_more_record:
                break
        return records, token

    async def channels(self, tunnel_id: str, kind: str) -> dict[str, Any]:
        described = await self.describe(tunnel_id)
        return {channel.channel_id: channel for channel in described.channels if channel.channel_type == kind}
