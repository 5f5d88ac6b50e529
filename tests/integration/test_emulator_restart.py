"""Writers and a tunnel worker at work while the emulator is killed again and again: what it acknowledged is there."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from ots_tunnel.calls import ServiceCaller
from ots_tunnel.client import TunnelClient
from ots_tunnel.errors import TransportError
from ots_tunnel.model import (
    FINISHED,
    Action,
    ChannelId,
    Checkpoint,
    ClientId,
    Column,
    Stage,
    StreamConfig,
    TunnelId,
    TunnelType,
)
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.plainbuffer import decode_row, encode_primary_key, encode_row
from ots_tunnel.protocol.record import Record
from ots_tunnel.protocol.rpc import TABLE_OPERATIONS
from ots_tunnel.sinks import Batch, Guard, Immediate
from ots_tunnel.transport.aio import AioTransport
from ots_tunnel.worker import TunnelWorker
from tests.integration.emulator_process import EmulatorProcess
from tests.integration.scene import CREDENTIALS, FAST, TABLE, until

KILLS = 20
WRITERS = 3
COLUMNS = ("a", "b", "c")
KEYS_PER_WRITER = 4
VERSIONS = 3
#: Cell versions are chosen by the writers: this plus the number of the write.
FIRST_VERSION = 1_700_000_000_000

#: What happened to a row, and the number that was written (0 for a removal).
Change = tuple[Action, int]


@dataclass
class Writer:
    """Writes to its keys in turn, one batch for all of them, each number until it is acknowledged.

    Every fifth write of a key removes the row. `doubtful` are the numbers of batches that went unanswered at least
    once: they may be in the log more than once.
    """

    keys: list[str]
    caller: ServiceCaller
    number: int = 0
    doubtful: set[int] = field(default_factory=set)
    stopping: bool = False

    async def run(self) -> None:
        while not self.stopping:
            request = self._request(self.number + 1)
            try:
                response, _ = await self.caller.call(TABLE_OPERATIONS["BatchWriteRow"], request, timeout=10)
            except TransportError:
                self.doubtful.add(self.number + 1)
                await asyncio.sleep(0.01)
                continue
            outcomes = response.tables[0].rows
            assert all(outcome.is_ok for outcome in outcomes), outcomes
            self.number += 1

    def _request(self, number: int) -> pb.BatchWriteRowRequest:
        rows = [
            pb.RowInBatchWriteRowRequest(
                type=self.action(number).name,
                row_change=encode_row(
                    (("pk", key),), self.columns(number), delete=self.action(number) is Action.DELETE
                ),
                condition=pb.Condition(row_existence=pb.IGNORE),
            )
            for key in self.keys
        ]
        return pb.BatchWriteRowRequest(tables=[pb.TableInBatchWriteRowRequest(table_name=TABLE, rows=rows)])

    def last_put(self) -> int:
        return self.number if self.number % 5 else self.number - 1

    @staticmethod
    def action(number: int) -> Action:
        return Action.DELETE if number % 5 == 0 else Action.UPDATE

    def columns(self, number: int) -> tuple[Column, ...]:
        if self.action(number) is Action.DELETE:
            return ()
        return tuple(Column(name, number, FIRST_VERSION + number) for name in COLUMNS)

    def change(self, number: int) -> Change:
        action = self.action(number)
        return action, 0 if action is Action.DELETE else number

    def expected_log(self) -> list[Change]:
        """Every acknowledged change of a key, in order."""
        return [self.change(number) for number in range(1, self.number + 1)]

    def expected_row(self) -> list[tuple[str, int, int]]:
        """The cells of every key's row: those since it was removed last, and no more versions than the table keeps."""
        numbers = range(self.number - self.number % 5 + 1, self.number + 1)[-VERSIONS:]
        return [(name, number, FIRST_VERSION + number) for name in COLUMNS for number in reversed(numbers)]


@dataclass
class Watcher(Immediate):
    """A sink that remembers the changes of every key in the order they came first."""

    changes: dict[str, dict[Change, None]] = field(default_factory=lambda: defaultdict(dict))

    async def open(self) -> None:
        return None

    async def write(self, batch: Batch, guard: Guard) -> None:
        guard.check()
        for record in batch.records:
            key, change = change_of(record)
            self.changes[key].setdefault(change)

    async def close(self) -> None:
        return None


def change_of(record: Record) -> tuple[str, Change]:
    """The key of a record and what it says; a row that is not whole is an error."""
    numbers = {column.value for column in record.columns}
    if record.action is Action.DELETE:
        assert not numbers
        number = 0
    else:
        assert [column.name for column in record.columns] == list(COLUMNS)
        (value,) = numbers
        assert isinstance(value, int)
        number = value
    return str(record.primary_key[0][1]), (record.action, number)


class RecordingClient(TunnelClient):
    """Remembers the last acknowledged checkpoint of every channel."""

    acknowledged: dict[ChannelId, Checkpoint]
    count = 0

    async def checkpoint(
        self, tunnel_id: TunnelId, client_id: ClientId, channel_id: ChannelId, checkpoint: Checkpoint, **options: Any
    ) -> None:
        await super().checkpoint(tunnel_id, client_id, channel_id, checkpoint, **options)
        self.acknowledged[channel_id] = checkpoint
        self.count += 1


class Work:
    """The table, its tunnel, the writers and the worker."""

    def __init__(self, process: EmulatorProcess) -> None:
        self.process = process
        self.caller = ServiceCaller(AioTransport(process.endpoint), "demo", CREDENTIALS)
        self.client = RecordingClient(process.endpoint, "demo", CREDENTIALS)
        self.client.acknowledged = {}
        self.tunnel_id = TunnelId("")
        self.sink = Watcher()
        self.writers = [
            Writer(
                [f"w{writer}-{key}" for key in range(KEYS_PER_WRITER)],
                ServiceCaller(AioTransport(process.endpoint), "demo", CREDENTIALS),
            )
            for writer in range(WRITERS)
        ]

    async def prepare(self) -> None:
        request = pb.CreateTableRequest(
            table_meta=pb.TableMeta(
                table_name=TABLE,
                primary_key=[pb.PrimaryKeySchema(name="pk", type=pb.STRING)],
            ),
            reserved_throughput=pb.ReservedThroughput(capacity_unit=pb.CapacityUnit(read=0, write=0)),
            table_options=pb.TableOptions(time_to_live=-1, max_versions=VERSIONS, deviation_cell_version_in_sec=10**10),
        )
        await self.caller.call(TABLE_OPERATIONS["CreateTable"], request)
        self.tunnel_id = await self.client.create_tunnel(TABLE, "t", TunnelType.Stream)
        while (await self.client.describe_tunnel(TABLE, "t")).tunnel.stage == Stage.INIT:  # noqa: ASYNC110 - polled
            await asyncio.sleep(0.01)

    async def wait_for_more(self, writes: int, checkpoints: int) -> None:
        """Wait until so many more batches and checkpoints have been acknowledged."""
        enough = self.writes + writes, self.client.count + checkpoints

        def is_enough() -> bool:
            return self.writes >= enough[0] and self.client.count >= enough[1]

        await until(is_enough, 30, "writes and checkpoints go on")

    @property
    def writes(self) -> int:
        return sum(writer.number for writer in self.writers)

    async def split(self) -> None:
        async with (
            aiohttp.ClientSession() as http,
            http.post(self.process.admin_url + "/split", json={"instance": "demo", "table": TABLE}) as answer,
        ):
            assert answer.status == 200, await answer.text()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        worker = TunnelWorker(self.client, self.sink, replace(FAST, tunnel_id=self.tunnel_id, timeout=5, drain=20))
        async with asyncio.TaskGroup() as tasks:
            for writer in self.writers:
                tasks.create_task(writer.run())
            consuming = tasks.create_task(worker.run())
            yield
            for writer in self.writers:
                writer.stopping = True
            await until(self._is_consumed, 30, "everything consumed")
            worker.drain()
            async with asyncio.timeout(30):
                await consuming

    def _is_consumed(self) -> bool:
        # Writers that are told to stop may still have a batch under way.
        last = {(key, writer.last_put()) for writer in self.writers for key in writer.keys}
        return all((Action.UPDATE, number) in self.sink.changes[key] for key, number in last)

    async def check_checkpoints(self) -> None:
        """No checkpoint that was acknowledged may be missing, and none be changed."""
        for channel_id, acknowledged in tuple(self.client.acknowledged.items()):
            stored = await self.client.get_checkpoint(self.tunnel_id, ClientId("anybody"), channel_id)
            assert stored.sequence_number >= acknowledged.sequence_number
            if stored.sequence_number == acknowledged.sequence_number:
                assert stored.token == acknowledged.token

    async def check_rows(self) -> None:
        for writer in self.writers:
            for key in writer.keys:
                request = pb.GetRowRequest(
                    table_name=TABLE, primary_key=encode_primary_key((("pk", key),)), max_versions=100
                )
                answer, _ = await self.caller.call(TABLE_OPERATIONS["GetRow"], request)
                columns = decode_row(answer.row).columns if answer.row else ()
                cells = [(column.name, column.value, column.timestamp_ms) for column in columns]
                assert cells == writer.expected_row()

    async def check_log(self) -> None:
        """Every acknowledged change is in the log once and in order; more often only where an answer was missing."""
        changes: dict[str, list[Change]] = defaultdict(list)
        records = await self._log()
        times = [time_us for time_us, _ in records]
        assert len(set(times)) == len(times)
        for _, record in records:
            key, change = change_of(record)
            changes[key].append(change)
        for writer in self.writers:
            for key in writer.keys:
                runs = [(change, len(list(run))) for change, run in groupby(changes[key])]
                assert [change for change, _ in runs] == writer.expected_log()
                repeated = {number for number, (_, count) in enumerate(runs, 1) if count > 1}
                assert repeated <= writer.doubtful

    async def _log(self) -> list[tuple[int, Record]]:
        """The whole change log with its commit times, in their order."""
        tunnel_id = await self.client.create_tunnel(TABLE, "audit", TunnelType.Stream, StreamConfig(earliest=True))
        found: list[tuple[int, Record]] = []
        nobody = ClientId("nobody")
        while (description := await self.client.describe_tunnel(TABLE, "audit")).tunnel.stage == Stage.INIT:  # noqa: ASYNC110 - polled
            await asyncio.sleep(0.01)
        for channel in description.channels:
            channel_id = channel.channel_id
            token = (await self.client.get_checkpoint(tunnel_id, nobody, channel_id)).token
            times: list[int] = []
            while token != FINISHED:
                page = await self.client.read_records(tunnel_id, nobody, channel_id, token)
                for record in page.records:
                    assert record.sequence is not None
                    times.append(record.sequence.timestamp_us)
                    found.append((times[-1], record))
                if not page.records:
                    break
                token = page.next_token
            assert times == sorted(times)
        return sorted(found, key=lambda pair: pair[0])

    async def close(self) -> None:
        await self.client.close()
        for caller in (self.caller, *(writer.caller for writer in self.writers)):
            await caller.close()


@pytest.mark.timeout(240)
async def test_nothing_acknowledged_is_lost_by_kills(tmp_path: Path) -> None:
    chance = random.Random(20)
    async with EmulatorProcess(tmp_path / "data") as process:
        work = Work(process)
        try:
            await work.prepare()
            async with work.running():
                for kill in range(KILLS):
                    # Sometimes in the middle of everything, sometimes before the worker is back.
                    await work.wait_for_more(chance.randrange(1, 40), checkpoints=kill % 2)
                    if kill in (5, 12):
                        await work.split()
                    await process.kill()
                    await process.start()
                    await work.check_checkpoints()
            await work.check_checkpoints()
            await work.check_rows()
            await work.check_log()
        finally:
            await work.close()
    assert process.kills == KILLS
    assert work.client.count >= KILLS // 2
    assert any(writer.doubtful for writer in work.writers)
