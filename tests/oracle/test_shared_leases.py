"""Our workers and one of the vendor's Stream Client library share a table of leases, and read its shards together."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ots_emulator.server.faults import FaultRule
from ots_tunnel.errors import TunnelError
from ots_tunnel.model import TunnelId
from ots_tunnel.stream.calls.client import StreamClient
from ots_tunnel.stream.calls.lease_table import LeaseTable
from ots_tunnel.stream.calls.lease_table_creation import create_lease_table
from ots_tunnel.stream.following.settings import FollowSettings
from ots_tunnel.stream.holding.held_lease import HeldLease
from ots_tunnel.stream.holding.keeper import LeaseKeeper
from ots_tunnel.stream.holding.settings import LeaseSettings
from ots_tunnel.stream.holding.syncing import sync_shards
from ots_tunnel.stream.lease.lease import Lease, WorkerId
from ots_tunnel.stream.sinking.worker import StreamSinkWorker
from ots_tunnel.worker.settings import WorkerSettings
from tests.oracle.stream_worker import STATUS, create_table, running
from tests.oracle.stream_worker import StreamWorker as JavaWorker
from tests.support.emulator.emulator_scene import CREDENTIALS, TABLE, EmulatorScene
from tests.support.sinks.sinks import RecordingSink
from tests.support.waiting import until

pytestmark = [pytest.mark.oracle, pytest.mark.leases, pytest.mark.timeout(300)]

JAVA, OURS = WorkerId("oracle"), WorkerId("ours")
KEYS = [f"k{number}" for number in range(8)]
#: Milliseconds between two rounds of the library.
ROUND = {"round-millis": 900}
#: Seconds by which a list is carried out later than it was asked for, see `finds_thieves`.
LATE_LIST = 0.4
#: Seconds between two looks of a test: the emulator answers in this process.
LOOK = 0.2
#: The duration is the library's default; the rounds are those of its program in these tests.
SETTINGS = LeaseSettings(renew_interval=0.3, take_interval=0.3)
FOLLOW = FollowSettings(SETTINGS, parent_interval=0.3, sync_interval=0.5)
WORKER = WorkerSettings(
    TunnelId(STATUS), TABLE, STATUS, client_tag="ours", interval=0.3, timeout=20, checkpoint_interval=0.1, drain=20
)


def finds_thieves(scene: EmulatorScene) -> None:
    """From now on the library finds out that a lease was asked for, however fast or slow the machine is.

    It asks for the list and for every renewal at one moment, and looks for a thief only where the listed counter is
    that of the lease after its renewal. A list that is carried out before the renewals never shows one: renewals that
    take 50 ms longer keep the library from giving a lease away for minutes, on an idle machine.
    """
    scene.emulator.add_fault(FaultRule("GetRange", latency=LATE_LIST))


class Idle:
    """Reads nothing, and hands a lease over as soon as it is asked for."""

    def __init__(self) -> None:
        self.keeper: LeaseKeeper | None = None
        self.giving: set[asyncio.Task[None]] = set()
        self.lost_shards: list[str] = []
        self.errors: list[TunnelError] = []

    def gained(self, held: HeldLease) -> None:
        """It is read by no one until it is handed over."""

    def asked(self, held: HeldLease) -> None:
        assert self.keeper is not None
        self.giving.add(asyncio.get_running_loop().create_task(self.keeper.give(held)))

    def lost(self, held: HeldLease) -> None:
        self.lost_shards.append(held.shard_id)

    def failed(self, error: TunnelError) -> None:
        self.errors.append(error)


class Ours:
    """One of our workers on the scene's table."""

    def __init__(self, scene: EmulatorScene, stream_id: str) -> None:
        self.table = LeaseTable(scene.caller, STATUS)
        self.stream_id = stream_id
        self.work = Idle()
        self.keeper = self.work.keeper = LeaseKeeper(self.table, stream_id, OURS, self.work, SETTINGS)

    async def leases(self) -> tuple[Lease, ...]:
        return (await self.table.list(self.stream_id)).leases

    async def owners(self) -> dict[WorkerId, int]:
        """How many leases each worker owns for good; none while one is on its way."""
        found = await self.leases()
        if any(lease.stealer for lease in found):
            return {}
        owners = [lease.owner for lease in found]
        return {owner: owners.count(owner) for owner in owners}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run inside the block, which has to stop the keeper; otherwise it is killed."""
        task = asyncio.create_task(self.keeper.run())
        try:
            yield
            await asyncio.wait_for(task, 30)
        finally:
            task.cancel()


async def made(scene: EmulatorScene) -> Ours:
    """A table with a stream of four open shards, their three parents, and rows from before and after the splits."""
    await create_table(scene)
    await scene.put(KEYS, range(2))
    for _ in range(3):
        scene.emulator.split("demo", TABLE)
    await scene.put(KEYS, range(2, 4))
    client = StreamClient(scene.emulator.endpoint, "demo", CREDENTIALS, caller=scene.caller)
    return Ours(scene, (await client.stream_of(TABLE)).stream_id)


async def test_leases_move_from_java_to_us_and_back(scene: EmulatorScene, stream_client: Path) -> None:
    ours = await made(scene)
    async with running(stream_client, scene.emulator.endpoint, **ROUND) as java:
        await until(lambda: java.has(32), 120, "the library has read everything")
        finds_thieves(scene)

        async with ours.running():
            await until(lambda: len(ours.keeper.held) >= 3, 120, "we have our share")
            await until(lambda: ours.owners(), 60, "nothing is on its way", pause=LOOK)
            shares = await ours.owners()
            assert set(shares) == {JAVA, OURS}
            assert abs(shares[JAVA] - shares[OURS]) <= 1
            ours.keeper.stop()
        assert ours.work.lost_shards == []

        async def all_java() -> bool:
            return await ours.owners() == {JAVA: 7}

        await until(all_java, 60, "the library has taken what we handed over", pause=LOOK)
        await scene.put(KEYS, range(4, 6))
        await until(lambda: java.has(48), 120, "the library has read on")
        # Each lease moved with its checkpoint: nothing was read twice, nothing was left out.
        assert java.written == {key: list(range(6)) for key in KEYS}


async def test_java_goes_on_with_the_leases_that_we_made(scene: EmulatorScene, stream_client: Path) -> None:
    ours = await made(scene)
    await create_lease_table(ours.table)
    client = StreamClient(scene.emulator.endpoint, "demo", CREDENTIALS, caller=scene.caller)
    plan = await sync_shards(client, ours.table, ours.stream_id)
    assert len(plan.create) == 7
    async with ours.running():
        await until(lambda: len(ours.keeper.held) == 7, 60, "we have every lease")
        ours.keeper.stop()
    created = {lease.shard_id: lease.parents for lease in await ours.leases()}

    async with running(stream_client, scene.emulator.endpoint) as java:
        await until(lambda: java.has(32), 120, "the library reads everything")
        assert java.written == {key: list(range(4)) for key in KEYS}
    assert {lease.shard_id: lease.parents for lease in await ours.leases()} == created


@asynccontextmanager
async def reading(scene: EmulatorScene, sink: RecordingSink) -> AsyncIterator[StreamSinkWorker]:
    """A worker of ours inside the block; it is drained at its end."""
    client = StreamClient(scene.emulator.endpoint, "demo", CREDENTIALS, caller=scene.caller)
    worker = StreamSinkWorker(client, LeaseTable(scene.caller, STATUS), sink, WORKER, FOLLOW)
    task = asyncio.create_task(worker.run())
    try:
        yield worker
        worker.drain()
        await asyncio.wait_for(task, 30)
    finally:
        task.cancel()


def together(java: JavaWorker, sink: RecordingSink) -> dict[str, list[int]]:
    """The numbers of each key that either has read."""
    found: dict[str, list[int]] = defaultdict(list)
    for key, number in sink.written:
        found[key].append(number)
    for key, numbers in java.written.items():
        found[key] += numbers
    return {key: sorted(numbers) for key, numbers in found.items()}


@pytest.mark.lasts(60)
async def test_java_and_we_share_a_table_through_splits_and_hand_over_to_each_other(
    scene: EmulatorScene, stream_client: Path
) -> None:
    await create_table(scene)
    for number in range(3):
        await scene.put(KEYS, [number])
        scene.emulator.split("demo", TABLE)
    sink = RecordingSink()
    client = StreamClient(scene.emulator.endpoint, "demo", CREDENTIALS, caller=scene.caller)
    stream_id, table = (await client.stream_of(TABLE)).stream_id, LeaseTable(scene.caller, STATUS)

    async def our_share() -> bool:
        """Three of seven leases: those of shards that the library has read to their end count, and show no channel."""
        found = (await table.list(stream_id)).leases
        return sum(lease.owner not in ("", JAVA) for lease in found) >= 3

    async with running(stream_client, scene.emulator.endpoint, **ROUND) as java:
        await until(lambda: java.has(24), 120, "the library has read everything")
        finds_thieves(scene)
        async with reading(scene, sink):
            await until(our_share, 120, "we have our share", pause=LOOK)
            scene.emulator.clear_faults()
            for number in range(3, 8):
                scene.emulator.split("demo", TABLE) if number % 2 else scene.emulator.merge("demo", TABLE)
                await scene.put(KEYS, [number])
                await asyncio.sleep(1)
            wanted = {key: list(range(8)) for key in KEYS}
            await until(lambda: together(java, sink) == wanted, 120, "everything was read once")
            assert sink.written, "we have read a part"
        # We have stopped: the library reads all shards.
        await scene.put(KEYS, [8])
        try:
            await until(
                lambda: together(java, sink) == {key: list(range(9)) for key in KEYS}, 120, "the library reads on"
            )
        except AssertionError as error:
            leases, stopped, errors = (await table.list(stream_id)).leases, java.of("stop"), java.of("error")
            error.add_note(f"leases: {leases}, stopped: {stopped}, errors: {errors}")
            raise
        ordered = [numbers == sorted(numbers) for numbers in java.written.values()]
        assert all(ordered)
        handed_over = len(sink.written)

    # The library was killed: we take its leases when they have expired.
    async with reading(scene, sink):
        await scene.put(KEYS, [9])
        await until(lambda: {(key, 9) for key in KEYS} <= set(sink.written), 120, "we read on")
    assert len(sink.written) >= handed_over + len(KEYS)
