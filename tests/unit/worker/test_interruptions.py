"""An order to stop, a loss or a cancellation in every round of the loop around every answer.

A channel with its real pipeline, checkpointer and middleware moves eight records. Every answer, of the service and of
the sink, is given by hand, one after the other. At one of them the channel is interrupted, some rounds of the loop
earlier or later. Afterwards a second worker goes on at the stored checkpoint.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from ots_tunnel.client.page import Page
from ots_tunnel.model import FINISHED, ChannelStatus, Checkpoint, Token
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks import Batch, Confirmation, Deferred, Guard, Immediate, Sink
from ots_tunnel.sinks.middleware import rate_limit
from ots_tunnel.sinks.middleware.base import behind
from ots_tunnel.sinks.middleware.permanent_errors import Tolerant
from ots_tunnel.sinks.middleware.rate_limit import Paced
from ots_tunnel.sinks.middleware.transform import Transform
from ots_tunnel.sinks.middleware.transformed import Transformed
from tests.support.channel_scene import CHANNEL, ChannelScene, ScriptedService, at, name_of
from tests.support.records import numbered_record
from tests.support.waiting import until

pytestmark = pytest.mark.looptime

#: Records of the four pages; the third page is empty.
ROWS = (3, 3, 0, 2)
#: Rounds between an answer and the interruption; the interruption comes first where it is negative.
ROUNDS = range(-2, 5)


@dataclass
class Hand:
    """Answers that wait to be given, in the order in which they were asked for."""

    waiting: deque[asyncio.Future[None]] = field(default_factory=deque)
    by_itself: bool = False

    async def turn(self) -> None:
        """Wait until the answer is given."""
        if not self.by_itself:
            self.waiting.append(asyncio.get_running_loop().create_future())
            await self.waiting[-1]

    def give(self) -> None:
        """Give the answer that was asked for first."""
        answer = self.waiting.popleft()
        if not answer.done():
            answer.set_result(None)

    def give_all(self) -> None:
        """Give every answer from now on."""
        self.by_itself = True
        while self.waiting:
            self.give()


@dataclass
class Ledger:
    """What was stored, beside the project's own counts."""

    stored: set[int] = field(default_factory=set)
    violations: list[str] = field(default_factory=list)

    def judge(self, token: Token) -> None:
        """A checkpoint is about to be stored."""
        pages = len(ROWS) if token == FINISHED else int(name_of(token)[1:])
        missing = set(range(sum(ROWS[:pages]))) - self.stored
        if missing:
            self.violations.append(f"{name_of(token)} passes {sorted(missing)}")


@dataclass
class ByHand(ScriptedService):
    """The service, whose answers are given by hand."""

    hand: Hand = field(default_factory=Hand)
    ledger: Ledger = field(default_factory=Ledger)

    async def checkpoint(
        self, *ids_and_checkpoint: object, timeout: float, before_send: Callable[[], None] | None = None
    ) -> None:
        self.ledger.judge(cast("Checkpoint", ids_and_checkpoint[-1]).token)
        await super().checkpoint(*ids_and_checkpoint, timeout=timeout, before_send=before_send)

    async def _inject(self, call: str, *what: str) -> None:
        await self.hand.turn()


@dataclass
class AtOnceSink(Immediate):
    """Stores a batch when its answer is given."""

    hand: Hand
    ledger: Ledger

    async def open(self) -> None: ...

    async def write(self, batch: Batch, guard: Guard) -> None:
        guard.check()
        await self.hand.turn()
        self.ledger.stored |= numbers(batch)

    async def close(self) -> None: ...


@dataclass
class LaterSink(Deferred):
    """Takes a batch at once, and stores it when its answer is given."""

    hand: Hand
    ledger: Ledger
    storing: set[asyncio.Task[None]] = field(default_factory=set)

    async def open(self) -> None: ...

    async def begin(self, *channel: object) -> None: ...

    async def take(self, batch: Batch, guard: Guard) -> Confirmation:
        guard.check()
        confirmation: Confirmation = asyncio.get_running_loop().create_future()
        self.storing.add(asyncio.create_task(self._store(batch, confirmation)))
        return confirmation

    def checkpointed(self, *page: object) -> None: ...

    async def end(self, *channel: object, abandoned: bool) -> None:
        if abandoned:
            for task in self.storing:
                task.cancel()
        if self.storing:
            await asyncio.wait(self.storing)
        self.storing.clear()

    async def close(self) -> None: ...

    async def _store(self, batch: Batch, confirmation: Confirmation) -> None:
        await self.hand.turn()
        self.ledger.stored |= numbers(batch)
        if not confirmation.done():
            confirmation.set_result(None)


def numbers(batch: Batch) -> set[int]:
    return {_key(record) for record in batch.records}


def _key(record: Record) -> int:
    key = record.primary_key[0][1]
    assert isinstance(key, int)
    return key


def pages() -> dict[str, Page]:
    """The pages of a channel that ends."""
    keys = itertools.count()
    found = {}
    for ordinal, rows in enumerate(ROWS):
        records = [numbered_record(key, key) for key in itertools.islice(keys, rows)]
        following = at(f"t{ordinal + 1}") if ordinal + 1 < len(ROWS) else FINISHED
        found[f"t{ordinal}"] = Page(records, following, True, 1000 * rows, None)
    return found


def stacked(sink: Immediate | Deferred) -> Sink:
    """The sink behind everything that a document can ask for."""
    paced: Sink = behind(Paced(100), sink)  # a slice is one record, see `_one_record`
    return behind(Transformed(Transform(exclude=frozenset((b"gone",)))), behind(Tolerant(), paced))


INTERRUPTIONS: dict[str, Callable[[ChannelScene], None]] = {
    "stop": lambda scene: scene.notify(ChannelStatus.CLOSING, 2),
    "vanish": lambda scene: scene.vanish(),
    "cancel": lambda scene: scene.cancel(),
}


@pytest.fixture(autouse=True)
def _one_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limit, "SLICE_SECONDS", 0.01)


@pytest.mark.parametrize("kind", [AtOnceSink, LaterSink])
@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("interruption", INTERRUPTIONS)
async def test_an_interruption_around_any_answer_loses_nothing(kind: Any, wrapped: bool, interruption: str) -> None:
    tried = 0
    for answer in itertools.count():
        reached = False
        for rounds in ROUNDS:
            reached = await _moved_in_two(kind, wrapped, interruption, answer, rounds) or reached
        tried += reached
        if not reached:
            break

    assert tried >= 9  # the checkpoint, four reads, three writes, a new checkpoint


async def _moved_in_two(kind: Any, wrapped: bool, interruption: str, answer: int, rounds: int) -> bool:
    """Interrupt at an answer, go on with another worker; False if there are fewer answers."""
    hand, ledger = Hand(), Ledger()
    service = ByHand(pages(), hand=hand, ledger=ledger)
    sink = kind(hand, ledger)
    where = f"{interruption} {rounds} rounds after answer {answer}"
    scene = ChannelScene(
        service, stacked(sink) if wrapped else sink, interval=1, timeout=4, drain=2, checkpoint_interval=0.003
    )
    await scene.worker.sink.open()
    scene.open()
    given = 0
    while given < answer and await _asked(hand, scene):
        hand.give()
        given += 1
    reached = given == answer and await _asked(hand, scene)
    if reached:
        steps = [hand.give, lambda: INTERRUPTIONS[interruption](scene)]
        for number, step in enumerate(steps if rounds >= 0 else reversed(steps)):
            for _ in range(abs(rounds) * number):
                await asyncio.sleep(0)
            if step is not hand.give or hand.waiting:
                step()
        await _drained(hand, scene)
    await scene.leave()
    assert ledger.violations == [], where

    hand.give_all()
    again = ChannelScene(service, kind(hand, ledger), interval=1, timeout=4, drain=2, checkpoint_interval=0.003)
    again.open(CHANNEL)
    assert (await again.over()).status is ChannelStatus.TERMINATED, where
    await again.close()
    assert ledger.stored == set(range(sum(ROWS))), where
    assert ledger.violations == [], where
    return reached


async def _asked(hand: Hand, scene: ChannelScene) -> bool:
    """Whether another answer is asked for; False once the channel is over."""
    await until(lambda: bool(hand.waiting) or scene.channel.is_over, 30, "an answer is asked for", pause=0.001)
    return bool(hand.waiting)


async def _drained(hand: Hand, scene: ChannelScene) -> None:
    """Give every answer, one after the other, until the channel is over."""
    for _ in range(2000):
        if scene.is_left or scene.channel.is_over:
            return
        if hand.waiting:
            hand.give()
        await asyncio.sleep(0.01)
    raise AssertionError("the channel does not end")
