"""Workers that follow a stream by shards and leases, on an emulator in the loop's time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from ots_emulator import Emulator, Settings
from ots_tunnel.client.caller import ServiceCaller
from ots_tunnel.model import Credentials, TunnelId
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.http.message import HttpRequest, HttpResponse
from ots_tunnel.protocol.http.operations import TABLE_OPERATIONS
from ots_tunnel.sinks import Sink
from ots_tunnel.stream.calls.client import StreamClient
from ots_tunnel.stream.calls.lease_table import LeaseTable
from ots_tunnel.stream.following.settings import FollowSettings
from ots_tunnel.stream.lease.lease import Lease
from ots_tunnel.stream.lease.requests import create_request
from ots_tunnel.stream.lease.row import encode_lease
from ots_tunnel.stream.processing.processor import RecordProcessorFactory
from ots_tunnel.stream.processing.settings import StreamWorkerConfig
from ots_tunnel.stream.processing.worker import StreamWorker
from ots_tunnel.stream.shards import ShardId
from ots_tunnel.stream.sinking.worker import StreamSinkWorker
from ots_tunnel.transport.inprocess import InProcessTransport
from ots_tunnel.worker.settings import WorkerSettings
from tests.support.emulator.emulator_scene import CREDENTIALS, TABLE, Handle
from tests.support.emulator.stream_scene import HOST, StreamScene, quick_caller
from tests.support.emulator.virtual_scene import LoopClock

LEASES = "leases"
KEYS = [f"k{number:02}" for number in range(16)]
SETTINGS = WorkerSettings(
    TunnelId(LEASES), table=TABLE, tunnel_name=LEASES, interval=6, timeout=20, checkpoint_interval=1, drain=45
)


class FollowScene(StreamScene):
    """A table with a stream, its table of leases, and workers. Make it inside the test, where the loop's time runs."""

    def __init__(self) -> None:
        self.clock = LoopClock(1_700_000_000.0)
        settings = Settings(init_delay=0.01, date_skew=None, range_rows=5)
        super().__init__(Emulator(settings=settings, clock=self.clock))
        self.stream_id = ""
        #: Answers a worker's calls in place of the emulator, by its id.
        self.answers: dict[str, Handle] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def begin(self) -> None:
        """Create the table, inside of the test: the time of the loop does not run before."""
        self.stream_id = await self.create_stream()

    def handle_of(self, me: str) -> Handle:
        async def handle(request: HttpRequest) -> HttpResponse:
            return await self.answers.get(me, self.emulator.handle)(request)

        return handle

    def worker(
        self, me: str, sink: Sink, follow: FollowSettings | None = None, *, leases: str = LEASES, **settings: Any
    ) -> StreamSinkWorker:
        """Start a worker into a sink."""
        clock = asyncio.get_running_loop().time
        caller = ServiceCaller(InProcessTransport(self.handle_of(me)), "demo", CREDENTIALS)
        made = StreamSinkWorker(
            StreamClient(HOST, "demo", CREDENTIALS, caller=caller),
            LeaseTable(caller, leases),
            sink,
            replace(SETTINGS, client_tag=me, **settings),
            follow or FollowSettings(),
            clock=clock,
        )
        self.tasks[me] = asyncio.get_running_loop().create_task(made.run())
        return made

    def processors(self, me: str, factory: RecordProcessorFactory, **config: Any) -> StreamWorker:
        """Start a worker with a user's processors."""
        made = StreamWorker(
            me,
            StreamWorkerConfig(HOST, "demo", Credentials("test-id", "test-secret"), TABLE, LEASES, **config),
            factory,
            transport=InProcessTransport(self.handle_of(me)),
            clock=asyncio.get_running_loop().time,
        )
        self.tasks[me] = asyncio.get_running_loop().create_task(made.run_async())
        return made

    async def leases(self) -> dict[ShardId, Lease]:
        """The leases in the table."""
        listing = await LeaseTable(quick_caller(self.emulator.handle), LEASES).list(self.stream_id)
        return {lease.shard_id: lease for lease in listing.leases}

    async def write_lease_anew(self, shard: ShardId) -> None:
        """What the Java library does for a shard that it holds for a new one: a write without a condition."""
        shards = await self.stream_client().shards(self.stream_id)
        parents = next((each.parents for each in shards if each.shard_id == shard), frozenset[ShardId]())
        lease = Lease(self.stream_id, shard, parents=parents)
        late = create_request(LEASES, lease)
        late.condition.row_existence = pb.IGNORE
        late.row = encode_lease(lease)
        await LeaseTable(quick_caller(self.emulator.handle), LEASES).put(late)

    def split(self) -> list[str]:
        return self.emulator.split("demo", TABLE)

    async def switch_stream(self, *, on: bool) -> None:
        request = pb.UpdateTableRequest(table_name=TABLE)
        request.stream_spec.enable_stream = on
        if on:
            request.stream_spec.expiration_time = 24
        await self.caller.call(TABLE_OPERATIONS["UpdateTable"], request)

    async def end(self) -> None:
        """Cancel what still runs."""
        for task in self.tasks.values():
            task.cancel()
        await asyncio.gather(*self.tasks.values(), return_exceptions=True)


@asynccontextmanager
async def following() -> AsyncIterator[FollowScene]:
    """A scene whose table is still to be created, in the test; what runs at the end is cancelled."""
    scene = FollowScene()
    try:
        yield scene
    finally:
        await scene.end()
