"""What breaks a producer: the sink goes on with another one, or says why it cannot, and nothing is overtaken."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from ots_tunnel.config import KafkaSinkConfig, RetryConfig
from ots_tunnel.errors import SinkRejected
from ots_tunnel.model import ChannelId, ChannelType
from ots_tunnel.sinks import Batch
from ots_tunnel.sinks.kafka import KafkaSink
from ots_tunnel.sinks.kafka.message import Origin
from tests.support.guards import OpenGuard
from tests.support.records import numbered_record
from tests.support.sinks.descriptors import no_descriptor_left
from tests.support.sinks.kafka_brokers import (
    DUPLICATE,
    NO_RIGHTS,
    OUT_OF_ORDER,
    TOPIC,
    UNKNOWN_PRODUCER,
    Brokers,
    Request,
    running,
)
from tests.support.waiting import until

#: D, seconds: the client gives a message up one second before it is over, which a busy machine may need to connect.
PATIENT = 6.0


@asynccontextmanager
async def opened(brokers: Brokers, deadline: float) -> AsyncIterator[KafkaSink]:
    config = KafkaSinkConfig(bootstrap_servers=brokers.addresses, topic=TOPIC, timeout_seconds=30, compression="none")
    retry = RetryConfig(backoff_seconds=0.05, backoff_max_seconds=0.1)
    sink = KafkaSink(config, Origin("shop", "orders", "t"), retry=retry, deadline=deadline)
    try:
        async with asyncio.timeout(90):
            await sink.open()
            yield sink
    finally:
        await sink.close()


def batch(channel: str, *records: tuple[str, int]) -> Batch:
    return Batch(ChannelId(channel), ChannelType.STREAM, [numbered_record(key, number) for key, number in records])


def stored(brokers: Brokers, wanted: str) -> list[int]:
    """The numbers of a key's records in the order in which they were stored; a request may have several keys."""
    pairs = [pair for request in brokers.stored for pair in zip(request.keys, request.numbers, strict=True)]
    return [number for key, number in pairs if key == wanted]


async def test_a_fatal_error_costs_no_channel_its_records() -> None:
    refused = []

    async def refuse_once(brokers: Brokers, request: Request) -> int:
        if brokers.stored and not refused:
            refused.append(request)
            return OUT_OF_ORDER
        return brokers.store(request)

    async with running(Brokers(refuse_once)) as brokers, opened(brokers, PATIENT) as sink:

        async def channel(name: str) -> None:
            for number in range(3):
                await sink.write(batch(name, (name, number)), OpenGuard())

        await asyncio.gather(*map(channel, ("c1", "c2", "c3")))

    assert refused
    for name in ("c1", "c2", "c3"):
        assert [number for number, _ in itertools.groupby(stored(brokers, name))] == [0, 1, 2]
    assert len({request.producer for request in brokers.stored}) == 2


async def test_a_large_page_is_stored_in_order_whatever_breaks_on_the_way() -> None:
    """Several portions, between which the writer takes the reports itself."""
    refused = []

    async def refuse_once(brokers: Brokers, request: Request) -> int:
        if len(brokers.stored) > 2 and not refused:
            refused.append(request)
            return OUT_OF_ORDER
        return brokers.store(request)

    records = [(f"k{number % 700}", number) for number in range(3000)]
    async with running(Brokers(refuse_once)) as brokers, opened(brokers, PATIENT) as sink:
        await sink.write(batch("c", *records), OpenGuard())

    assert refused
    found: dict[str, list[int]] = {}
    for request in brokers.stored:
        for key, number in zip(request.keys, request.numbers, strict=True):
            found.setdefault(key, []).append(number)
    for start in range(700):
        assert [number for number, _ in itertools.groupby(found[f"k{start}"])] == list(range(start, 3000, 700))


@pytest.mark.parametrize("said", [DUPLICATE, UNKNOWN_PRODUCER])
@pytest.mark.parametrize("channels", [1, 20])
@pytest.mark.parametrize("stored_before", [0, 1])
async def test_what_is_reported_without_its_place_in_the_topic_is_sent_again(
    said: int, channels: int, stored_before: int
) -> None:
    """The broker has refused a request, and librdkafka reports its messages as stored.

    For the second of these answers that takes another request that is ready behind the refused one.
    """
    refused = []

    async def refuse_once(brokers: Brokers, request: Request) -> int:
        if len(brokers.stored) == stored_before and not refused:
            await asyncio.sleep(0.2)  # until the next one is ready
            refused.append(request)
            return said
        return brokers.store(request)

    numbers = range(100)
    async with running(Brokers(refuse_once)) as brokers, opened(brokers, PATIENT) as sink:
        if stored_before:
            await sink.write(batch("c", ("a", 0)), OpenGuard())
        pages = [[(f"k{each}", each) for each in numbers[first::channels]] for first in range(channels)]
        await asyncio.gather(*(sink.write(batch(f"c{page[0]}", *page), OpenGuard()) for page in pages))

    assert refused
    for each in numbers:
        assert set(stored(brokers, f"k{each}")) == {each}


async def test_a_topic_that_a_broker_does_not_know_for_a_moment_is_no_refusal() -> None:
    async with running(Brokers(_stored, unknown_topic=3)) as brokers, opened(brokers, PATIENT) as sink:
        await sink.write(batch("c", ("a", 1)), OpenGuard())

    assert stored(brokers, "a") == [1]


async def test_missing_rights_to_send_in_order_are_told() -> None:
    async with running(Brokers(_stored, init_error=NO_RIGHTS)) as brokers:
        with pytest.raises(SinkRejected) as refusal:
            async with opened(brokers, PATIENT) as sink:
                await sink.write(batch("c", ("a", 1)), OpenGuard())

    assert refusal.value.code == "CLUSTER_AUTHORIZATION_FAILED"


async def _stored(brokers: Brokers, request: Request) -> int:
    return brokers.store(request)


async def test_a_message_under_another_producer_id_overtakes_none() -> None:
    """A slow broker carries a message out within D, after another broker's refusal has broken the producer."""
    # as late as a busy machine lets it leave, it is carried out within D
    deadline, late = 4.0, 1.5
    partitions: dict[str, int] = {}
    held: list[asyncio.Task[None]] = []
    refused: list[Request] = []

    async def carry_out(brokers: Brokers, request: Request) -> None:
        await asyncio.sleep(late)
        brokers.store(request)

    async def answer(brokers: Brokers, request: Request) -> int:
        if request.numbers[0] == 0:
            partitions.update(dict.fromkeys(request.keys, request.partition))
            return brokers.store(request)
        if request.partition == partitions["k0"] and not held:
            held.append(asyncio.create_task(carry_out(brokers, request)))
            await asyncio.Event().wait()
        if request.partition != partitions["k0"] and not refused:
            refused.append(request)
            await asyncio.sleep(0.3)
            return OUT_OF_ORDER
        return brokers.store(request)

    async with running(Brokers(answer), partitions=2) as brokers, opened(brokers, deadline) as sink:
        await sink.write(batch("w", *((f"k{key}", 0) for key in range(8))), OpenGuard())
        other = next(key for key, partition in partitions.items() if partition != partitions["k0"])
        await asyncio.gather(
            sink.write(batch("c", ("k0", 1), ("k0", 2)), OpenGuard()),
            sink.write(batch("d", (other, 1), (other, 2)), OpenGuard()),
        )
        await asyncio.gather(*held)

    numbers = [number for number in stored(brokers, "k0") if number]
    assert numbers == sorted(numbers)
    assert {1, 2} == set(numbers)
    assert len({each.producer for each in brokers.stored}) == 2


async def test_a_process_without_descriptors_goes_on_when_it_has_some() -> None:
    answering = asyncio.Event()

    async def answer(brokers: Brokers, request: Request) -> int:
        await answering.wait()
        return brokers.store(request)

    async with running(Brokers(answer)) as brokers, opened(brokers, deadline=2) as sink:
        writing = asyncio.create_task(sink.write(batch("c", ("a", 1)), OpenGuard()))
        with no_descriptor_left():
            await until(lambda: sink.retries > 0)
        answering.set()
        await writing

    assert brokers.stored[-1].numbers == (1,)
