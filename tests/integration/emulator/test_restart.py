"""Writers and a tunnel worker run while the emulator is killed repeatedly: no acknowledged change is lost."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from ots_tunnel.client.caller import ServiceCaller
from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.model import (
    FINISHED,
    Action,
    ChannelId,
    Checkpoint,
    ClientId,
    Marker,
    Stage,
    StreamConfig,
    TunnelDescription,
    TunnelId,
    TunnelType,
)
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.http.operations import TABLE_OPERATIONS
from ots_tunnel.protocol.plainbuffer.codec import decode_row, decode_rows, encode_primary_key
from ots_tunnel.protocol.record import Record
from ots_tunnel.transport.aio import AioTransport
from ots_tunnel.worker.worker import TunnelWorker
from tests.support.emulator.emulator_scene import CREDENTIALS, FAST, TABLE
from tests.support.programs.emulator_process import EmulatorProcess
from tests.support.sinks.writers import ACCOUNTS, VERSIONS, Change, Transactor, Watcher, Writer, change_of
from tests.support.waiting import until

#: Changes of partitions before a kill.
CONTROLS = {2: "/split", 4: "/split", 6: "/merge"}
WRITERS = 3
KEYS_PER_WRITER = 4


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
        self.caller = self._caller()
        self.client = RecordingClient(process.endpoint, "demo", CREDENTIALS)
        self.client.acknowledged = {}
        self.tunnel_id = TunnelId("")
        self.sink = Watcher()
        self.transactor = Transactor(self._caller())
        self.writers = [
            Writer([f"w{writer}-{key}" for key in range(KEYS_PER_WRITER)], self._caller()) for writer in range(WRITERS)
        ]

    def _caller(self) -> ServiceCaller:
        return ServiceCaller(AioTransport(self.process.endpoint), "demo", CREDENTIALS)

    @property
    def every_writer(self) -> list[Writer | Transactor]:
        return [*self.writers, self.transactor]

    async def create_tables(self) -> None:
        accounts = pb.CreateTableRequest(
            table_meta=pb.TableMeta(
                table_name=ACCOUNTS,
                primary_key=[
                    pb.PrimaryKeySchema(name="owner", type=pb.STRING),
                    pb.PrimaryKeySchema(name="side", type=pb.INTEGER),
                ],
            ),
            reserved_throughput=pb.ReservedThroughput(capacity_unit=pb.CapacityUnit(read=0, write=0)),
            table_options=pb.TableOptions(time_to_live=-1, max_versions=1),
            enable_local_txn=True,
        )
        await self.caller.call(TABLE_OPERATIONS["CreateTable"], accounts)
        request = pb.CreateTableRequest(
            table_meta=pb.TableMeta(
                table_name=TABLE,
                primary_key=[pb.PrimaryKeySchema(name="pk", type=pb.STRING)],
            ),
            reserved_throughput=pb.ReservedThroughput(capacity_unit=pb.CapacityUnit(read=0, write=0)),
            table_options=pb.TableOptions(time_to_live=-1, max_versions=VERSIONS, deviation_cell_version_in_sec=10**10),
        )
        await self.caller.call(TABLE_OPERATIONS["CreateTable"], request)

    async def create_tunnel(self) -> None:
        self.tunnel_id = await self.client.create_tunnel(TABLE, "t", TunnelType.Stream)
        await until(lambda: self.initialized("t"))

    async def initialized(self, tunnel: str) -> TunnelDescription | None:
        """The tunnel's description, once it has its channels."""
        description = await self.client.describe_tunnel(TABLE, tunnel)
        return None if description.tunnel.stage == Stage.INIT else description

    async def wait_for_more(self, writes: int, checkpoints: int) -> None:
        """Wait until `writes` more batches and `checkpoints` more checkpoints have been acknowledged."""
        enough = self.writes + writes, self.client.count + checkpoints

        def is_enough() -> bool:
            return self.writes >= enough[0] and self.client.count >= enough[1]

        await until(is_enough, 90, "writes and checkpoints continue")

    @property
    def writes(self) -> int:
        return sum(writer.number for writer in self.every_writer)

    async def pull(self, control: str) -> None:
        """Split or merge partitions; what the writers have just emptied is split as soon as it has rows."""
        async with asyncio.timeout(30), aiohttp.ClientSession(self.process.admin_url) as http:
            while True:
                async with http.post(control, json={"instance": "demo", "table": TABLE}) as answer:
                    if answer.status == 200:
                        return
                    assert "fewer than 2 partition keys" in await answer.text()
                await asyncio.sleep(0.01)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        worker = TunnelWorker(self.client, self.sink, replace(FAST, tunnel_id=self.tunnel_id, timeout=5, drain=20))
        async with asyncio.TaskGroup() as tasks:
            for writer in self.every_writer:
                tasks.create_task(writer.run())
            consuming = tasks.create_task(worker.run())
            yield
            for writer in self.every_writer:
                writer.stopping = True
            await until(self._is_consumed, 90, "everything consumed")
            worker.drain()
            async with asyncio.timeout(60):
                await consuming

    def _is_consumed(self) -> bool:
        # Writers that were stopped may still have a batch under way.
        last = {(key, writer.last_put()) for writer in self.writers for key in writer.keys}
        return all((Action.UPDATE, number) in self.sink.changes[key] for key, number in last)

    async def check_checkpoints(self) -> None:
        """Check that no acknowledged checkpoint is missing or changed."""
        for channel_id, acknowledged in tuple(self.client.acknowledged.items()):
            stored = await self.client.get_checkpoint(self.tunnel_id, ClientId("any-client"), channel_id)
            assert stored.sequence_number >= acknowledged.sequence_number
            if stored.sequence_number == acknowledged.sequence_number:
                assert stored.token == acknowledged.token

    async def check_accounts(self) -> None:
        """Check that both rows are of the same transaction, which was acknowledged or lost the answer to its commit."""
        acknowledged = self.transactor.number
        request = pb.GetRangeRequest(
            table_name=ACCOUNTS,
            direction=pb.FORWARD,
            max_versions=1,
            inclusive_start_primary_key=encode_primary_key((("owner", Marker.INF_MIN), ("side", Marker.INF_MIN))),
            exclusive_end_primary_key=encode_primary_key((("owner", Marker.INF_MAX), ("side", Marker.INF_MAX))),
        )
        answer, _ = await self.caller.call(TABLE_OPERATIONS["GetRange"], request)
        numbers = [row.columns[0].value for row in decode_rows(answer.rows)]
        assert len(numbers) == 2 or not (numbers or acknowledged)
        assert len(set(numbers)) <= 1
        assert set(numbers) <= set(range(acknowledged, self.transactor.number + 2))

    async def _cells(self, table: str, key: bytes) -> list[tuple[str, Any, int | None]]:
        request = pb.GetRowRequest(table_name=table, primary_key=key, max_versions=100)
        answer, _ = await self.caller.call(TABLE_OPERATIONS["GetRow"], request)
        columns = decode_row(answer.row).columns if answer.row else ()
        return [(column.name, column.value, column.timestamp_ms) for column in columns]

    async def check_rows(self) -> None:
        for writer in self.writers:
            for key in writer.keys:
                cells = await self._cells(TABLE, encode_primary_key((("pk", key),)))
                assert cells == writer.expected_row()

    async def check_log(self) -> None:
        """Check that the log has every acknowledged change in order, and repeats only changes without an answer."""
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
        reader = ClientId("reader")
        description = await until(lambda: self.initialized("audit"))
        assert description is not None
        for channel in description.channels:
            channel_id = channel.channel_id
            token = (await self.client.get_checkpoint(tunnel_id, reader, channel_id)).token
            times: list[int] = []
            while token != FINISHED:
                page = await self.client.read_records(tunnel_id, reader, channel_id, token)
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
        for caller in (self.caller, *(writer.caller for writer in self.every_writer)):
            await caller.close()


@pytest.mark.timeout(240)
@pytest.mark.parametrize("kills", [8, pytest.param(30, marks=pytest.mark.long)])
@pytest.mark.lasts(12)
@pytest.mark.unmeasured
async def test_nothing_acknowledged_is_lost_by_kills(kills: int, tmp_path: Path) -> None:
    chance = random.Random(20)
    async with EmulatorProcess(tmp_path / "data") as process:
        work = Work(process)
        try:
            await work.create_tables()
            await work.create_tunnel()
            async with work.running():
                for kill in range(kills):
                    # Sometimes in the middle of everything, sometimes before the worker is back.
                    await work.wait_for_more(chance.randrange(1, 40), checkpoints=kill % 2)
                    if kill in CONTROLS:
                        await work.pull(CONTROLS[kill])
                    await process.kill()
                    await process.start()
                    await work.check_checkpoints()
                    await work.check_accounts()
            await work.check_checkpoints()
            await work.check_rows()
            await work.check_accounts()
            assert work.transactor.number > 0
            await work.check_log()
        finally:
            await work.close()
    assert process.kills == kills
    assert work.client.count >= kills // 2
    assert any(writer.doubtful for writer in work.writers)
