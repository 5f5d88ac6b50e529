"""Two tables of an emulator, and a copy from one to the other without a worker: reads, rewinds, faults."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from ots_emulator import Emulator, Settings
from ots_tunnel.client.table import TableClient
from ots_tunnel.client.table_calls import RowChange, RowOutcome
from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.config import DeliveryConfig, RetryConfig
from ots_tunnel.credentials import static_credentials
from ots_tunnel.demo.changes import DemoChange
from ots_tunnel.model import (
    FINISHED,
    Channel,
    ChannelId,
    ChannelStatus,
    ChannelType,
    Checkpoint,
    ClientId,
    Credentials,
    PrimaryKey,
    Stage,
    TunnelId,
    TunnelType,
)
from ots_tunnel.protocol.assignment import merge
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.sinks import Batch
from ots_tunnel.sinks.table.sink import TablestoreSink
from ots_tunnel.tables import AsyncTableAdmin, RowWrite, TableSchema
from ots_tunnel.tables.compatibility import planned_schema
from ots_tunnel.transport.inprocess import InProcessTransport
from ots_tunnel.verify.compare import Comparison, compare_tables
from tests.support.guards import OpenGuard

CREDENTIALS = static_credentials(Credentials("test-id", "test-secret"))
SOURCE, COPY = "flights", "flights_copy"
DELIVERY = DeliveryConfig(retry=RetryConfig(backoff_seconds=0.001, backoff_max_seconds=0.002))


class FlakyTableClient(TableClient):
    """Rejects some rows of every request with OTSServerBusy, as the service may."""

    chance: random.Random | None = None

    async def batch_write(
        self,
        table: str,
        rows: Sequence[RowChange],
        *,
        timeout: float = 60,
        before_send: Callable[[], None] | None = None,
    ) -> list[RowOutcome]:
        if self.chance is None:
            return await super().batch_write(table, rows, timeout=timeout, before_send=before_send)
        lucky = [self.chance.random() < 0.8 for _ in rows]
        sent = [row for row, luck in zip(rows, lucky, strict=True) if luck]
        answered = iter(await super().batch_write(table, sent, before_send=before_send) if sent else ())
        return [next(answered) if luck else RowOutcome("OTSServerBusy", "busy") for luck in lucky]


class TablePair:
    """Source and copy in one instance, with methods that fill, copy and compare them."""

    def __init__(self, emulator: Emulator) -> None:
        transport = InProcessTransport(emulator.handle)
        self.emulator = emulator
        self.admin = AsyncTableAdmin.connect(emulator.endpoint, "demo", CREDENTIALS)
        self.tunnels = TunnelClient("http://emulator", "demo", CREDENTIALS, transport)
        self.table = TableClient("http://emulator", "demo", CREDENTIALS, transport)
        self.flaky = FlakyTableClient("http://emulator", "demo", CREDENTIALS, transport)
        self.tunnel_id = TunnelId("")
        self.client_id = ClientId("")
        self.records = 0

    async def create(self, schema: TableSchema, copy: TableSchema | None = None) -> None:
        """Create both tables; the default copy has the planned schema of a destination."""
        await self.admin.create(schema)
        await self.admin.create(copy or planned_schema(schema, COPY))

    async def create_tunnel(self, kind: TunnelType = TunnelType.BaseAndStream) -> None:
        self.tunnel_id = await self.tunnels.create_tunnel(SOURCE, "t", kind)
        self.client_id = await self.tunnels.connect(self.tunnel_id, 60, "test")

    def sink(self, *, lanes: int = 4, delivery: DeliveryConfig = DELIVERY, deadline: float = 30) -> TablestoreSink:
        return TablestoreSink(self.flaky, COPY, delivery=delivery, lanes=lanes, deadline=deadline)

    async def apply(self, changes: Iterable[DemoChange | RowWrite]) -> None:
        """Write changes to the source in order."""
        for change in changes:
            outcome = await self.table.batch_write(SOURCE, [row_change(change)])
            assert outcome == [RowOutcome(None)], outcome

    async def load(self, rows: Sequence[RowWrite]) -> None:
        for start in range(0, len(rows), 200):
            outcomes = await self.table.batch_write(SOURCE, [row_change(row) for row in rows[start : start + 200]])
            assert set(outcomes) == {RowOutcome(None)}

    async def copy_all(self, sink: TablestoreSink, rewinds: random.Random | None = None) -> None:
        """Read every channel to its end, base channels first, and write its records; sometimes rewind a channel."""
        held: dict[ChannelId, Channel] = {}
        done: set[ChannelId] = set()
        async with asyncio.timeout(40):
            while not await self._finished(done):
                answer = await self.tunnels.heartbeat(self.tunnel_id, self.client_id, tuple(held.values()))
                held = dict(merge(held, answer).channels)
                waiting = [key for key in held if key not in done and held[key].status is ChannelStatus.OPEN]
                for channel_id in waiting:
                    done.add(channel_id)
                    if await self._copy_channel(channel_id, sink, rewinds):
                        channel = held[channel_id]
                        held[channel_id] = replace(
                            channel, status=ChannelStatus.TERMINATED, version=channel.version + 1
                        )
                await asyncio.sleep(0.01)

    async def _finished(self, done: set[ChannelId]) -> bool:
        description = await self.tunnels.describe_tunnel(SOURCE, "t")
        ids = {channel.channel_id for channel in description.channels}
        return bool(ids) and ids <= done and description.tunnel.stage == Stage.STREAM

    async def _copy_channel(self, channel_id: ChannelId, sink: TablestoreSink, rewinds: random.Random | None) -> bool:
        """Copy what one channel has now; return whether the channel is finished."""
        checkpoint = await self.tunnels.get_checkpoint(self.tunnel_id, self.client_id, channel_id)
        token = checkpoint.token
        tokens = [token]
        while token != FINISHED:
            page = await self.tunnels.read_records(self.tunnel_id, self.client_id, channel_id, token)
            if not page.records and page.next_token != FINISHED:
                break
            self.records += len(page.records)
            await sink.write(Batch(channel_id, ChannelType.STREAM, page.records), OpenGuard())
            token = page.next_token
            tokens.append(token)
            if rewinds is not None and rewinds.random() < 0.25:
                # Rewind only: a jump forward would skip records, and a copy converges by replaying all of them.
                tokens = tokens[: rewinds.randrange(len(tokens)) + 1]
                token = tokens[-1]
        await self.tunnels.checkpoint(
            self.tunnel_id, self.client_id, channel_id, Checkpoint(token, checkpoint.sequence_number + 1)
        )
        return token == FINISHED

    async def compare(self) -> Comparison:
        return await compare_tables(self.table, SOURCE, self.table, COPY)


@asynccontextmanager
async def pair_of_tables(settings: Settings | None = None) -> AsyncIterator[TablePair]:
    async with Emulator(settings=settings) as emulator:
        pair = TablePair(emulator)
        try:
            yield pair
        finally:
            await pair.admin.close()


def row_change(change: DemoChange | RowWrite) -> RowChange:
    write = change.write if isinstance(change, DemoChange) else change
    delete = write.action.name == "DELETE"
    return RowChange(write.action, encode_row(write.primary_key, write.columns, delete=delete))


def flight_key(number: int) -> PrimaryKey:
    return (("carrier", "UA"), ("flight", number), ("time_hour", "2013-01-01T10:00:00Z"))
