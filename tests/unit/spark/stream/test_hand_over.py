"""The sink between a worker and Spark: back-pressure, confirmations, and the end of the query."""

from __future__ import annotations

import asyncio

import pytest

from ots_tunnel.errors import SinkError
from ots_tunnel.model import FINISHED, ChannelId, ChannelType, Token, TunnelId
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks import Batch, Confirmation
from ots_tunnel.spark.stream.hand_over import HandOver
from ots_tunnel.spark.stream.ledger import Ledger
from ots_tunnel.spark.stream.offsets import Offset
from tests.support.guards import OpenGuard
from tests.support.records import numbered_record
from tests.support.waiting import until

A, B = ChannelId("a"), ChannelId("b")
START = Offset(TunnelId("tunnel"), "query")
LARGE = 10**9
LOG = [numbered_record(number, number) for number in range(9)]


async def opened(held_bytes: int = LARGE) -> HandOver:
    hand_over = HandOver(Ledger(START, lambda: 0.0), held_bytes)
    await hand_over.open()
    for channel_id in (A, B):
        await hand_over.begin(channel_id, ChannelType.STREAM, Token("t0"))
    return hand_over


async def given(hand_over: HandOver, number: int, records: list[Record], channel_id: ChannelId = A) -> Confirmation:
    batch = Batch(channel_id, ChannelType.STREAM, records, Token(f"t{number - 1}"), Token(f"t{number}"), page=number)
    return await hand_over.take(batch, OpenGuard())


async def test_a_page_is_confirmed_when_its_batch_is_committed() -> None:
    hand_over = await opened()
    confirmation = await given(hand_over, 1, LOG[:2])

    end = await asyncio.to_thread(hand_over.next_batch, START, LARGE)
    await asyncio.sleep(0)
    assert not confirmation.done()

    await asyncio.to_thread(hand_over.next_batch, end, LARGE)
    await until(confirmation.done)


async def test_a_page_without_records_is_confirmed_at_once_but_for_the_first_one() -> None:
    hand_over = await opened()

    first = await given(hand_over, 1, [])
    second = await given(hand_over, 2, [])
    await until(second.done)
    assert hand_over.wait(0)
    assert not first.done()
    end = await asyncio.to_thread(hand_over.next_batch, START, LARGE)
    assert set(end.channels) == {A}

    await asyncio.to_thread(hand_over.next_batch, end, LARGE)
    await until(first.done)
    third = await given(hand_over, 3, [])
    await until(third.done)
    assert not hand_over.wait(0)


async def test_pages_wait_while_enough_are_held_but_for_the_first_of_a_channel() -> None:
    hand_over = await opened(held_bytes=1)
    first = await given(hand_over, 1, LOG[:1])
    waiting = asyncio.create_task(given(hand_over, 2, LOG[1:2]))
    other = await given(hand_over, 1, LOG[:1], B)
    await asyncio.sleep(0)
    assert not waiting.done()
    assert not first.done()
    assert not other.done()

    end = await asyncio.to_thread(hand_over.next_batch, START, LARGE)
    await asyncio.to_thread(hand_over.next_batch, end, LARGE)

    await until(waiting.done)
    assert hand_over.held > 0


async def test_spark_is_woken_by_a_page() -> None:
    hand_over = await opened()
    woken = asyncio.create_task(asyncio.to_thread(hand_over.wait, 30))

    confirmation = await given(hand_over, 1, LOG[:1])

    assert await woken
    assert not confirmation.done()


async def test_the_end_of_a_channel_waits_for_spark() -> None:
    hand_over = await opened()
    confirmation = await given(hand_over, 1, LOG[:1])
    ending = asyncio.create_task(hand_over.end(A, abandoned=False))
    await asyncio.sleep(0)
    assert not ending.done()

    end = await asyncio.to_thread(hand_over.next_batch, START, LARGE)
    await asyncio.to_thread(hand_over.next_batch, end, LARGE)

    await until(ending.done)
    await ending
    await until(confirmation.done)


async def test_the_end_of_the_query_ends_every_wait() -> None:
    hand_over = await opened(held_bytes=1)
    confirmation = await given(hand_over, 1, LOG[:1])
    waits = [
        asyncio.create_task(given(hand_over, 2, LOG[1:2])),
        asyncio.create_task(hand_over.end(A, abandoned=False)),
    ]
    await asyncio.sleep(0)

    hand_over.leave()

    for wait in waits:
        with pytest.raises(SinkError, match="the query ends"):
            await wait
    assert not confirmation.done()


async def test_the_last_page_of_a_channel_is_in_a_batch_of_its_own() -> None:
    hand_over = await opened()
    batch = Batch(A, ChannelType.STREAM, [], Token("t0"), FINISHED, page=1)
    confirmation = await hand_over.take(batch, OpenGuard())

    end = await asyncio.to_thread(hand_over.next_batch, START, LARGE)

    assert end.channels[A].is_finished
    assert hand_over.records_of(end) == {}
    assert not confirmation.done()
