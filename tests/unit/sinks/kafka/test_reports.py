"""Delivery reports come by the ten thousand, and the event loop takes them in portions."""

from __future__ import annotations

import asyncio
import errno
import threading

import pytest

from ots_tunnel.sinks.kafka import producer as producer_module
from ots_tunnel.sinks.kafka.message import Message
from ots_tunnel.sinks.kafka.places import Places
from ots_tunnel.sinks.kafka.producer import ReportingProducer
from ots_tunnel.sinks.kafka.reports import Reports
from ots_tunnel.sinks.kafka.shipment import Parcel
from tests.support.records import numbered_record

MESSAGES = 10_000
LIMIT = 500


def parcel(number: int, reports: Reports[Parcel]) -> Parcel:
    record = numbered_record(number, number)
    return Parcel(record, record.key, number, reports.kept, Places())


def message(number: int) -> Message:
    return b"%d" % number, b"v", []


def send(producer: ReportingProducer, number: int, reports: Reports[Parcel]) -> None:
    assert producer.produce([message(number)], [parcel(number, reports)], reports) == (1, None)


async def all_of(count: int, reports: Reports[Parcel]) -> list[Parcel]:
    taken: list[Parcel] = []
    while len(taken) < count:
        await reports.any()
        taken += reports.take(LIMIT)
    return taken


def told(parcels: list[Parcel]) -> list[tuple[int, str | None]]:
    """The numbers of parcels, and the names of their failures."""
    return [(each.size, each.failure.name if each.failure else None) for each in parcels]


async def test_many_reports_at_once_do_not_hold_the_loop_up() -> None:
    # librdkafka brings a broker of its own
    settings = {"test.mock.num.brokers": 1, "linger.ms": 200, "log_level": 0}
    producer = ReportingProducer(settings, "out", on_error=lambda failure: None)
    reports: Reports[Parcel] = Reports()
    taken: list[Parcel] = []

    for key in range(MESSAGES):
        send(producer, key, reports)
    async with asyncio.timeout(30):
        while len(taken) < MESSAGES:
            await reports.any()
            portion = reports.take(LIMIT)
            assert 0 < len(portion) <= LIMIT
            taken += portion
    await producer.close()

    assert sorted(told(taken)) == [(key, None) for key in range(MESSAGES)]


async def test_a_report_that_comes_while_another_one_is_announced_ends_the_next_wait() -> None:
    reports: Reports[str] = Reports()
    waiting = asyncio.create_task(reports.any())
    await asyncio.sleep(0)
    reports.kept.append("a")
    reports.wake()
    reports.kept.append("b")
    await waiting

    assert reports.take(1) == ["a"]
    await reports.any()
    assert reports.take(5) == ["b"]
    waiting = asyncio.create_task(reports.any())
    await asyncio.sleep(0)
    reports.wake()
    await asyncio.sleep(0)
    assert not waiting.done(), "nothing has come"
    reports.kept.append("c")
    reports.wake()
    await asyncio.wait_for(waiting, 30)


async def test_a_close_that_is_cancelled_keeps_no_report_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The channel that closes a broken producer is taken away meanwhile; others wait for their reports."""
    looking, breaking = threading.Event(), threading.Event()

    def limit(*_: object) -> int:
        looking.set()
        assert breaking.wait(30)
        raise OSError(errno.EMFILE, "no descriptor")

    monkeypatch.setattr(producer_module, "limit_sockets", limit)
    nobody = {"bootstrap.servers": "127.0.0.1:1", "message.timeout.ms": 60_000, "log_level": 0}
    producer = ReportingProducer(nobody, "out", on_error=lambda failure: None)
    reports: Reports[Parcel] = Reports()
    send(producer, 1, reports)
    room = asyncio.create_task(producer.room())
    assert await asyncio.to_thread(looking.wait, 30)

    closing = asyncio.create_task(producer.close())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    breaking.set()

    await asyncio.wait_for(reports.any(), 30)
    assert told(reports.take(LIMIT)) == [(1, "_PURGE_QUEUE")]
    await asyncio.wait_for(room, 30)


#: librdkafka brings a broker of its own.
OWN_BROKER = {"test.mock.num.brokers": 1, "log_level": 0}


async def test_a_writer_that_goes_on_sending_takes_the_reports_itself() -> None:
    producer = ReportingProducer(OWN_BROKER, "out", on_error=lambda failure: None)
    reports: Reports[Parcel] = Reports()
    producer.attend(reports)
    await asyncio.sleep(0)
    taken: list[Parcel] = []
    async with asyncio.timeout(30):
        for key in range(300):
            send(producer, key, reports)
            producer.serve()
            taken += reports.take(LIMIT)
        while len(taken) < 300:
            producer.serve()
            taken += reports.take(LIMIT)
            await asyncio.sleep(0.001)
    producer.leave(reports)
    await producer.close()

    assert sorted(told(taken)) == [(key, None) for key in range(300)]


async def test_a_writer_that_stops_sending_gets_the_reports_from_the_thread() -> None:
    producer = ReportingProducer(OWN_BROKER, "out", on_error=lambda failure: None)
    sending, other = Reports[Parcel](), Reports[Parcel]()

    producer.attend(sending)
    send(producer, 1, sending)
    producer.leave(sending)
    await asyncio.wait_for(sending.any(), 30)
    assert told(sending.take(LIMIT)) == [(1, None)]

    producer.attend(sending)
    send(producer, 2, other)
    # it does not serve: the thread looks now and then, so that no other writer waits for ever
    await asyncio.wait_for(other.any(), 30)
    assert told(other.take(LIMIT)) == [(2, None)]
    await producer.close()


async def test_a_full_queue_takes_the_messages_that_fit() -> None:
    producer = ReportingProducer({**OWN_BROKER, "queue.buffering.max.messages": 3, "linger.ms": 2000}, "out", print)
    reports: Reports[Parcel] = Reports()

    parcels = [parcel(number, reports) for number in range(5)]
    assert producer.produce([message(number) for number in range(5)], parcels, reports) == (3, None)
    async with asyncio.timeout(30):
        sent = 3
        while sent < 5:  # a room is for one message at least
            await producer.room()
            taken_now, refused = producer.produce(list(map(message, range(sent, 5))), parcels[sent:], reports)
            assert refused is None
            sent += taken_now
        taken = await all_of(5, reports)
    await producer.close()

    assert sorted(told(taken)) == [(number, None) for number in range(5)]


async def test_a_message_that_the_client_refuses_is_named_and_those_before_it_are_sent() -> None:
    producer = ReportingProducer({**OWN_BROKER, "message.max.bytes": 1000}, "out", print)
    reports: Reports[Parcel] = Reports()
    messages: list[Message] = [message(0), message(1), (b"2", bytes(2000), []), message(3)]

    queued, refusal = producer.produce(messages, [parcel(number, reports) for number in range(4)], reports)
    async with asyncio.timeout(30):
        taken = await all_of(2, reports)
    await producer.close()

    assert queued == 2
    assert refusal is not None
    assert (refusal.name, refusal.by_client) == ("MSG_SIZE_TOO_LARGE", True)
    assert sorted(told(taken)) == [(0, None), (1, None)]
