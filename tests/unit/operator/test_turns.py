"""Turns of passes and calls: one silent instance costs one time-out, and nothing to others."""

from __future__ import annotations

import asyncio
import gc
import itertools
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from ots_tunnel.errors import ConnectError, ReadTimeout, TransportError
from ots_tunnel.protocol.service_codes import service_error
from ots_tunnel_operator.turns.calls import CALLS, Calls
from ots_tunnel_operator.turns.circuit import Circuit
from ots_tunnel_operator.turns.passes import PassTurn
from ots_tunnel_operator.turns.queue import PATIENCE_SECONDS, NoTurn, Patience, Turns

pytestmark = pytest.mark.looptime


def calls() -> Calls:
    return Calls()


async def make(of: Calls, seconds: float, call: Callable[[], Awaitable[object]]) -> None:
    """One call of a pass that makes no other."""
    await of.make(seconds, call, Patience())


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


async def test_a_call_that_fails_is_reported_once() -> None:
    failed: list[Exception] = []
    of, busy = Calls(failed.append), service_error("OTSTunnelServerUnavailable", "busy")

    async def refuse() -> None:
        raise busy

    with pytest.raises(type(busy)):
        await make(of, 10, refuse)
    with pytest.raises(ReadTimeout):
        await make(of, 10, Service().call)
    await make(of, 10, Service(silent=False).call)

    assert failed[0] is busy
    assert [type(error) for error in failed[1:]] == [ReadTimeout]


async def test_calls_to_one_instance_take_turns() -> None:
    service, of = Service(silent=False), calls()

    await asyncio.gather(*(make(of, 10, service.call) for _ in range(20 * CALLS)))

    assert (service.most, service.sent) == (CALLS, 20 * CALLS)


async def test_the_time_of_a_call_begins_with_its_turn() -> None:
    service, of = Service(), calls()
    first = [asyncio.create_task(make(of, 60, service.call)) for _ in range(CALLS)]
    last = asyncio.create_task(make(of, 10, asyncio.Event().wait))
    # longer than the last call may take
    await asyncio.sleep(15)
    assert not last.done()
    service.answer.set()
    await asyncio.gather(*first)

    with pytest.raises(ReadTimeout, match="no answer within 10 s"):
        await last


async def test_the_wait_for_a_turn_is_bounded() -> None:
    service, of = Service(), calls()
    first = [asyncio.create_task(make(of, 60, service.call)) for _ in range(CALLS)]
    await service.entered.wait()

    with pytest.raises(ReadTimeout, match="no turn for a call within 20 s"):
        await make(of, 60, service.call)

    service.answer.set()
    await asyncio.gather(*first)
    assert service.sent == CALLS


async def test_a_queue_at_an_instance_that_answers_is_only_a_queue() -> None:
    of, seconds, loop = calls(), 1.0, asyncio.get_running_loop()
    number = round(3 * PATIENCE_SECONDS / seconds) * CALLS
    ended: list[float] = []

    async def patient() -> None:
        try:
            await make(of, 10, lambda: asyncio.sleep(seconds))
        finally:
            ended.append(loop.time())

    found = await asyncio.gather(*(patient() for _ in range(number)), return_exceptions=True)

    # a third has had its turn in time, and nobody says that the instance is silent
    assert {type(error) for error in found} == {type(None), NoTurn}
    assert found.count(None) == pytest.approx(number / 3, abs=CALLS)
    assert max(ended) <= PATIENCE_SECONDS + seconds


async def test_an_instance_that_falls_silent_is_told_within_a_minute() -> None:
    loop, of = asyncio.get_running_loop(), calls()

    async def answering_for_30_seconds() -> None:
        await asyncio.sleep(0.5 if loop.time() < 30 else 3600)

    async def objects() -> float:
        try:
            while True:
                await make(of, 10, answering_for_30_seconds)
        except ReadTimeout:
            return loop.time()

    told = await asyncio.gather(*(objects() for _ in range(12 * CALLS)))

    assert max(told) <= 30 + 60


async def test_calls_to_a_silent_instance_fail_together() -> None:
    service, of = Service(), calls()

    found = await asyncio.gather(*(make(of, 10, service.call) for _ in range(50 * CALLS)), return_exceptions=True)

    assert {(type(error), str(error)) for error in found} == {(ReadTimeout, "no answer within 10 s")}
    # those that had a turn, and one probe
    assert service.sent <= CALLS + 1


async def probing(service: Service, of: Calls) -> asyncio.Task[None]:
    """A call that is under way as the probe, after one that was not answered."""
    with pytest.raises(ReadTimeout):
        await make(of, 10, service.call)
    service.entered.clear()
    probe = asyncio.create_task(make(of, 60, service.call))
    await service.entered.wait()
    return probe


async def test_one_call_at_a_time_probes_until_the_instance_answers() -> None:
    service, of = Service(), calls()
    probe = await probing(service, of)
    with pytest.raises(ReadTimeout, match="no answer within 10 s"):
        await make(of, 60, service.call)
    service.answer.set()
    await probe
    await asyncio.gather(*(make(of, 60, service.call) for _ in range(CALLS)))

    assert service.sent == 2 + CALLS


async def test_calls_await_the_probe_of_an_instance_that_answers_again() -> None:
    service, of = Service(), calls()
    probe = await probing(service, of)
    # more than may be under way: they hold no turn while they wait
    others = [asyncio.create_task(make(of, 10, service.call)) for _ in range(3 * CALLS)]
    await asyncio.sleep(5)
    assert service.sent == 2

    service.answer.set()
    await asyncio.gather(probe, *others)

    assert service.sent == 2 + 3 * CALLS


async def test_calls_fail_with_the_probe_that_they_await() -> None:
    service, of = Service(), calls()
    with pytest.raises(ReadTimeout):
        await make(of, 10, service.call)
    began = asyncio.get_running_loop().time()

    found = await asyncio.gather(*(make(of, 10, service.call) for _ in range(10 * CALLS)), return_exceptions=True)

    assert {str(error) for error in found} == {"no answer within 10 s"}
    # an error each: a shared one would collect the traceback of every call
    assert len({id(error) for error in found}) == len(found)
    assert (service.sent, asyncio.get_running_loop().time() - began) == (2, 10)


async def test_calls_that_await_a_probe_that_is_cancelled_send_the_next_one() -> None:
    service, of = Service(), calls()
    probe = await probing(service, of)
    others = [asyncio.create_task(make(of, 10, service.call)) for _ in range(CALLS)]
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
    await make(of, 60, service.call)

    assert service.sent == 3


async def test_one_slow_call_is_no_silence_of_an_instance_that_answers_others() -> None:
    slow, service, of = Service(), Service(silent=False), calls()
    call = asyncio.create_task(make(of, 10, slow.call))
    await slow.entered.wait()
    await make(of, 10, service.call)
    with pytest.raises(ReadTimeout):
        await call

    # none of these is a probe: all are sent
    await asyncio.gather(*(make(of, 10, service.call) for _ in range(CALLS)))

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
        await make(of, 10, raising(error))
    probe = asyncio.create_task(make(of, 60, service.call))
    await service.entered.wait()

    with pytest.raises(TransportError, match=str(error)):
        await make(of, 10, service.call)

    service.answer.set()
    await probe


async def test_a_refusal_is_an_answer() -> None:
    service, of = Service(silent=False), calls()
    with pytest.raises(ReadTimeout):
        await make(of, 10, Service().call)
    refusal = service_error("OTSAuthFailed", "no", http_status=403)
    with pytest.raises(type(refusal)):
        await make(of, 10, raising(refusal))

    await asyncio.gather(*(make(of, 10, service.call) for _ in range(CALLS)))

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


@dataclass
class Looking:
    """An object whose passes look at source, sink and tunnel, as those of the operator do."""

    of: Calls
    seconds: float
    table: str = "t"
    silent_from: float = math.inf
    """Time from which on its tunnel calls have no answer."""
    starts: float = 0.0
    passes: list[tuple[float, float, BaseException | None]] = field(default_factory=list)
    """Begin, end and error of each pass."""
    patience: Patience | None = None

    async def run(self, until: float) -> None:
        loop, failures = asyncio.get_running_loop(), 0
        await asyncio.sleep(self.starts)
        while loop.time() < until:
            begun, self.patience = loop.time(), Patience.after(self.patience)
            error = await self._look(self.patience)
            self.passes.append((begun, loop.time(), error))
            failures = 0 if error is None else failures + 1
            await asyncio.sleep(15 if error is None else min(60, 2 ** (failures - 1)))

    async def _look(self, patience: Patience) -> TransportError | NoTurn | None:
        async def call(part: str) -> None:
            await self.of.make(10, lambda: self._answer(part), patience, about=f"{part} of {self.table}")

        try:
            await asyncio.gather(call("table"), call("copy"))
            await call("tunnels")
        except (TransportError, NoTurn) as error:
            return error
        return None

    async def _answer(self, part: str) -> None:
        is_silent = part == "tunnels" and asyncio.get_running_loop().time() >= self.silent_from
        await asyncio.sleep(3600 if is_silent else self.seconds)

    def longest(self) -> float:
        return max(end - begun for begun, end, _ in self.passes)

    def unseen(self, until: float) -> float:
        """The longest time without a pass that has observed."""
        times = [0.0, *(end for _, end, error in self.passes if error is None), until]
        return max(after - before for before, after in itertools.pairwise(times))


async def test_objects_that_do_not_fit_into_the_calls_of_an_instance_say_so_and_none_starves() -> None:
    """As 2,000 objects at an instance that answers in 0.2 s: one look at all of them takes 150 s."""
    of, end = calls(), 1200.0
    objects = [Looking(of, 2.0, f"t{number}") for number in range(200)]

    await asyncio.gather(*(each.run(end) for each in objects))

    errors = [error for each in objects for _, _, error in each.passes]
    assert {type(error) for error in errors} == {type(None), NoTurn}
    assert max(each.longest() for each in objects) <= PATIENCE_SECONDS + 10
    # a round of all and a pause; without a place that is kept, some would wait for ever
    assert max(each.unseen(end) for each in objects) <= 2 * 150 + 60


async def test_objects_that_fit_are_all_observed() -> None:
    """Nine tenths of the objects for which an instance has room in PATIENCE_SECONDS and a poll."""
    of, end = calls(), 200.0
    objects = [Looking(of, 0.8, f"t{number}", starts=number / 4.5) for number in range(135)]

    await asyncio.gather(*(each.run(end) for each in objects))

    assert [error for each in objects for _, _, error in each.passes if error is not None] == []


async def test_a_table_whose_tunnel_calls_alone_are_silent_delays_no_other() -> None:
    of, end = calls(), 600.0
    silent = [Looking(of, 0.1, "silent", silent_from=60) for _ in range(60)]
    others = [Looking(of, 0.1, f"t{number}") for number in range(60)]

    await asyncio.gather(*(each.run(end) for each in (*silent, *others)))

    # eight calls have all turns for 10 s; from then on one at a time is waited for
    known = 60 + 30
    told = {str(error) for each in silent for begun, _, error in each.passes if begun > known}
    assert told == {"no answer within 10 s"}
    assert max(each.longest() for each in silent) <= 40
    late = [(end - begun, error) for each in others for begun, end, error in each.passes if begun > known]
    assert {error for _, error in late} == {None}
    assert max(seconds for seconds, _ in late) <= 2


async def test_only_what_is_silent_is_remembered_of_the_parts_of_an_instance() -> None:
    """Tunnels come and go for as long as the operator runs."""
    of, silent = calls(), Service()
    before = circuits()
    for number in range(50):
        await of.make(10, Service(silent=False).call, Patience(), about=f"checkpoints of {number}")
    assert circuits() == before

    with pytest.raises(ReadTimeout):
        await of.make(10, silent.call, Patience(), about="tunnels of orders")
    assert circuits() == before + 1
    silent.answer.set()
    await of.make(10, silent.call, Patience(), about="tunnels of orders")
    assert circuits() == before


def circuits() -> int:
    gc.collect()
    return sum(isinstance(found, Circuit) for found in gc.get_objects())


async def test_who_has_waited_longest_has_the_next_turn() -> None:
    turns, order = Turns(1), []

    async def one(name: str, place: int) -> None:
        async with turns.taken(place):
            order.append(name)
            await asyncio.sleep(1)

    await asyncio.gather(one("first", 9), one("young", 8), one("old", 3), one("middle", 5))

    assert order == ["first", "old", "middle", "young"]


async def test_a_turn_that_is_given_to_a_cancelled_waiter_is_not_lost() -> None:
    turns = Turns(1)
    async with turns.taken(0):
        early, late = (asyncio.create_task(_hold(turns)) for _ in range(2))
        await asyncio.sleep(0)
        late.cancel()
    # the first one has the turn, but has not run since
    early.cancel()
    await asyncio.gather(early, late, return_exceptions=True)

    async with asyncio.timeout(10), turns.taken(0):
        pass


async def _hold(turns: Turns) -> None:
    async with turns.taken(1):
        await asyncio.sleep(3600)


async def test_a_pass_after_one_that_gave_up_keeps_its_place() -> None:
    of = calls()
    # one more than there are turns, so that one of them always waits
    others = [asyncio.create_task(_calling(of, Patience())) for _ in range(CALLS + 1)]
    await asyncio.sleep(1)
    patience = Patience()
    with pytest.raises(NoTurn, match="while others are answered"):
        await of.make(10, lambda: asyncio.sleep(0), patience)

    again = Patience.after(patience)
    assert again.place == patience.place
    for other in others:
        other.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await of.make(10, lambda: asyncio.sleep(0), again)
    assert Patience.after(again).place > patience.place


async def _calling(of: Calls, patience: Patience) -> None:
    while True:
        await of.make(10, lambda: asyncio.sleep(1), patience)


async def test_a_pass_whose_turns_are_free_may_make_any_number_of_calls() -> None:
    of, patience = calls(), Patience()

    for _ in range(30):
        await of.make(10, lambda: asyncio.sleep(3), patience)

    assert asyncio.get_running_loop().time() > 2 * PATIENCE_SECONDS


async def test_calls_that_wait_at_the_same_time_wait_once() -> None:
    loop, patience = asyncio.get_running_loop(), Patience()

    async def wait() -> None:
        with patience.waiting():
            await asyncio.sleep(10)

    await asyncio.gather(wait(), wait(), wait())

    assert patience.ends_at - loop.time() == PATIENCE_SECONDS - 10
