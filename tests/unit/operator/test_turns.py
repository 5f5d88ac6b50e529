"""Turns of passes and calls: one silent instance costs one time-out, and nothing to others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from ots_tunnel.errors import ConnectError, ReadTimeout, TransportError
from ots_tunnel.protocol.service_codes import service_error
from ots_tunnel.tables import POOL_THREADS
from ots_tunnel_operator.turns import BLOCKING_CALLS, CALLS, TURN_SECONDS, Calls, PassTurn

pytestmark = pytest.mark.looptime


def calls() -> Calls:
    return Calls(asyncio.Semaphore(4))


@dataclass
class Service:
    """An instance that answers, or not."""

    silent: bool = True
    sent: int = 0
    running: int = 0
    most: int = 0
    entered: asyncio.Event = field(default_factory=asyncio.Event)
    answer: asyncio.Event = field(default_factory=asyncio.Event)

    async def call(self) -> None:
        self.sent += 1
        self.entered.set()
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await (self.answer.wait() if self.silent else asyncio.sleep(0))
        finally:
            self.running -= 1


async def test_calls_to_one_instance_take_turns() -> None:
    service, of = Service(silent=False), calls()

    await asyncio.gather(*(of.make(10, service.call) for _ in range(20 * CALLS)))

    assert (service.most, service.sent) == (CALLS, 20 * CALLS)


async def test_the_time_of_a_call_begins_with_its_turn() -> None:
    service, of = Service(), calls()
    first = [asyncio.create_task(of.make(60, service.call)) for _ in range(CALLS)]
    last = asyncio.create_task(of.make(10, asyncio.Event().wait))
    # longer than the last call may take
    await asyncio.sleep(15)
    assert not last.done()
    service.answer.set()
    await asyncio.gather(*first)

    with pytest.raises(ReadTimeout, match="no answer within 10 s"):
        await last


async def test_the_wait_for_a_turn_is_bounded() -> None:
    service, of = Service(), calls()
    first = [asyncio.create_task(of.make(60, service.call)) for _ in range(CALLS)]
    await service.entered.wait()

    with pytest.raises(ReadTimeout, match="no turn for a call within 20 s"):
        await of.make(60, service.call)

    service.answer.set()
    await asyncio.gather(*first)
    assert service.sent == CALLS


@pytest.mark.parametrize("blocks", [False, True])
async def test_a_queue_at_an_instance_that_answers_is_only_a_queue(blocks: bool) -> None:
    of, seconds = calls(), 1.0
    number = round(3 * TURN_SECONDS / seconds) * (BLOCKING_CALLS if blocks else CALLS)

    await asyncio.gather(*(of.make(10, lambda: asyncio.sleep(seconds), blocks=blocks) for _ in range(number)))

    assert asyncio.get_running_loop().time() >= 3 * TURN_SECONDS


async def test_calls_that_wait_for_a_thread_delay_no_others() -> None:
    of, service = calls(), Service(silent=False)
    many = [asyncio.create_task(of.make(10, lambda: asyncio.sleep(1), blocks=True)) for _ in range(10 * CALLS)]
    await asyncio.sleep(0.5)
    began = asyncio.get_running_loop().time()

    await asyncio.gather(*(of.make(10, service.call) for _ in range(CALLS)))

    assert asyncio.get_running_loop().time() == began
    await asyncio.gather(*many)


async def test_the_wait_for_a_thread_of_the_process_says_nothing_about_an_instance() -> None:
    threads, service = asyncio.Semaphore(1), Service(silent=False)
    elsewhere = [Calls(threads).make(10, lambda: asyncio.sleep(9), blocks=True) for _ in range(5)]
    others = [asyncio.create_task(call) for call in elsewhere]
    await asyncio.sleep(0)
    of = Calls(threads)

    # those behind the first two wait for a thread of the instance meanwhile
    await asyncio.gather(*(of.make(10, service.call, blocks=True) for _ in range(2 * BLOCKING_CALLS)))

    assert service.sent == 2 * BLOCKING_CALLS
    await asyncio.gather(*others)


async def test_a_call_that_waits_for_a_thread_hears_that_its_instance_is_silent() -> None:
    threads, service = asyncio.Semaphore(1), Service()
    others = asyncio.create_task(Calls(threads).make(600, lambda: asyncio.sleep(300), blocks=True))
    await asyncio.sleep(0)
    of, began = Calls(threads), asyncio.get_running_loop().time()
    waiting = asyncio.create_task(of.make(10, service.call, blocks=True))
    with pytest.raises(ReadTimeout):
        await of.make(10, service.call)

    with pytest.raises(ReadTimeout, match="no answer within 10 s"):
        await waiting

    assert asyncio.get_running_loop().time() - began <= 60
    await others


@pytest.mark.parametrize("blocks", [False, True])
async def test_an_instance_that_falls_silent_is_told_within_a_minute(blocks: bool) -> None:
    loop, of = asyncio.get_running_loop(), calls()

    async def answering_for_30_seconds() -> None:
        await asyncio.sleep(0.5 if loop.time() < 30 else 3600)

    async def objects() -> float:
        try:
            while True:
                await of.make(10, answering_for_30_seconds, blocks=blocks)
        except ReadTimeout:
            return loop.time()

    told = await asyncio.gather(*(objects() for _ in range(120)))

    assert max(told) <= 30 + 60


async def test_one_instance_never_has_all_threads_of_the_process() -> None:
    threads = asyncio.Semaphore(POOL_THREADS)
    silent, other, of = Service(), Service(silent=False), Calls(threads)
    hung = [asyncio.create_task(of.make(60, silent.call, blocks=True)) for _ in range(2 * POOL_THREADS)]
    await silent.entered.wait()

    await asyncio.gather(*(Calls(threads).make(10, other.call, blocks=True) for _ in range(POOL_THREADS)))

    assert other.sent == POOL_THREADS
    silent.answer.set()
    await asyncio.gather(*hung)
    assert silent.most < POOL_THREADS


async def test_calls_to_a_silent_instance_fail_together() -> None:
    service, of = Service(), calls()

    found = await asyncio.gather(*(of.make(10, service.call) for _ in range(50 * CALLS)), return_exceptions=True)

    assert {(type(error), str(error)) for error in found} == {(ReadTimeout, "no answer within 10 s")}
    # those that had a turn, and one probe
    assert service.sent <= CALLS + 1


async def probing(service: Service, of: Calls) -> asyncio.Task[None]:
    """A call that is under way as the probe, after one that was not answered."""
    with pytest.raises(ReadTimeout):
        await of.make(10, service.call)
    service.entered.clear()
    probe = asyncio.create_task(of.make(60, service.call))
    await service.entered.wait()
    return probe


async def test_one_call_at_a_time_probes_until_the_instance_answers() -> None:
    service, of = Service(), calls()
    probe = await probing(service, of)
    with pytest.raises(ReadTimeout, match="no answer within 10 s"):
        await of.make(60, service.call)
    service.answer.set()
    await probe
    await asyncio.gather(*(of.make(60, service.call) for _ in range(CALLS)))

    assert service.sent == 2 + CALLS


async def test_calls_await_the_probe_of_an_instance_that_answers_again() -> None:
    service, of = Service(), calls()
    probe = await probing(service, of)
    # more than may be under way: they hold no turn while they wait
    others = [asyncio.create_task(of.make(10, service.call)) for _ in range(3 * CALLS)]
    await asyncio.sleep(5)
    assert service.sent == 2

    service.answer.set()
    await asyncio.gather(probe, *others)

    assert service.sent == 2 + 3 * CALLS


async def test_calls_fail_with_the_probe_that_they_await() -> None:
    service, of = Service(), calls()
    with pytest.raises(ReadTimeout):
        await of.make(10, service.call)
    began = asyncio.get_running_loop().time()

    found = await asyncio.gather(*(of.make(10, service.call) for _ in range(10 * CALLS)), return_exceptions=True)

    assert {str(error) for error in found} == {"no answer within 10 s"}
    # an error each: a shared one would collect the traceback of every call
    assert len({id(error) for error in found}) == len(found)
    assert (service.sent, asyncio.get_running_loop().time() - began) == (2, 10)


async def test_calls_that_await_a_probe_that_is_cancelled_send_the_next_one() -> None:
    service, of = Service(), calls()
    probe = await probing(service, of)
    others = [asyncio.create_task(of.make(10, service.call)) for _ in range(CALLS)]
    await asyncio.sleep(0)
    service.silent = False
    probe.cancel()

    await asyncio.gather(*others)

    assert service.sent == 2 + CALLS


async def test_a_probe_that_is_cancelled_leaves_the_next_one_its_place() -> None:
    service, of = Service(), calls()
    probe = await probing(service, of)
    probe.cancel()
    await asyncio.gather(probe, return_exceptions=True)

    service.silent = False
    await of.make(60, service.call)

    assert service.sent == 3


async def test_one_slow_call_is_no_silence_of_an_instance_that_answers_others() -> None:
    slow, service, of = Service(), Service(silent=False), calls()
    call = asyncio.create_task(of.make(10, slow.call))
    await slow.entered.wait()
    await of.make(10, service.call)
    with pytest.raises(ReadTimeout):
        await call

    # none of these is a probe: all are sent
    await asyncio.gather(*(of.make(10, service.call) for _ in range(CALLS)))

    assert service.sent == 1 + CALLS


def raising(error: Exception) -> Callable[[], asyncio.Future[None]]:
    def call() -> asyncio.Future[None]:
        future = asyncio.get_running_loop().create_future()
        future.set_exception(error)
        return future

    return call


@pytest.mark.parametrize("error", [ConnectError("refused"), OSError("no route"), TimeoutError("its own")])
async def test_each_error_without_an_answer_is_told_to_the_others(error: Exception) -> None:
    service, of = Service(), calls()
    with pytest.raises(type(error), match=str(error)):
        await of.make(10, raising(error))
    probe = asyncio.create_task(of.make(60, service.call))
    await service.entered.wait()

    with pytest.raises(TransportError, match=str(error)):
        await of.make(10, service.call)

    service.answer.set()
    await probe


async def test_a_refusal_is_an_answer() -> None:
    service, of = Service(silent=False), calls()
    with pytest.raises(ReadTimeout):
        await of.make(10, Service().call)
    refusal = service_error("OTSAuthFailed", "no", http_status=403)
    with pytest.raises(type(refusal)):
        await of.make(10, raising(refusal))

    await asyncio.gather(*(of.make(10, service.call) for _ in range(CALLS)))

    assert service.sent == CALLS


async def test_a_pass_that_waits_for_an_instance_lends_its_turn() -> None:
    bound = asyncio.Semaphore(1)
    order = []

    async def waiting(entered: asyncio.Event, answer: asyncio.Event) -> None:
        async with PassTurn(bound) as turn:
            async with turn.lent():
                entered.set()
                await answer.wait()
            order.append("first")

    entered, answer = asyncio.Event(), asyncio.Event()
    first = asyncio.create_task(waiting(entered, answer))
    await entered.wait()
    async with PassTurn(bound):
        answer.set()
        for _ in range(5):
            await asyncio.sleep(0)
        order.append("second")
    await first

    # it goes on only when it has its turn again
    assert order == ["second", "first"]
    assert not bound.locked()


async def test_a_pass_that_fails_while_its_turn_is_lent_gives_back_one_turn() -> None:
    bound = asyncio.BoundedSemaphore(1)
    with pytest.raises(ValueError, match="bug"):
        async with PassTurn(bound) as turn, turn.lent():
            raise ValueError("bug")

    assert not bound.locked()
