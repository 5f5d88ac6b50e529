"""The scene of all measurements: one emulator pinned to a core, tables with a long change log, tunnels over it.

A table's log is read many times: every run has its own tunnel, which starts at the log's beginning and ends after a
given number of changes, so that its channels finish by themselves.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp

from ots_tunnel.client.table import TableClient
from ots_tunnel.client.table_calls import RowChange
from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.credentials import static_credentials
from ots_tunnel.model import (
    FINISHED,
    Action,
    ChannelStatus,
    ClientId,
    Credentials,
    KeyColumn,
    KeyType,
    PrimaryKey,
    SequenceInfo,
    Stage,
    StreamConfig,
    TunnelId,
    TunnelType,
)
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.tables import AsyncTableAdmin, TableSchema
from ots_tunnel.tables.compatibility import planned_schema
from ots_tunnel.verify.compare import Comparison, compare_tables
from tests.support.waiting import until

CREDENTIALS = static_credentials(Credentials("test-id", "test-secret"))
CHANNELS = 4
#: Distinct keys; many more than a page has rows, so that no request meets a key twice.
KEYS = 20_000
REQUEST_ROWS = 200
#: Pause between two checks for the end of a run.
POLL = 0.1
DEADLINE = 600.0


def key_of(number: int) -> PrimaryKey:
    # Scattered, so that every page of every channel has the same number of rows.
    return (("device", f"device-{number * 7919 % KEYS:08d}"), ("reading", number))


def row_of(number: int) -> tuple[Column, ...]:
    """Eight columns of usual types; with key and sequence block a record of about 418 bytes."""
    return (
        Column("status", "delivered"),
        Column("amount", number * 3.25),
        Column("quantity", number % 97),
        Column("active", number % 2 == 0),
        Column("customer", f"client-{number:08d}"),
        Column("region", "hangzhou"),
        Column("note", "quick"),
        Column("updated", 1_700_000_000_000 + number),
    )


def declared_columns() -> tuple[tuple[str, str], ...]:
    """Name and type of each column of a row, as typed files declare them."""
    words = {str: "string", float: "double", int: "integer", bool: "boolean"}
    return tuple((cell.name, words[type(cell.value)]) for cell in row_of(1))


def record_bytes() -> int:
    """Size of a record as a stream delivers it: every cell has a version, every row a sequence block."""
    cells = tuple(Column(cell.name, cell.value, 1_700_000_000_000) for cell in row_of(1))
    return len(encode_row(key_of(1), cells, sequence=SequenceInfo(0, 1_700_000_000_000_000, 0)))


@dataclass(frozen=True, slots=True)
class Tunnel:
    """A tunnel of a table of the scene."""

    table: str
    name: str
    tunnel_id: TunnelId


@dataclass
class BenchScene:
    """The emulator with its tables.

    A tunnel can end after as many changes of a table as stand in its `marks`, with the time at which they were there.
    """

    endpoint: str
    admin_url: str
    client: TunnelClient
    table: TableClient
    admin: AsyncTableAdmin
    _marks: dict[str, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    _channels: dict[str, int] = field(default_factory=dict)
    _tunnels: int = 0

    async def create_table(self, name: str, channels: int = CHANNELS) -> None:
        """A table of `KEYS` rows with an empty change log, and with a partition for each channel of its tunnels."""
        await self.create_empty(_schema(name), channels)
        for changes in _requests():  # partitions appear with the rows
            await self.write(name, changes)
        await self.switch_stream_on(name)

    async def create_empty(self, schema: TableSchema, channels: int) -> None:
        """A table without rows, whose tunnels will have this number of channels."""
        name = schema.name
        self._channels[name] = channels
        async with aiohttp.ClientSession() as session:
            document = {"instance": "demo", "table": name, "count": channels}
            async with session.post(f"{self.admin_url}/partitions", json=document) as answer:
                answer.raise_for_status()
        await self.admin.create(schema)

    async def switch_stream_on(self, table: str) -> None:
        """From now on the changes of a table are in its log."""
        await self.client.create_tunnel(table, "switches-the-stream-on", TunnelType.Stream)

    async def create_source(self, name: str, marks: Iterable[int], channels: int = CHANNELS) -> None:
        """A table of `KEYS` rows whose log reaches every mark: numbers of changes at which a tunnel can end."""
        await self.create_table(name, channels)
        requests, written = _requests(), 0
        for mark in sorted(set(marks)):
            while written < mark:
                changes = requests[written // REQUEST_ROWS % len(requests)][: mark - written]
                await self.write(name, changes)
                written += len(changes)
            await self.mark(name, mark)

    async def mark(self, table: str, rows: int) -> None:
        """A tunnel can end here, where the log of a table has this number of changes."""
        await asyncio.sleep(0.01)  # so that the end of a tunnel is between two changes
        self._marks[table][rows] = time.time_ns()
        await asyncio.sleep(0.01)

    async def create_copy(self, name: str) -> None:
        """An empty table for the rows of a source."""
        await self.admin.create(planned_schema(_schema("any"), name))

    async def create_tunnel(self, table: str, rows: int | None = None) -> Tunnel:
        """A tunnel over the first `rows` changes of a table's log; None means all changes from now on."""
        self._tunnels += 1
        name = f"run-{self._tunnels}"
        config = None if rows is None else StreamConfig(earliest=True, end_offset_ns=self._marks[table][rows])
        tunnel_id = await self.client.create_tunnel(table, name, TunnelType.Stream, config)

        async def is_initialized() -> bool:
            return (await self.client.describe_tunnel(table, name)).tunnel.stage != Stage.INIT

        await until(is_initialized, DEADLINE, pause=POLL)
        return Tunnel(table, name, tunnel_id)

    async def check_channels(self, tunnel: Tunnel) -> None:
        """Check that a tunnel has as many channels as the settings say.

        Raises:
            RuntimeError: it has more or fewer.
        """
        table = tunnel.table
        found = len((await self.client.describe_tunnel(table, tunnel.name)).channels)
        if found != self._channels[table]:
            raise RuntimeError(f"{table} has {found} channels, {self._channels[table]} are needed")

    async def are_open(self, tunnel: Tunnel) -> bool:
        """Whether every channel of a tunnel is held by a worker."""
        description = await self.client.describe_tunnel(tunnel.table, tunnel.name)
        return all(channel.status is ChannelStatus.OPEN and channel.client_id for channel in description.channels)

    async def is_finished(self, tunnel: Tunnel) -> bool:
        """Whether nothing comes any more: every channel has its final checkpoint, or is terminated without it."""
        description = await self.client.describe_tunnel(tunnel.table, tunnel.name)
        for channel in description.channels:
            if channel.status is ChannelStatus.TERMINATED:
                continue  # the vendor's Go worker can end without its last checkpoint; the rows are counted anyway
            checkpoint = await self.client.get_checkpoint(tunnel.tunnel_id, ClientId("bench"), channel.channel_id)
            if checkpoint.token != FINISHED:
                return False
        return True

    async def compare(self, source: str, copy: str) -> Comparison:
        """All rows and cells of two tables."""
        return await compare_tables(self.table, source, self.table, copy)

    async def write(self, table: str, changes: Sequence[RowChange]) -> None:
        """One request.

        Raises:
            RuntimeError: a row was refused.
        """
        outcomes = await self.table.batch_write(table, changes)
        if any(outcome.code for outcome in outcomes):
            raise RuntimeError(f"loading {table}: {outcomes[0]}")


def _requests() -> list[list[RowChange]]:
    rows = [RowChange(Action.PUT, encode_row(key_of(number), row_of(number))) for number in range(KEYS)]
    return [rows[start : start + REQUEST_ROWS] for start in range(0, KEYS, REQUEST_ROWS)]


def _schema(name: str) -> TableSchema:
    return TableSchema(name, (KeyColumn("device", KeyType.STRING), KeyColumn("reading", KeyType.INTEGER)))


@asynccontextmanager
async def bench_scene_on(core: int) -> AsyncIterator[BenchScene]:
    """An emulator process that runs on one core only."""
    command = [sys.executable, "-m", "ots_emulator", "serve", "--port", "0", "--admin-port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: ASYNC220 - starts at once
        try:
            os.sched_setaffinity(process.pid, {core})
            endpoint, admin_url = await asyncio.to_thread(_addresses, process)
            scene = BenchScene(
                endpoint,
                admin_url,
                TunnelClient(endpoint, "demo", CREDENTIALS),
                TableClient(endpoint, "demo", CREDENTIALS),
                AsyncTableAdmin.connect(endpoint, "demo", CREDENTIALS),
            )
            try:
                yield scene
            finally:
                await scene.client.close()
                await scene.table.close()
                await scene.admin.close()
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=30)


def _addresses(process: subprocess.Popen[str]) -> tuple[str, str]:
    found: dict[str, str] = {}
    assert process.stdout is not None
    for line in process.stdout:
        word, _, rest = line.strip().partition(" ")
        if word in ("endpoint", "admin"):
            found[word] = rest.split()[0]
        if len(found) == 2:
            return found["endpoint"], found["admin"]
    raise RuntimeError("the emulator did not start")
