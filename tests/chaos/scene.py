"""One run of chaos: two instances of an emulator, a table and its copy, writers, workers, and strikes at workers."""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import aiohttp

from ots_tunnel.client.caller import ServiceCaller
from ots_tunnel.client.table import TableClient
from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.credentials import static_credentials
from ots_tunnel.errors import ServiceError, TransportError
from ots_tunnel.model import Credentials, Stage, TunnelType
from ots_tunnel.protocol.http.operations import TABLE_OPERATIONS
from ots_tunnel.transport.aio import AioTransport
from ots_tunnel.verify.compare import Comparison, compare_tables
from tests.chaos.judge import Judge, Verdict
from tests.chaos.ledger import COPY, parse
from tests.chaos.schedule import RECOVERY, WORKERS, Blow, Event
from tests.chaos.worker_processes import SOURCE, STARTS, TABLE, TUNNEL, WorkerProcesses, name_of
from tests.support.emulator.emulator_scene import create_table_request
from tests.support.programs.emulator_process import EmulatorProcess
from tests.support.row_changes import VERSIONS, change_of
from tests.support.waiting import until

ROOT = Path(__file__).parents[2]
REPORTS = ROOT / "build" / "reports"
CHANNELS = 32
ROWS = 9600
#: The writers change one of this many rows.
SPARSE = 20
WRITERS = 3
BATCH = 12
#: Seconds between two batches of a writer.
PACE = 0.25
#: Seconds that every write takes, so that a strike hits an unfinished one.
WRITE_SECONDS = 0.05
#: Seconds that a worker waits for the answer to its first heartbeat after a pause.
LATE_ANSWER = 2.0
#: Heartbeats that are lost in a row. A worker repeats at once, so they may all be one worker's. With more of them its
#: fence would close, which is a strike that the judge does not know.
MAX_LOST_HEARTBEATS = 2
#: Seconds until the service has given every worker some channels.
SPREADING = 40.0
#: Seconds until everything is copied once the writers have stopped.
CATCHING_UP = 60.0
#: Workers killed in addition to the schedule, at most.
MORE_STRIKES = 8
WRITER = "writer"


class RecordingEmulator(EmulatorProcess):
    """The emulator that keeps a ledger."""

    _folder = ROOT

    def __init__(self, ledger: Path) -> None:
        keys = [WRITER, *(name_of(worker, start) for worker in range(WORKERS) for start in range(STARTS))]
        settings = {"page_rows": 40, "init_delay": 0.2}
        options = {"instances": [SOURCE, COPY], "keys": keys, "settings": settings}
        super().__init__(None, str(ledger), json.dumps(options))

    def _command(self) -> list[str]:
        return [sys.executable, "-m", "tests.chaos.recording_emulator", *self._options]

    def cut_connections(self) -> None:
        """Break all connections of the data port."""
        self.send(signal.SIGUSR1)


class Writer:
    """Changes its keys in turn and keeps the number of the last change of each."""

    def __init__(self, table: TableClient, keys: list[str], base_ms: int, chance: random.Random) -> None:
        self._table = table
        self._base_ms = base_ms
        self._chance = chance
        self.numbers = dict.fromkeys(keys, 1)

    async def run(self, done: asyncio.Event) -> None:
        """Write until told to end; the batch under way is finished."""
        while not done.is_set():
            await self._write(self._chance.sample(sorted(self.numbers), BATCH))
            await asyncio.sleep(self._chance.uniform(0.5, 1.5) * PACE)

    async def _write(self, keys: list[str]) -> None:
        while keys:
            changes = [change_of(key, self.numbers[key] + 1, self._base_ms) for key in keys]
            try:
                outcomes = await self._table.batch_write(TABLE, changes, timeout=10)
            except (TransportError, ServiceError):
                await asyncio.sleep(0.1)  # faults also hit the writers
                continue
            for key, outcome in zip(keys, outcomes, strict=True):
                self.numbers[key] += outcome.code is None
            keys = [key for key, outcome in zip(keys, outcomes, strict=True) if outcome.code is not None]


class Run:
    """Steps of a test with a running emulator."""

    def __init__(self, emulator: RecordingEmulator, folder: Path, ledger: Path, seed: int) -> None:
        credentials = static_credentials(Credentials(WRITER, "test-secret"))
        self.emulator = emulator
        self._folder = folder
        self._ledger = ledger
        self._chance = random.Random(seed)
        self._admin = aiohttp.ClientSession(emulator.admin_url)
        self._tunnels = TunnelClient(emulator.endpoint, SOURCE, credentials)
        self._tables = {name: TableClient(emulator.endpoint, name, credentials) for name in (SOURCE, COPY)}
        self._callers = [ServiceCaller(AioTransport(emulator.endpoint), name, credentials) for name in (SOURCE, COPY)]
        self._base_ms = int(time.time() * 1000)
        self._writers: list[Writer] = []
        self.processes: WorkerProcesses | None = None

    async def prepare(self, command: tuple[str, ...] = ()) -> None:
        """Make both tables, fill one, and make the tunnel."""
        await self._post("/partitions", instance=SOURCE, table=TABLE, count=CHANNELS)
        for caller in self._callers:
            await caller.call(TABLE_OPERATIONS["CreateTable"], create_table_request(TABLE, max_versions=VERSIONS))
        keys = [f"k{number:05}" for number in range(ROWS)]
        for start in range(0, ROWS, 200):
            rows = [change_of(key, 1, self._base_ms) for key in keys[start : start + 200]]
            outcomes = await self._tables[SOURCE].batch_write(TABLE, rows)
            assert all(outcome.code is None for outcome in outcomes), outcomes
        tunnel_id = await self._tunnels.create_tunnel(TABLE, TUNNEL, TunnelType.BaseAndStream)
        await until(self._has_channels, 30, "the tunnel has its channels", pause=0.05)
        await self._post("/faults", operation="BatchWriteRow", latency=WRITE_SECONDS)
        changed = keys[::SPARSE]
        self._writers = [
            Writer(self._tables[SOURCE], changed[number::WRITERS], self._base_ms, self._chance)
            for number in range(WRITERS)
        ]
        self.processes = WorkerProcesses(self.emulator.endpoint, tunnel_id, self._folder, command)

    async def _has_channels(self) -> bool:
        return (await self._tunnels.describe_tunnel(TABLE, TUNNEL)).tunnel.stage != Stage.INIT

    async def endure(
        self, events: tuple[Event, ...], length: float, enough: Mapping[str, int] = MappingProxyType({})
    ) -> None:
        """Run workers and writers while the events of a schedule happen, and until enough has been tried.

        Args:
            events: the schedule.
            length: seconds at least.
            enough: counts of the judge that have to be reached; on a busy machine the schedule alone may bring fewer
                of them, and further workers are killed until they are.
        """
        assert self.processes is not None
        await asyncio.gather(*(self.processes.start(worker) for worker in range(WORKERS)))
        await self._until_every_worker_has_channels()
        began, done = time.monotonic(), asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            for writer in self._writers:
                tasks.create_task(writer.run(done))
            async with asyncio.TaskGroup() as blows:
                for event in events:
                    await asyncio.sleep(max(0.0, began + event.at - time.monotonic()))
                    blows.create_task(self._happen(event), name=str(event))
            await asyncio.sleep(max(0.0, began + length - time.monotonic()))
            for worker in range(MORE_STRIKES):
                if not enough or await asyncio.to_thread(self._reaches, enough):
                    break
                await self._happen(Event(time.monotonic() - began, Blow.KILL, worker=worker % WORKERS))
                await asyncio.sleep(RECOVERY)
            done.set()

    def _reaches(self, enough: Mapping[str, int]) -> bool:
        """Whether what the ledger holds already has the counts."""
        assert self.processes is not None
        written = self._ledger.read_text()
        whole = written[: written.rfind("\n") + 1].splitlines()
        counts = Judge(tuple(self.processes.strikes)).judge(parse(whole), {}).counts
        return all(counts[name] >= least for name, least in enough.items())

    async def catch_up(self) -> None:
        """Wait until the workers have consumed everything; all faults are over by then."""
        await self._post("/faults", clear=True)
        now_ns = time.time_ns()
        async with asyncio.timeout(CATCHING_UP):
            while True:
                tunnel = await self.tunnel()
                if tunnel["consumePoint"] > now_ns:
                    return
                await asyncio.sleep(0.3)

    async def tunnel(self) -> dict[str, Any]:
        """The tunnel in the emulator's state."""
        async with self._admin.get("/state") as answer:
            state = await answer.json()
        (found,) = [tunnel for instance in state["instances"] for tunnel in instance["tunnels"]]
        return found

    async def compare(self) -> Comparison:
        """Both tables, cell by cell and version by version."""
        return await compare_tables(self._tables[SOURCE], TABLE, self._tables[COPY], TABLE)

    async def judge(self) -> Verdict:
        """Stop the emulator, which completes its ledger, and judge the ledger."""
        assert self.processes is not None
        await self.emulator.stop()
        acknowledged = {key: number for writer in self._writers for key, number in writer.numbers.items()}
        with self._ledger.open() as lines:
            verdict = Judge(self.processes.strikes).judge(parse(lines), acknowledged)
        verdict.counts["changes acknowledged to writers"] = sum(acknowledged.values()) - len(acknowledged)
        return verdict

    def keep_ledger(self, name: str) -> Path:
        """Copy the ledger to where a failed test's folder is not cleared away; the copy's path."""
        REPORTS.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copy(self._ledger, REPORTS / f"{name}.jsonl"))

    async def close(self) -> None:
        """End all workers and connections."""
        if self.processes is not None:
            await self.processes.dismiss()
        await self._admin.close()
        await self._tunnels.close()
        for client in (*self._tables.values(), *self._callers):
            await client.close()

    async def _until_every_worker_has_channels(self) -> None:
        """Wait until every worker holds channels, so that a strike interrupts work."""
        async with asyncio.timeout(SPREADING):
            while True:
                owners = {each["owner"] for each in (await self.tunnel())["channels"] if each["status"] == "OPEN"}
                if len(owners) == WORKERS:
                    return
                await asyncio.sleep(0.1)

    async def _happen(self, event: Event) -> None:
        assert self.processes is not None
        match event.blow:
            case Blow.KILL:
                await self.processes.kill(event.worker)
                await asyncio.sleep(event.seconds)
                await self.processes.start(event.worker)
            case Blow.PAUSE:
                self.processes.stop(event.worker)
                await asyncio.sleep(event.seconds)
                # The notice that it is no client any more comes late: only its fence can stop it.
                await self._post(
                    "/faults",
                    operation="Heartbeat",
                    access_key_id=self.processes.name(event.worker),
                    count=1,
                    latency=LATE_ANSWER,
                )
                self.processes.wake(event.worker)
            case Blow.CUT:
                self.emulator.cut_connections()
            case Blow.SPLIT | Blow.MERGE as blow:
                await self._post(f"/{blow.name.lower()}", instance=SOURCE, table=TABLE)
            case blow:
                await self._post("/faults", **_FAULTS[blow](event))

    async def _post(self, path: str, **document: object) -> None:
        async with self._admin.post(path, json=document) as answer:
            assert answer.status == 200, await answer.text()


_FAULTS: dict[Blow, Callable[[Event], dict[str, object]]] = {
    Blow.UNAVAILABLE: lambda event: {"unavailable": event.seconds},
    Blow.LOST_CHECKPOINTS: lambda event: {"operation": "Checkpoint", "count": event.count, "drop_response": True},
    Blow.LOST_WRITES: lambda event: {"operation": "BatchWriteRow", "count": event.count, "drop_response": True},
    Blow.BUSY_ROWS: lambda event: {"operation": "BatchWriteRow", "count": event.count, "row_code": "OTSServerBusy"},
    Blow.SLOW_WRITES: lambda event: {"operation": "BatchWriteRow", "count": event.count, "latency": event.seconds},
    Blow.CUT_PAGES: lambda event: {"operation": "ReadRecords", "count": event.count, "cut_response": True},
    Blow.LOST_HEARTBEATS: lambda event: {
        "operation": "Heartbeat",
        "count": min(event.count, MAX_LOST_HEARTBEATS),
        "drop_response": True,
    },
}


@asynccontextmanager
async def chaos(folder: Path, seed: int) -> AsyncIterator[Run]:
    """An emulator and the parts of one run; no process outlives the block."""
    ledger = folder / "ledger.jsonl"
    async with RecordingEmulator(ledger) as emulator:
        run = Run(emulator, folder, ledger, seed)
        try:
            yield run
        finally:
            await run.close()
