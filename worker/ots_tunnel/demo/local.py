"""`ots-tunnel demo`: an emulator, a table of flights, a writer that changes it, workers that copy it, a comparison.

Everything runs in one process. This is the only module that may import worker and emulator.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import islice

from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from ots_emulator import Emulator
from ots_tunnel.client.table import TableClient
from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.config import DeliveryConfig
from ots_tunnel.credentials import static_credentials
from ots_tunnel.demo.changes import changes
from ots_tunnel.demo.flights import find_flights, flights_schema, read_keys
from ots_tunnel.demo.load import Target, load_flights
from ots_tunnel.demo.writer import ChangeWriter
from ots_tunnel.errors import TunnelError
from ots_tunnel.model import ChannelStatus, ChannelType, Credentials, TunnelId, TunnelType
from ots_tunnel.sinks.table.sink import TablestoreSink
from ots_tunnel.tables.destination import ensure_destination
from ots_tunnel.verify.compare import Comparison, compare_tables
from ots_tunnel.worker.settings import WorkerSettings
from ots_tunnel.worker.worker import TunnelWorker

INSTANCE = "demo"
CREDENTIALS = Credentials("demo-id", "demo-secret")
SOURCE, DESTINATION, TUNNEL = "flights", "flights_copy", "flights-copy"

#: Seconds; much shorter than in production, so that rebalances and checkpoints happen within the demo's minute.
HEARTBEAT, TIMEOUT, CHECKPOINT, DRAIN = 1.0, 5.0, 1.0, 5.0

#: Seconds between two updates of the table of channels.
REFRESH = 0.5

#: Seconds after which waiting for a step fails; each step takes a few seconds.
PATIENCE = 120.0

#: Partitions of the source table, hence base channels of the tunnel.
PARTITIONS = 4


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """Size of the demo: rows to load, changes per second, seconds in which changes are followed."""

    rows: int = 20_000
    rate: float = 200.0
    seconds: float = 20.0


class LocalDemo:
    """One run: the emulator has its own thread, everything else shares this event loop."""

    def __init__(self, emulator: Emulator, options: DemoOptions, console: Console) -> None:
        self._emulator = emulator
        self._options = options
        self._console = console
        self._version_ms = int(time.time() * 1000)
        self._target = Target(emulator.endpoint, INSTANCE, CREDENTIALS, SOURCE)
        self._credentials = static_credentials(CREDENTIALS)
        self._workers: list[TunnelWorker] = []

    async def run(self) -> Comparison:
        """Load, copy, follow, compare.

        Raises:
            TunnelError: a step failed. TimeoutError: a step took longer than `PATIENCE`.
        """
        await asyncio.to_thread(self._load)
        tunnel_id = await self._create_tunnel()
        writer = self._writer()
        writer.start()
        with Live(self._channel_table(), console=self._console, refresh_per_second=4) as live:
            await self._follow(tunnel_id, writer, lambda: live.update(self._channel_table()))
        return await self._compare()

    def _load(self) -> None:
        self._say(f"1. table {SOURCE}: {self._options.rows:,} flights, loaded through the vendor's SDK")
        self._emulator.call("set_partitions", INSTANCE, SOURCE, PARTITIONS)
        admin = self._target.admin()
        try:
            admin.create(flights_schema(SOURCE))
        finally:
            admin.close()
        columns = (TextColumn("   rows"), BarColumn(), MofNCompleteColumn())
        with Progress(*columns, console=self._console) as progress:
            task = progress.add_task("rows", total=self._options.rows)
            load_flights(
                self._target,
                version_ms=self._version_ms,
                rows=self._options.rows,
                progress=lambda stored: progress.update(task, completed=stored),
            )

    async def _create_tunnel(self) -> TunnelId:
        self._say(f"2. destination {DESTINATION}, then tunnel {TUNNEL} of type BaseAndStream")
        admin = self._target.admin()
        try:
            await ensure_destination(admin, admin, SOURCE, DESTINATION, create=True)
        finally:
            await asyncio.to_thread(admin.close)
        async with self._client() as client:
            return await client.create_tunnel(SOURCE, TUNNEL, TunnelType.BaseAndStream)

    def _writer(self) -> ChangeWriter:
        self._say(
            f"3. two workers copy it while {self._options.rate:.0f} changes/s are written; a third joins, one leaves"
        )
        keys = list(islice(read_keys(find_flights()), self._options.rows))
        sequence = changes(self._version_ms, keys, base_version_ms=self._version_ms)
        return ChangeWriter(self._target.admin(), SOURCE, sequence, rate=self._options.rate)

    async def _follow(self, tunnel_id: TunnelId, writer: ChangeWriter, draw: Callable[[], None]) -> None:
        async with asyncio.TaskGroup() as group:
            for name in ("worker-1", "worker-2"):
                group.create_task(self._run_worker(tunnel_id, name), name=name)
            await self._until(self._has_stream_channel, draw)
            third = self._options.seconds / 3
            await self._draw_for(third, draw)
            self._emulator.call("split", INSTANCE, SOURCE)
            group.create_task(self._run_worker(tunnel_id, "worker-3"), name="worker-3")
            await self._draw_for(third, draw)
            self._workers[0].drain()
            await self._draw_for(third, draw)
            await asyncio.to_thread(writer.stop)
            stopped = time.time()
            await self._until(lambda: self._has_consumed(tunnel_id, stopped), draw)
            for worker in self._workers:
                worker.drain()

    async def _run_worker(self, tunnel_id: TunnelId, name: str) -> None:
        settings = WorkerSettings(
            tunnel_id,
            SOURCE,
            TUNNEL,
            name,
            interval=HEARTBEAT,
            timeout=TIMEOUT,
            checkpoint_interval=CHECKPOINT,
            drain=DRAIN,
        )
        sink = TablestoreSink(
            TableClient(self._emulator.endpoint, INSTANCE, self._credentials),
            DESTINATION,
            delivery=DeliveryConfig(),
            lanes=4,
            deadline=settings.write_deadline,
        )
        async with self._client() as client:
            worker = TunnelWorker(client, sink, settings)
            self._workers.append(worker)
            await worker.run()

    def _has_stream_channel(self) -> bool:
        """Whether the existing rows are copied, because a worker holds a stream channel."""
        held = [channel for worker in self._workers for channel in worker.status.document()["channels"]]
        return any(channel["type"] == ChannelType.STREAM for channel in held)

    async def _has_consumed(self, tunnel_id: TunnelId, moment: float) -> bool:
        async with self._client() as client:
            description = await client.describe_tunnel(SOURCE, TUNNEL, tunnel_id)
        following = [
            channel
            for channel in description.channels
            if channel.channel_type is ChannelType.STREAM and channel.status is not ChannelStatus.TERMINATED
        ]
        return bool(following) and all(channel.consume_point_ns / 1e9 >= moment for channel in following)

    async def _compare(self) -> Comparison:
        self._say("4. both tables compared by full scans: every row, cell and cell version")
        client = TableClient(self._emulator.endpoint, INSTANCE, self._credentials)
        try:
            return await compare_tables(client, SOURCE, client, DESTINATION)
        finally:
            await client.close()

    async def _until(self, reached: Callable[[], object], draw: Callable[[], None]) -> None:
        async with asyncio.timeout(PATIENCE):
            while True:
                found = reached()
                if asyncio.iscoroutine(found):
                    found = await found
                if found:
                    return
                await self._draw_for(REFRESH, draw)

    async def _draw_for(self, seconds: float, draw: Callable[[], None]) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            draw()
            await asyncio.sleep(min(REFRESH, seconds))

    def _channel_table(self) -> Table:
        table = Table("worker", "channel", "type", "state", "rows", "lag", title="channels")
        for column in ("rows", "lag"):
            next(c for c in table.columns if c.header == column).justify = "right"
        for worker in self._workers:
            document = worker.status.document()
            for channel in document["channels"]:
                lag = channel["lagSeconds"]
                table.add_row(
                    document["clientTag"],
                    channel["id"][:18],
                    channel["type"],
                    channel["state"],
                    f"{channel['rowsTotal']:,}",
                    "" if lag is None else f"{lag} s",
                )
        return table

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[TunnelClient]:
        client = TunnelClient(self._emulator.endpoint, INSTANCE, self._credentials)
        try:
            yield client
        finally:
            await client.close()

    def _say(self, text: str) -> None:
        self._console.print(f"\n{text}", highlight=False)


def run_demo(options: DemoOptions, console: Console) -> int:
    """Run the demo; return 0 if both tables are equal, 1 if they differ.

    Raises:
        TunnelError: a step failed permanently.
    """
    began = time.monotonic()
    keys = {CREDENTIALS.access_key_id: CREDENTIALS.access_key_secret}
    with Emulator({INSTANCE: keys}) as emulator:
        try:
            comparison = asyncio.run(LocalDemo(emulator, options, console).run())
        except* TunnelError as group:
            raise group.exceptions[0] from None
    console.print(
        f"   {comparison.rows:,} rows, {comparison.versions:,} cell versions compared: "
        f"{comparison.differences} differences, {time.monotonic() - began:.0f} s in total",
        highlight=False,
    )
    for row in comparison.first:
        console.print(f"   {row}", markup=False, highlight=False)
    return int(not comparison.equal)
