"""A small scene for worker tests: emulator, table, tunnel, workers with a recording sink."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace

from ots_emulator import Emulator
from ots_tunnel.client.caller import ServiceCaller
from ots_tunnel.client.table import TableClient
from ots_tunnel.client.table_calls import RowChange
from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.credentials import static_credentials
from ots_tunnel.model import (
    Action,
    Channel,
    ChannelId,
    ChannelStatus,
    Credentials,
    Stage,
    TunnelDescription,
    TunnelId,
    TunnelType,
)
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.http.message import HttpRequest, HttpResponse
from ots_tunnel.protocol.http.operations import TABLE_OPERATIONS
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.sinks import Sink
from ots_tunnel.tables.compatibility import ANY_DEVIATION
from ots_tunnel.transport.inprocess import InProcessTransport
from ots_tunnel.worker.settings import WorkerSettings
from ots_tunnel.worker.worker import TunnelWorker
from tests.support.waiting import until

CREDENTIALS = static_credentials(Credentials("test-id", "test-secret"))
#: Answers the calls of a client in this process.
Handle = Callable[[HttpRequest], Awaitable[HttpResponse]]

TABLE = "events"
COPY = "events_copy"
FAST = WorkerSettings(
    TunnelId(""),
    table=TABLE,
    tunnel_name="t",
    client_tag="w",
    interval=0.15,
    timeout=1,
    checkpoint_interval=0.1,
    drain=5,
    early_spacing=0.03,
    reconnect=(0.01, 0.05),
)


def create_table_request(table: str, *, max_versions: int = 1) -> pb.CreateTableRequest:
    """A table whose key is one text column."""
    request = pb.CreateTableRequest()
    request.table_meta.table_name = table
    request.table_meta.primary_key.add(name="pk", type=pb.STRING)
    request.reserved_throughput.capacity_unit.read = 0
    request.reserved_throughput.capacity_unit.write = 0
    request.table_options.time_to_live = -1
    request.table_options.max_versions = max_versions
    request.table_options.deviation_cell_version_in_sec = ANY_DEVIATION
    return request


class EmulatorScene:
    """One table and one tunnel of an emulator, and workers on it."""

    #: Most seconds that workers run.
    patience = 40

    def __init__(self, emulator: Emulator) -> None:
        self.emulator = emulator
        self.transport = InProcessTransport(emulator.handle)
        self.client = TunnelClient("http://emulator", "demo", CREDENTIALS, self.transport)
        self.table = TableClient("http://emulator", "demo", CREDENTIALS, self.transport)
        self.caller = ServiceCaller(self.transport, "demo", CREDENTIALS)
        self.tunnel_id = TunnelId("")
        self.written: dict[str, list[int]] = defaultdict(list)

    async def create_table(self, partitions: int = 1, table: str = TABLE) -> None:
        self.emulator.set_partitions("demo", table, partitions)
        await self.caller.call(TABLE_OPERATIONS["CreateTable"], create_table_request(table))

    async def put(self, keys: Iterable[str], numbers: Iterable[int] = (1,)) -> None:
        """Write the numbers to every key, one after the other."""
        for number in numbers:
            changes = []
            for key in keys:
                body = encode_row((("pk", key),), (Column("n", number),))
                changes.append(RowChange(Action.PUT, body))
                self.written[key].append(number)
            for start in range(0, len(changes), 200):
                outcomes = await self.table.batch_write(TABLE, changes[start : start + 200])
                assert all(outcome.code is None for outcome in outcomes), outcomes

    async def create_tunnel(self, kind: TunnelType = TunnelType.BaseAndStream) -> None:
        self.tunnel_id = await self.client.create_tunnel(TABLE, "t", kind)
        await until(self.is_initialized)

    async def is_initialized(self) -> bool:
        """Whether the tunnel has its channels."""
        return (await self.describe()).tunnel.stage != Stage.INIT

    async def is_streaming(self) -> bool:
        """Whether all base data of the tunnel is done."""
        return (await self.describe()).tunnel.stage == Stage.STREAM

    async def describe(self) -> TunnelDescription:
        return await self.client.describe_tunnel(TABLE, "t")

    def settings(self, **changes: object) -> WorkerSettings:
        """Settings with short times for the scene's tunnel."""
        return replace(FAST, tunnel_id=self.tunnel_id, **changes)

    def worker(self, sink: Sink, *, handle: Handle | None = None, **settings: object) -> TunnelWorker:
        """A worker on the scene's tunnel.

        Args:
            handle: answers its calls in place of the emulator.
        """
        transport = InProcessTransport(handle or self.emulator.handle)
        client = TunnelClient("http://emulator", "demo", CREDENTIALS, transport)
        return TunnelWorker(client, sink, self.settings(**settings))

    @asynccontextmanager
    async def running(self, *workers: TunnelWorker) -> AsyncIterator[None]:
        """Run workers inside the block; drain them at its end."""
        async with asyncio.timeout(self.patience), asyncio.TaskGroup() as tasks:
            for worker in workers:
                tasks.create_task(worker.run())
            try:
                yield
            finally:
                for worker in workers:
                    worker.drain()

    def channels(self) -> dict[ChannelId, Channel]:
        """The channels in the emulator's state."""
        tunnel = self.emulator.tunnel("demo", self.tunnel_id)
        return {
            key: Channel(channel.id, channel.version, ChannelStatus(channel.shown_status))
            for key, channel in tunnel.channels.items()
        }

    def owners(self) -> list[str]:
        """Owners of the assigned channels."""
        tunnel = self.emulator.tunnel("demo", self.tunnel_id)
        return [channel.owner for channel in tunnel.channels.values() if channel.owner]

    def everything(self) -> list[tuple[str, int]]:
        """Every write as (key, number)."""
        return [(key, number) for key, numbers in self.written.items() for number in numbers]


@asynccontextmanager
async def twenty_rows(tunnel_type: TunnelType) -> AsyncIterator[EmulatorScene]:
    """A table with 20 rows and a tunnel, for one command."""
    async with Emulator() as emulator:
        scene = EmulatorScene(emulator)
        await scene.create_table()
        await scene.put([f"k{number}" for number in range(20)])
        await scene.create_tunnel(tunnel_type)
        yield scene
