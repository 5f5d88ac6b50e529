from __future__ import annotations

import asyncio
import logging

import pytest

from ots_tunnel.errors import (
    ConnectionLost,
    OwnershipLost,
    ReadTimeout,
    SequenceNumberMismatch,
    ServerUnavailable,
    TunnelError,
)
from ots_tunnel.log_actions import LogAction
from ots_tunnel.model import FINISHED, Checkpoint, Token
from ots_tunnel.worker.progress.checkpointer import HURRIED_RETRY, Checkpointer, belongs_to_us
from tests.support.channel_scene import ChannelScene, EventSink, ScriptedService, page

START = Checkpoint(Token("t0"), 7)


class Store:
    """The service's rule for sequence numbers, with scripted errors."""

    def __init__(self, stored: Checkpoint = START) -> None:
        self.stored = stored
        self.calls: list[Checkpoint] = []
        self.lose_answers = 0
        self.fail: list[TunnelError] = []

    async def get(self) -> Checkpoint:
        return self.stored

    async def put(self, checkpoint: Checkpoint) -> None:
        self.calls.append(checkpoint)
        if self.fail:
            raise self.fail.pop(0)
        if checkpoint.sequence_number <= self.stored.sequence_number:
            raise SequenceNumberMismatch("OTSSequenceNumberNotMatch", "stale")
        self.stored = checkpoint
        if self.lose_answers:
            self.lose_answers -= 1
            raise ConnectionLost("no answer")


async def test_nothing_is_written_before_something_is_confirmed() -> None:
    store = Store()

    await Checkpointer(store, START, 5).flush()

    assert store.calls == []


async def test_the_newest_confirmed_token_is_written_once_with_the_next_number() -> None:
    store = Store()
    checkpointer = Checkpointer(store, START, 5)
    checkpointer.confirmed(Token("t1"))
    checkpointer.confirmed(Token("t2"))

    await checkpointer.flush()
    await checkpointer.flush()

    assert store.calls == [Checkpoint(Token("t2"), 8)]
    assert checkpointer.durable == "t2"


@pytest.mark.looptime
async def test_at_the_end_of_a_channel_nobody_waits_for_the_interval() -> None:
    """A sink may hold a part back until the one before it is behind a checkpoint."""
    store = Store()
    checkpointer = Checkpointer(store, START, 3600)
    running = asyncio.create_task(checkpointer.run())
    checkpointer.confirmed(Token("t1"))
    await asyncio.sleep(1)
    assert store.calls == []

    checkpointer.hurry()
    await asyncio.sleep(0.01)
    assert [checkpoint.token for checkpoint in store.calls] == ["t1"]
    store.fail = [ConnectionLost("no answer")]
    checkpointer.confirmed(Token("t2"))
    await asyncio.sleep(HURRIED_RETRY + 0.5)
    assert [checkpoint.token for checkpoint in store.calls] == ["t1", "t2", "t2"]
    assert checkpointer.durable == "t2"
    running.cancel()


@pytest.mark.looptime
async def test_the_end_waits_for_the_call_under_way() -> None:
    """Whether a call that is broken off was carried out is not known, and another one would be refused."""

    class Slow(Store):
        async def put(self, checkpoint: Checkpoint) -> None:
            await asyncio.sleep(1)
            await super().put(checkpoint)

    store = Slow()
    checkpointer = Checkpointer(store, START, 3600)
    running = asyncio.create_task(checkpointer.run())
    checkpointer.confirmed(Token("t1"))
    checkpointer.hurry()
    await asyncio.sleep(0.5)

    checkpointer.end()
    await running

    assert checkpointer.durable == "t1"
    assert [checkpoint.token for checkpoint in store.calls] == ["t1"]


@pytest.mark.looptime
async def test_the_interval_separates_checkpoints() -> None:
    store = Store()
    checkpointer = Checkpointer(store, START, 5)
    running = asyncio.create_task(checkpointer.run())
    await asyncio.sleep(0.5)

    for number in range(1, 13):
        checkpointer.confirmed(Token(f"t{number}"))
        await asyncio.sleep(1)

    assert [checkpoint.token for checkpoint in store.calls] == ["t5", "t10"]
    running.cancel()


@pytest.mark.looptime
async def test_a_failed_checkpoint_stays_pending_and_ages() -> None:
    store = Store()
    store.fail = [ConnectionLost("down")]
    checkpointer = Checkpointer(store, START, 5)
    running = asyncio.create_task(checkpointer.run())
    checkpointer.confirmed(Token("t1"))

    await asyncio.sleep(6)
    assert checkpointer.durable == "t0"
    assert checkpointer.age() == pytest.approx(6)
    await asyncio.sleep(5)

    assert store.stored == Checkpoint(Token("t1"), 8)
    assert checkpointer.age() == 0
    running.cancel()


async def test_a_lost_answer_is_recognised_and_the_next_token_is_sent() -> None:
    store = Store()
    store.lose_answers = 1
    checkpointer = Checkpointer(store, START, 5)
    checkpointer.confirmed(Token("t1"))
    with pytest.raises(ConnectionLost):
        await checkpointer.flush()
    checkpointer.confirmed(Token("t2"))

    await checkpointer.flush()

    assert store.stored == Checkpoint(Token("t2"), 9)


async def test_a_raised_number_under_our_own_token_is_adopted() -> None:
    store = Store()
    checkpointer = Checkpointer(store, START, 5)
    store.stored = Checkpoint(Token("t0"), 20)
    checkpointer.confirmed(Token("t1"))

    await checkpointer.flush()

    assert store.stored == Checkpoint(Token("t1"), 21)


async def test_a_service_that_refuses_every_number_is_asked_again_at_the_next_interval() -> None:
    store = Store()
    store.fail = [SequenceNumberMismatch("OTSSequenceNumberNotMatch", "stale") for _ in range(100)]
    checkpointer = Checkpointer(store, START, 5)
    checkpointer.confirmed(Token("t1"))

    with pytest.raises(ServerUnavailable, match="number 8 is refused, although 7 is stored"):
        await checkpointer.flush()

    assert len(store.calls) == 3
    assert checkpointer.durable == "t0"


async def test_a_foreign_token_means_ownership_is_lost_and_nothing_is_overwritten() -> None:
    store = Store()
    checkpointer = Checkpointer(store, START, 5)
    store.stored = Checkpoint(Token("theirs"), 20)
    checkpointer.confirmed(Token("t1"))

    with pytest.raises(OwnershipLost):
        await checkpointer.flush()

    assert store.stored == Checkpoint(Token("theirs"), 20)


@pytest.mark.looptime
async def test_finished_is_retried_until_it_is_durable() -> None:
    store = Store()
    store.fail = [ConnectionLost("down")] * 5
    checkpointer = Checkpointer(store, START, 5)
    checkpointer.confirmed(FINISHED)

    await checkpointer.flush_within(10)

    assert store.stored == Checkpoint(FINISHED, 8)


@pytest.mark.looptime
async def test_retries_end_with_the_time_and_raise_the_last_error() -> None:
    store = Store()
    store.fail = [ConnectionLost("down")] * 100
    checkpointer = Checkpointer(store, START, 5)
    checkpointer.confirmed(FINISHED)

    with pytest.raises(ConnectionLost):
        await checkpointer.flush_within(10)

    assert checkpointer.durable == "t0"


@pytest.mark.looptime
async def test_tries_that_are_broken_off_end_where_each_call_has_its_time() -> None:
    """Both calls of a try that follows a lost answer take longer than it may."""

    class Slow(Store):
        async def put(self, checkpoint: Checkpoint) -> None:
            await asyncio.sleep(5)
            await super().put(checkpoint)

        async def get(self) -> Checkpoint:
            await asyncio.sleep(5)
            return await super().get()

    store = Slow()
    store.lose_answers = 1
    checkpointer = Checkpointer(store, START, 5)
    checkpointer.confirmed(Token("t1"))

    await checkpointer.flush_within(60, 8)

    assert (store.stored.token, checkpointer.durable) == ("t1", "t1")


@pytest.mark.looptime
async def test_a_stored_number_that_cannot_be_read_costs_no_more_than_the_time_of_a_try() -> None:
    """As where the answer of a drain's last checkpoint is lost, and the service is unavailable afterwards."""
    loop = asyncio.get_running_loop()

    class Unreadable(Store):
        async def get(self) -> Checkpoint:
            await asyncio.sleep(35 if loop.time() - began < 20 else 0)
            return await super().get()

    store, began = Unreadable(), loop.time()
    store.lose_answers = 1
    checkpointer = Checkpointer(store, START, 5)
    checkpointer.confirmed(Token("t1"))

    with pytest.raises(ReadTimeout, match="not stored within 8 s"):
        await checkpointer.flush_within(2, 8)
    assert loop.time() - began <= 2 + 8

    # it is in place, and still ours
    await asyncio.sleep(20)
    await checkpointer.flush_within(2, 8)
    assert (store.stored, checkpointer.durable) == (Checkpoint(Token("t1"), 8), "t1")


@pytest.mark.parametrize(
    ("stored", "ours"), [("durable", True), ("tried", True), ("older", False), ("", False), ("finished", False)]
)
def test_only_our_own_tokens_belong_to_us(stored: str, ours: bool) -> None:
    assert belongs_to_us(Token(stored), Token("durable"), frozenset({Token("tried")})) is ours


@pytest.mark.looptime
@pytest.mark.parametrize(
    ("trouble", "action"),
    [
        pytest.param(ConnectionLost("down"), LogAction.CHECKPOINT_FAILED, id="failed"),
        pytest.param(
            SequenceNumberMismatch("OTSSequenceNumberNotMatch", "stale"), LogAction.CHECKPOINT_ADOPTED, id="adopted"
        ),
    ],
)
async def test_a_log_line_about_a_checkpoint_names_every_key_of_its_action(
    trouble: TunnelError, action: LogAction, caplog: pytest.LogCaptureFixture
) -> None:
    pages = {"t0": page(1, "t1", True), "t1": page(0, "t1", False)}
    service = ScriptedService(pages, errors={"put": [trouble]})
    scene = ChannelScene(service, EventSink(service.events), checkpoint_interval=5)

    with caplog.at_level(logging.INFO, "ots_tunnel.worker.progress.checkpointer"):
        scene.open()
        await asyncio.sleep(12)

    lines = [record for record in caplog.records if record.__dict__.get("action") == action]
    assert lines
    assert all(line.__dict__.get(key) for line in lines for key in action.keys)
    await scene.close()
