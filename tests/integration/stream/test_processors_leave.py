"""How processors leave a shard: after an error, with the lease, and when something is wrong with them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest

from ots_tunnel.errors import ReadTimeout
from ots_tunnel.protocol.http.message import HttpRequest, HttpResponse
from ots_tunnel.stream.calls.lease_table import LeaseTable
from ots_tunnel.stream.decide.consumer import State
from ots_tunnel.stream.lease import change
from ots_tunnel.stream.lease.lease import WorkerId
from ots_tunnel.stream.processing.processor import (
    InitializationInput,
    ProcessRecordsInput,
    ShutdownInput,
    ShutdownReason,
)
from ots_tunnel.stream.processing.worker import WorkerState
from tests.support.emulator.follow_scene import KEYS, LEASES, FollowScene, following
from tests.support.emulator.stream_scene import quick_caller
from tests.support.waiting import until

pytestmark = pytest.mark.looptime

#: D of the default times.
D = (20 - 6) / 3


def now() -> float:
    return asyncio.get_running_loop().time()


class Processor:
    """Its methods are what the test says."""

    def __init__(
        self,
        process: Callable[[ProcessRecordsInput], Coroutine[Any, Any, None]],
        leave: Callable[[ShutdownInput], Coroutine[Any, Any, None]],
    ) -> None:
        self._process = process
        self._leave = leave

    async def initialize(self, given: InitializationInput) -> None:
        return None

    async def process_records(self, given: ProcessRecordsInput) -> None:
        await self._process(given)

    async def shutdown(self, given: ShutdownInput) -> None:
        await self._leave(given)


class Factory:
    """Makes processors of two functions."""

    def __init__(
        self,
        process: Callable[[ProcessRecordsInput], Coroutine[Any, Any, None]],
        leave: Callable[[ShutdownInput], Coroutine[Any, Any, None]] | None = None,
    ) -> None:
        self._process = process
        self._leave = leave or _nothing

    async def create_processor(self) -> Processor:
        return Processor(self._process, self._leave)


async def _nothing(_: object) -> None:
    return None


@pytest.fixture
async def scene() -> AsyncIterator[FollowScene]:
    async with following() as made:
        yield made


async def test_what_a_call_that_raised_has_sent_is_in_doubt_before_the_next_processor_begins(
    scene: FollowScene,
) -> None:
    """A request that timed out may still be carried out: a replay behind it would be overwritten."""
    await scene.begin()
    times: list[float] = []

    async def process(given: ProcessRecordsInput) -> None:
        if given.records:
            times.append(now())
            if len(times) == 1:
                raise TimeoutError("the destination did not answer")

    await scene.put(KEYS[:3])
    scene.processors("w", Factory(process))
    await until(lambda: len(times) == 2)

    assert times[1] - times[0] >= D


async def test_a_shutdown_after_an_error_has_the_time_of_the_lease(scene: FollowScene) -> None:
    await scene.begin()
    reasons: list[ShutdownReason] = []

    async def process(given: ProcessRecordsInput) -> None:
        if given.records and not reasons:
            raise ValueError("cannot")

    async def leave(given: ShutdownInput) -> None:
        await asyncio.sleep(3 * D)
        reasons.append(given.shutdown_reason)

    await scene.put(KEYS[:3])
    scene.processors("w", Factory(process, leave))
    await asyncio.sleep(4 * D)

    assert reasons == [ShutdownReason.PROCESS_RESTART]


async def test_a_shutdown_ends_with_the_lease_also_after_an_error(scene: FollowScene) -> None:
    """The lease goes to another worker while the processor that has raised shuts down: nothing of it may go on."""
    await scene.begin()
    leaving = asyncio.Event()
    ended: list[float] = []

    async def process(given: ProcessRecordsInput) -> None:
        if given.records:
            raise ValueError("cannot")

    async def leave(_: ShutdownInput) -> None:
        leaving.set()
        try:
            await asyncio.sleep(1000)
        finally:
            ended.append(now())

    await scene.put(KEYS[:3])
    worker = scene.processors("w", Factory(process, leave), renew_interval=1)
    await leaving.wait()
    table = LeaseTable(quick_caller(scene.emulator.handle), LEASES)
    [lease] = (await scene.leases()).values()
    assert await table.apply(change.take(lease, WorkerId("another"))) is not None
    taken = now()
    await until(lambda: not worker.shards, what="the worker has noticed")
    await asyncio.sleep(1)

    assert [at - taken < 3 for at in ended] == [True]


async def test_a_processor_without_a_method_stops_its_shard_alone(scene: FollowScene) -> None:
    await scene.begin()

    class Half:
        async def initialize(self, given: InitializationInput) -> None:
            return None

    class Halves:
        async def create_processor(self) -> Any:
            return Half()

    await scene.put(KEYS[:3])
    worker = scene.processors("w", Halves())
    await until(lambda: worker.shard_errors or scene.tasks["w"].done())

    assert not scene.tasks["w"].done()
    [error] = worker.shard_errors.values()
    assert "has no attribute 'process_records'" in str(error)
    assert set(worker.shards.values()) <= {State.FAILED, State.OPENING, State.READING}
    worker.shutdown()
    await scene.tasks["w"]


async def test_a_processor_that_is_made_after_its_lease_is_lost_is_shut_down(scene: FollowScene) -> None:
    """The fence closes first, and the lease is lost while the call that makes it has not returned."""
    await scene.begin()
    await scene.put(KEYS)
    go, answers = asyncio.Event(), asyncio.Event()
    made: list[int] = []
    left: list[ShutdownReason] = []

    async def leave(given: ShutdownInput) -> None:
        left.append(given.shutdown_reason)

    class Late:
        async def create_processor(self) -> Processor:
            if not made:
                made.append(1)
                while not go.is_set():
                    with contextlib.suppress(asyncio.CancelledError):  # as a thread that nobody can cancel
                        await go.wait()
            return Processor(_nothing, leave)

    async def cut(request: HttpRequest) -> HttpResponse:
        if request.path == "/UpdateRow" and made and not answers.is_set():
            return HttpResponse(503, {}, b"busy")
        return await scene.emulator.handle(request)

    scene.answers["w"] = cut
    worker = scene.processors("w", Late())
    await until(lambda: made)
    await asyncio.sleep(16)  # the fence is closed, and the lease not over
    [lease] = (await scene.leases()).values()
    await LeaseTable(quick_caller(scene.emulator.handle), LEASES).apply(change.take(lease, WorkerId("other")))
    answers.set()
    await until(lambda: not worker.shards)
    go.set()
    await until(lambda: left)

    assert left == [ShutdownReason.ZOMBIE]


async def test_a_worker_that_a_bug_has_ended_says_so(scene: FollowScene) -> None:
    await scene.begin()

    async def broken(_: HttpRequest) -> HttpResponse:
        raise RuntimeError("a bug")

    scene.answers["w"] = broken
    worker = scene.processors("w", Factory(_nothing))
    with pytest.raises(RuntimeError):
        await scene.tasks["w"]

    assert worker.status is WorkerState.ERROR
    assert isinstance(worker.exception, RuntimeError)


async def test_a_checkpoint_that_nobody_has_awaited_does_not_fail_silently(scene: FollowScene) -> None:
    await scene.begin()

    async def unstored(request: HttpRequest) -> HttpResponse:
        if request.path == "/UpdateRow" and b"Checkpoint" in request.body:
            raise ReadTimeout("no complete answer in time")
        return await scene.emulator.handle(request)

    async def process(given: ProcessRecordsInput) -> None:
        given.checkpointer.checkpoint()
        await asyncio.sleep(30)  # the call about the checkpoint has failed long before

    scene.answers["w"] = unstored
    await scene.put(KEYS[:3])
    worker = scene.processors("w", Factory(process))
    await asyncio.sleep(40)

    assert "no complete answer" in str(list(worker.shard_errors.values()))
