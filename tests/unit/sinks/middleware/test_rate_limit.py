"""Rows written per second."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from ots_tunnel.model import ChannelId, ChannelType
from ots_tunnel.sinks import Batch, Confirmation, Deferred, Guard, Immediate
from ots_tunnel.sinks.middleware.base import behind
from ots_tunnel.sinks.middleware.rate_limit import Paced
from tests.support.guards import OpenGuard
from tests.support.records import numbered_record


class Timed(Immediate):
    def __init__(self) -> None:
        self.written: list[tuple[float, int]] = []
        self.heads: set[int] = set()

    async def open(self) -> None:
        pass

    async def write(self, batch: Batch, guard: Guard) -> None:
        assert batch.head is not None
        self.heads.add(id(batch.head))
        self.written.append((asyncio.get_running_loop().time(), len(batch.records)))

    async def close(self) -> None:
        pass


@pytest.mark.looptime
async def test_a_page_is_spread_over_time() -> None:
    timed = Timed()
    sink = behind(Paced(100), timed)
    await sink.open()
    records = [numbered_record(number, number) for number in range(200)]
    began = asyncio.get_running_loop().time()

    await sink.write(Batch(ChannelId("c"), ChannelType.STREAM, records), OpenGuard())
    await sink.write(Batch(ChannelId("c"), ChannelType.STREAM, records), OpenGuard())

    assert sum(rows for _, rows in timed.written) == 400
    assert max(rows for _, rows in timed.written) == 25
    assert 3.4 <= asyncio.get_running_loop().time() - began <= 4.1
    for moment, _ in timed.written:
        assert sum(rows for other, rows in timed.written if moment <= other < moment + 1) <= 125
    assert timed.heads == {id(records[0])}


@pytest.mark.looptime
async def test_a_turn_is_what_the_first_slice_waits_for() -> None:
    timed = Timed()
    sink = behind(Paced(100, whole_pages=True), timed)
    await sink.open()
    loop, batch = asyncio.get_running_loop(), Batch(ChannelId("c"), ChannelType.STREAM, [numbered_record(1, 1)] * 200)
    began = loop.time()
    await sink.write(batch, OpenGuard())

    given_up = asyncio.ensure_future(sink.turn(ChannelId("c")) or asyncio.sleep(0))
    await asyncio.wait((given_up,), timeout=0.5)
    given_up.cancel()
    await (sink.turn(ChannelId("other")) or asyncio.sleep(0))
    turn_at = loop.time()
    await sink.write(replace(batch, channel_id=ChannelId("other")), OpenGuard())

    assert turn_at - began == pytest.approx(2, abs=0.1)
    assert [moment for moment, _ in timed.written] == [began, turn_at]
    # what was given up has been charged to nobody
    await (sink.turn(ChannelId("c")) or asyncio.sleep(0))
    assert loop.time() - turn_at == pytest.approx(2, abs=0.1)


class Manual(Deferred):
    """Confirms on the test's request, as users' code with manual checkpoints does."""

    def __init__(self) -> None:
        self.confirmations: list[Confirmation] = []

    async def open(self) -> None:
        pass

    async def begin(self, *channel: object) -> None:
        pass

    def checkpointed(self, *page: object) -> None:
        pass

    async def end(self, *channel: object, abandoned: bool) -> None:
        pass

    async def take(self, batch: Batch, guard: Guard) -> Confirmation:
        self.confirmations.append(asyncio.get_running_loop().create_future())
        return self.confirmations[-1]

    async def close(self) -> None:
        pass


@pytest.mark.looptime
async def test_a_turn_of_a_channel_that_ends_without_a_batch_costs_the_others_nothing() -> None:
    sink = behind(Paced(100), Timed())
    await sink.open()
    loop, records = asyncio.get_running_loop(), [numbered_record(1, 1)] * 50
    await sink.write(Batch(ChannelId("c"), ChannelType.STREAM, records), OpenGuard())
    began = loop.time()

    for number in range(12):
        gone = ChannelId(f"gone-{number}")
        wait = sink.turn(gone)
        assert wait is not None
        await wait
        await sink.end(gone, abandoned=True)

    assert loop.time() - began <= 0.3


@pytest.mark.looptime
async def test_a_page_in_slices_is_confirmed_when_every_slice_is() -> None:
    manual = Manual()
    sink = behind(Paced(100), manual)
    await sink.open()
    records = [numbered_record(number, number) for number in range(60)]

    whole = await sink.take(Batch(ChannelId("c"), ChannelType.STREAM, records), OpenGuard())

    assert len(manual.confirmations) == 3
    for confirmation in reversed(manual.confirmations):
        assert not whole.done()
        confirmation.set_result(None)
        await asyncio.sleep(0.01)
    assert whole.done()


@pytest.mark.looptime
async def test_a_page_is_confirmed_right_after_its_slices_in_whatever_order_they_are() -> None:
    manual = Manual()
    sink = behind(Paced(4), manual)
    await sink.open()
    records = [numbered_record(number, number) for number in range(12)]
    whole = await sink.take(Batch(ChannelId("c"), ChannelType.STREAM, records), OpenGuard())

    for confirmation in reversed(manual.confirmations):
        confirmation.set_result(None)
    await asyncio.sleep(0)

    assert whole.done()
