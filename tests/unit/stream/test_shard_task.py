"""A shard's task between a scripted worker and scripted work."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, cast

import pytest

from ots_tunnel.errors import OwnershipLost, TunnelError
from ots_tunnel.fence import ChannelFence, Fence, InDoubt
from ots_tunnel.stream.decide.consumer import Event, State
from ots_tunnel.stream.following.shard_task import ShardTask
from ots_tunnel.stream.following.work import Report
from ots_tunnel.stream.holding.held_lease import HeldLease
from ots_tunnel.stream.lease.lease import SHARD_END, TRIM_HORIZON, Lease, Position
from ots_tunnel.stream.shards import ShardId

pytestmark = pytest.mark.looptime


class Held:
    """A lease that is given away as the test says."""

    def __init__(self, checkpoint: Position = TRIM_HORIZON) -> None:
        self.shard_id = ShardId("s")
        self.lease = Lease("stream", self.shard_id, checkpoint=checkpoint)
        self.is_over = False


class Work:
    """Work whose outcome the test sets."""

    def __init__(self, events: list[str]) -> None:
        self.events = events
        self.has_moved = False
        self.outcome: asyncio.Future[Event] = asyncio.get_running_loop().create_future()
        self.report: Report | None = None

    def stop(self) -> None:
        self.events.append("stop")

    async def run(self, report: Report) -> Event:
        self.events.append("run")
        self.report = report
        report(Event.OPENED)
        try:
            return await self.outcome
        except asyncio.CancelledError:
            self.events.append("cancelled")
            raise


class Host:
    """A worker with one shard."""

    def __init__(self, checkpoint: Position = TRIM_HORIZON) -> None:
        loop = asyncio.get_running_loop()
        self.events: list[str] = []
        self.works: list[Work] = []
        self.tasks: list[asyncio.Task[None]] = []
        self.fences: list[ChannelFence] = []
        self.pauses: list[int] = []
        self.refuses_gifts = 0
        self.held = Held(checkpoint)
        self.lease_fence = Fence(20, 6, loop.time)
        self.lease_fence.heartbeat_answered(1e9)
        self.task = ShardTask(cast(HeldLease, self.held), self)

    def start(self, coroutine: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        self.tasks.append(asyncio.get_running_loop().create_task(coroutine, name=name))
        return self.tasks[-1]

    def fence_of(self, held: HeldLease) -> ChannelFence:
        self.fences.append(ChannelFence(self.lease_fence, InDoubt(1)))
        return self.fences[-1]

    def work_on(self, held: HeldLease, fence: ChannelFence) -> Work:
        self.works.append(Work(self.events))
        return self.works[-1]

    def pause(self, failures: int) -> float:
        self.pauses.append(failures)
        return 10.0

    async def is_read(self, held: HeldLease) -> bool:
        return False

    def failed(self, error: TunnelError) -> None:
        raise AssertionError("no call is made here")

    async def give(self, held: HeldLease) -> None:
        self.events.append("give")
        if self.refuses_gifts:
            self.refuses_gifts -= 1
        else:
            self.held.is_over = True

    def sync_soon(self) -> None:
        self.events.append("sync")

    def changed(self, task: ShardTask, before: State) -> None:
        self.events.append(task.state.name)

    async def opened(self) -> None:
        """Let the shard be read."""
        self.task.feed(Event.PARENTS_DONE)
        await asyncio.sleep(0.01)
        assert self.task.state is State.READING
        self.events.clear()


async def test_a_shard_is_read_to_its_end() -> None:
    host = Host()
    await host.opened()

    work = host.works[0]
    assert work.report is not None
    work.report(Event.END_REACHED)
    work.outcome.set_result(Event.ENDED)
    await asyncio.sleep(0.01)

    assert host.events == ["ENDING", "FINISHED", "sync"]


async def test_a_finished_shard_is_not_worked_on() -> None:
    host = Host(SHARD_END)

    host.task.feed(Event.PARENTS_DONE)
    await asyncio.sleep(0.01)

    assert host.events == ["OPENING", "FINISHED", "sync"]


async def test_a_lease_is_given_when_the_work_has_stopped() -> None:
    host = Host()
    await host.opened()

    host.task.feed(Event.STOLEN)
    host.task.feed(Event.STOLEN)
    await asyncio.sleep(1)
    assert host.events == ["DRAINING", "stop"]
    host.works[0].outcome.set_result(Event.DRAINED)
    await asyncio.sleep(0.01)

    assert host.events[2:] == ["HANDING_OVER", "give", "HANDED_OVER"]


async def test_a_gift_that_fails_is_made_again_in_the_next_round() -> None:
    host = Host()
    host.refuses_gifts = 1

    host.task.feed(Event.STOPPED)
    await asyncio.sleep(0.01)
    assert host.task.state is State.HANDING_OVER
    host.task.feed(Event.STOPPED)
    host.task.feed(Event.STOPPED)
    await asyncio.sleep(0.01)

    assert host.events == ["HANDING_OVER", "give", "give", "HANDED_OVER"]


async def test_a_lost_lease_closes_the_fence_and_cancels_the_work() -> None:
    host = Host()
    await host.opened()

    host.task.feed(Event.LEASE_LOST)
    with pytest.raises(Exception, match="taken away"):
        host.fences[0].check()
    await asyncio.sleep(0.01)

    assert host.events == ["LOST", "cancelled"]
    assert host.task.unended is None


async def test_work_begins_again_after_a_pause_and_pauses_grow_until_it_moves() -> None:
    host = Host()
    await host.opened()
    for attempt in range(3):
        host.works[attempt].outcome.set_result(Event.FAILED)
        await asyncio.sleep(9)
        assert len(host.works) == attempt + 1
        await asyncio.sleep(2)

    host.works[3].has_moved = True
    host.works[3].outcome.set_result(Event.FAILED)
    await asyncio.sleep(11)

    assert len(host.works) == 5
    assert host.pauses == [0, 1, 2, 0]


async def test_a_shard_that_pauses_after_a_failure_is_given_at_once() -> None:
    host = Host()
    await host.opened()
    host.works[0].outcome.set_result(Event.FAILED)
    await asyncio.sleep(1)

    host.task.feed(Event.STOLEN)
    await asyncio.sleep(100)

    assert host.events == ["FAILED", "HANDING_OVER", "give", "HANDED_OVER"]
    assert len(host.works) == 1


async def test_work_on_a_lease_that_was_regained_waits_for_the_work_before() -> None:
    host = Host()
    gate = asyncio.Event()

    async def earlier() -> None:
        await gate.wait()

    before = asyncio.get_running_loop().create_task(earlier())
    task = ShardTask(cast(HeldLease, host.held), host, before)
    assert task.unended is before
    task.feed(Event.PARENTS_DONE)
    await asyncio.sleep(1)
    assert "run" not in host.events

    gate.set()
    await asyncio.sleep(0.01)
    assert host.events[-2:] == ["run", "READING"]


async def test_a_restart_begins_new_work_at_once() -> None:
    host = Host()
    await host.opened()

    host.works[0].outcome.set_result(Event.RESTART)
    await asyncio.sleep(0.01)

    assert host.events == ["OPENING", "run", "READING"]
    assert len(host.works) == 2


async def test_a_lease_that_is_lost_while_its_shard_is_ended_again_is_no_failed_call() -> None:
    class AnewHost(Host):
        async def is_read(self, held: HeldLease) -> bool:
            return True

    class LostLease(Held):
        async def store(self, position: Position) -> None:
            raise OwnershipLost("the lease is not held")

    host = AnewHost()
    host.held = LostLease()
    host.task = ShardTask(cast(HeldLease, host.held), host)
    host.task.feed(Event.PARENTS_DONE)
    await asyncio.sleep(0.01)

    assert not any(task.done() and task.exception() for task in host.tasks)
    assert host.task.state is State.FAILED
    host.task.feed(Event.LEASE_LOST)
    assert host.task.state is State.LOST
