"""Three workers of the vendor's library and three of ours share 24 shards while workers come, go, die and freeze."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from ots_emulator.refusal import Refusal
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.http.operations import TABLE_OPERATIONS
from ots_tunnel.stream.calls.lease_table import LeaseTable
from ots_tunnel.stream.lease.lease import Lease
from tests.oracle.sharing.members import LEASE, ROUND, Member, Members, members_of
from tests.oracle.stream_worker import STATUS
from tests.support.emulator.emulator_scene import TABLE, EmulatorScene
from tests.support.waiting import until

pytestmark = [pytest.mark.oracle, pytest.mark.leases, pytest.mark.timeout(1800)]

SHARDS = 24
KEYS = [f"k{number:03}" for number in range(2 * SHARDS)]
#: Most shards of a worker that are split or merged just after something has happened to it.
CLOSED = 2
#: Seconds between two happenings.
PAUSE = 1.0
#: Seconds between two looks: the emulator answers in this process.
LOOK = 0.3
#: Rounds in which no lease may move in the end: thieves that ask for too many do so within two or three.
RESTING = 8
#: Seconds within which every change has come, and every lease is at rest: generous, for a machine that is busy. Where
#: renewals come too late, shards begin again and again.
DEADLINE = 500.0
SEEDS = [pytest.param(1, marks=pytest.mark.lasts(35))] + [
    pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 12)
]


async def create_table(scene: EmulatorScene) -> None:
    """A table whose stream begins with its rows, and has 24 shards."""
    await scene.create_table()
    await scene.put(KEYS, [0])
    scene.written.clear()
    scene.emulator.set_partitions("demo", TABLE, SHARDS)
    request = pb.UpdateTableRequest(table_name=TABLE)
    request.stream_spec.enable_stream, request.stream_spec.expiration_time = True, 24
    await scene.caller.call(TABLE_OPERATIONS["UpdateTable"], request)


async def leases(scene: EmulatorScene) -> tuple[Lease, ...]:
    """Every lease in the table."""
    found = await scene.caller.call(TABLE_OPERATIONS["ListStream"], pb.ListStreamRequest(table_name=TABLE))
    return (await LeaseTable(scene.caller, STATUS).list(found[0].streams[0].stream_id)).leases


class Trouble:
    """What happens to the workers, in an order by chance: each kind of worker is killed, stopped and paused."""

    def __init__(self, members: Members, seed: int) -> None:
        self._members = members
        self._chance = random.Random(seed)
        self._pauses: list[asyncio.Task[None]] = []
        acts = [(act, ours) for act in (self._kill, self._stop, self._freeze) for ours in (True, False)]
        self.acts = self._chance.sample(acts, len(acts))

    async def happen(self, act: Callable[[Member], Awaitable[None]], ours: bool, found: tuple[Lease, ...]) -> list[str]:
        """Let one thing happen to a worker of a kind, another one takes its place; return the shards it was reading.

        Args:
            found: the leases just before.
        """
        await self._members.complete()
        running = self._members.running(ours=ours)
        owned = {each: [lease.shard_id for lease in found if lease.owner == each.name] for each in running}
        victim = self._chance.choice([each for each in running if owned[each]] or running)
        await act(victim)
        await self._members.complete()
        return [*owned[victim]]

    async def end(self) -> None:
        """Wait until every paused worker runs again."""
        await asyncio.gather(*self._pauses)

    async def _kill(self, member: Member) -> None:
        await member.kill()

    async def _stop(self, member: Member) -> None:
        await member.stop()

    async def _freeze(self, member: Member) -> None:
        self._pauses.append(asyncio.create_task(member.pause(LEASE + 2)))


@pytest.mark.parametrize("seed", SEEDS)
async def test_everything_is_read_in_order_while_workers_of_both_kinds_come_and_go(
    scene: EmulatorScene, stream_client: Path, seed: int
) -> None:
    """A worker that is killed or paused leaves changes unread in a shard that is split or merged then.

    Those in the children come later, though the children have readers long before the lease of their parent expires.
    """
    chance = random.Random(seed)
    begin = time.monotonic_ns()
    await create_table(scene)
    async with members_of(scene.emulator.endpoint, stream_client) as members:
        await members.complete()
        await scene.put(KEYS, [1])
        await reached(members, lambda: _all_read(members), "every worker has a shard")
        trouble = Trouble(members, seed)
        for number, (act, ours) in enumerate(trouble.acts, 1):
            open_leases = [lease for lease in await leases(scene) if is_open(scene, lease)]
            shards = await trouble.happen(act, ours, tuple(open_leases))
            await scene.put(KEYS, [2 * number])
            for shard in chance.sample(shards, min(CLOSED, len(shards))):
                close(scene, shard, chance)
            await scene.put(KEYS, [2 * number + 1])
            await asyncio.sleep(PAUSE)
        await trouble.end()

        wanted = {(key, number) for key, numbers in scene.written.items() for number in numbers}
        reading = Reading(scene, members, wanted)
        await reached(members, reading.is_over, "everything is read", reading, scene)
        rest = Rest(scene, members)
        await reached(members, rest.is_reached, "the leases are shared evenly, and none moves any more", rest, scene)
        assert [each.name for each in members.failed if each.is_ours] == []
        assert {each.is_ours for each in members.all if each.printed.of("record")} == {True, False}
    for where, session in members.sessions():
        for key, numbers in session.items():
            assert numbers == list(range(numbers[0], numbers[-1] + 1)), (where, key)
    in_order_over_all(members, begin)


def is_open(scene: EmulatorScene, lease: Lease) -> bool:
    """Whether its shard takes changes."""
    log = scene.emulator.instances["demo"].tables[TABLE].log
    assert log is not None
    return lease.shard_id in {each.id for each in log.open_partitions}


def close(scene: EmulatorScene, shard: str, chance: random.Random) -> None:
    """Split a shard or merge it with the next one, by chance where both can be done."""
    for control in chance.sample((scene.emulator.split, scene.emulator.merge), 2):
        try:
            control("demo", TABLE, shard)
        except Refusal:
            continue  # it has one key, or is the last one, or was merged with the one before
        return


def in_order_over_all(members: Members, begin: int) -> None:
    """Check that the changes of each key were first seen in order over all workers and shards.

    Later sightings are repeats: the next owner of a lease begins at the checkpoint.

    Args:
        begin: before the first worker started, by the clock of `Members.first_seen`.
    """
    end = time.monotonic_ns()
    for key, seen in members.first_seen().items():
        assert all(begin < at < end for at in seen.values()), "a program shows the time of another clock"
        numbers = sorted(seen)
        ahead = {number: (seen[number - 1] - seen[number]) / 1e9 for number in numbers[1:]}
        early = {number: round(seconds, 3) for number, seconds in ahead.items() if seconds > 0}
        assert early == {}, f"changes of {key} came so many seconds before the one before them"


async def _all_read(members: Members) -> bool:
    """Whether each worker has a shard; one of the library's that has ended by itself has another one in its place."""
    await members.complete()
    return all(each.printed.of("start") for ours in (True, False) for each in members.running(ours=ours))


async def reached(
    members: Members,
    condition: Callable[[], bool | Awaitable[bool]],
    what: str,
    state: object = None,
    scene: EmulatorScene | None = None,
) -> None:
    """Wait for a condition; a failure tells the state, what the workers of the library have died of, and the leases."""
    try:
        await until(condition, DEADLINE, what, pause=LOOK)
    except AssertionError as error:
        if state is not None:
            error.add_note(str(state))
        error.add_note(f"ended by themselves: {[(each.name, each.printed.of('error')) for each in members.failed]}")
        if scene is not None:
            error.add_note(f"leases: {await leases(scene)}")
        raise


class StuckLibraries:
    """Replaces a worker of the library that has got stuck beside a shard: it holds the lease and reads no more.

    That happens where renewals are late, because the machine is busy (`test_stuck_library.py`). Then somebody has to
    end that worker, as docs/stream.md says.
    """

    def __init__(self, members: Members) -> None:
        self._members = members
        self._since: dict[tuple[str, str], float] = {}

    async def replace(self, found: tuple[Lease, ...], now: float) -> None:
        """Look at the leases, and replace those that have been stuck for longer than two leases last."""
        owned = {(str(lease.owner), str(lease.shard_id)) for lease in found if not lease.is_finished}
        libraries = self._members.running(ours=False)
        stuck = {(each.name, shard) for each in libraries for shard in each.shut_down if (each.name, shard) in owned}
        self._since = {held: self._since.get(held, now) for held in stuck}
        names = {name for (name, _), since in self._since.items() if now - since > 2 * LEASE}
        for each in libraries:
            if each.name in names:
                await each.kill()
        await self._members.complete()


class Reading:
    """The reading of every change."""

    def __init__(self, scene: EmulatorScene, members: Members, wanted: set[tuple[str, int]]) -> None:
        self._scene = scene
        self._members = members
        self._wanted = wanted
        self._stuck = StuckLibraries(members)
        self._next = 0.0

    async def is_over(self) -> bool:
        """Whether every change has been read."""
        now = asyncio.get_running_loop().time()
        if now >= self._next and not self._members.delivered() >= self._wanted:
            self._next = now + ROUND
            await self._stuck.replace(await leases(self._scene), now)
        return self._members.delivered() >= self._wanted

    def __str__(self) -> str:
        return f"missing: {sorted(self._wanted - self._members.delivered())}"


class Rest:
    """The leases at rest: each has an owner that runs, shares differ by one at most, and none has moved for a while."""

    def __init__(self, scene: EmulatorScene, members: Members) -> None:
        self._scene = scene
        self._members = members
        self._stuck = StuckLibraries(members)
        self._owners: dict[str, str] = {}
        self._since = 0.0
        self._shares: dict[str, int] = {}
        self._unread: list[Lease] = []
        self._rests = 0.0

    async def is_reached(self) -> bool:
        """Whether they are, as far as looks like this one tell."""
        found, now = await leases(self._scene), asyncio.get_running_loop().time()
        await self._stuck.replace(found, now)
        owners = {str(lease.shard_id): str(lease.owner) for lease in found}
        if owners != self._owners:
            self._owners, self._since = owners, now
        closed = {parent for lease in found for parent in lease.parents}
        names = [each.name for ours in (True, False) for each in self._members.running(ours=ours)]
        self._shares = {name: list(owners.values()).count(name) for name in names}
        self._unread = [lease for lease in found if lease.shard_id in closed and not lease.is_finished]
        self._rests = now - self._since
        shares = self._shares.values()
        is_even = sum(shares) == len(found) and max(shares) - min(shares) <= 1
        return is_even and not self._unread and self._rests >= RESTING * ROUND

    def __str__(self) -> str:
        closed = [(lease.shard_id[:8], lease.owner, lease.counter) for lease in self._unread]
        return f"{len(self._owners)} leases rest for {self._rests:.1f} s; {self._shares}; closed and not read: {closed}"
