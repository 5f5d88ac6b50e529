"""Delivery reports come by the ten thousand, and the event loop takes them in portions."""

from __future__ import annotations

import asyncio
import errno
import threading

import pytest

from ots_tunnel.sinks.kafka import producer as producer_module
from ots_tunnel.sinks.kafka.failures import Failure
from ots_tunnel.sinks.kafka.producer import ReportingProducer
from ots_tunnel.sinks.kafka.reports import Reports

MESSAGES = 10_000
LIMIT = 500


async def test_many_reports_at_once_do_not_hold_the_loop_up() -> None:
    # librdkafka brings a broker of its own
    settings = {"test.mock.num.brokers": 1, "linger.ms": 200, "log_level": 0}
    producer = ReportingProducer(settings, "out", on_error=lambda failure: None)
    reports: Reports[int] = Reports()
    taken: list[tuple[int, Failure | None]] = []

    for key in range(MESSAGES):
        producer.produce((b"%d" % key, b"v", []), key, reports)
    async with asyncio.timeout(30):
        while len(taken) < MESSAGES:
            await reports.any()
            portion = reports.take(LIMIT)
            assert 0 < len(portion) <= LIMIT
            taken += portion
    await producer.close()

    assert sorted(taken) == [(key, None) for key in range(MESSAGES)]


async def test_a_report_that_comes_while_another_one_is_announced_ends_the_next_wait() -> None:
    reports: Reports[str] = Reports()
    waiting = asyncio.create_task(reports.any())
    await asyncio.sleep(0)
    reports.kept.append(("a", None))
    reports.wake()
    reports.kept.append(("b", None))
    await waiting

    assert reports.take(1) == [("a", None)]
    await reports.any()
    assert reports.take(5) == [("b", None)]
    waiting = asyncio.create_task(reports.any())
    await asyncio.sleep(0)
    reports.wake()
    await asyncio.sleep(0)
    assert not waiting.done(), "nothing has come"
    reports.kept.append(("c", None))
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
    nobody = {"bootstrap.servers": "127.0.0.1:1", "message.timeout.ms": 3000, "log_level": 0}
    producer = ReportingProducer(nobody, "out", on_error=lambda failure: None)
    reports: Reports[str] = Reports()
    producer.produce((b"key", b"v", []), "key", reports)
    room = asyncio.create_task(producer.room())
    assert await asyncio.to_thread(looking.wait, 30)

    closing = asyncio.create_task(producer.close())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    breaking.set()

    await asyncio.wait_for(reports.any(), 30)
    ((_, failure),) = reports.take(LIMIT)
    assert failure is not None
    assert failure.name == "_PURGE_QUEUE"
    await asyncio.wait_for(room, 30)


#: librdkafka brings a broker of its own.
OWN_BROKER = {"test.mock.num.brokers": 1, "log_level": 0}


async def test_a_writer_that_goes_on_sending_takes_the_reports_itself() -> None:
    producer = ReportingProducer(OWN_BROKER, "out", on_error=lambda failure: None)
    reports: Reports[int] = Reports()
    producer.attend(reports)
    await asyncio.sleep(0)
    taken: list[tuple[int, Failure | None]] = []
    async with asyncio.timeout(30):
        for key in range(300):
            producer.produce((b"%d" % key, b"v", []), key, reports)
            producer.serve()
            taken += reports.take(LIMIT)
        while len(taken) < 300:
            producer.serve()
            taken += reports.take(LIMIT)
            await asyncio.sleep(0.001)
    producer.leave(reports)
    await producer.close()

    assert sorted(taken) == [(key, None) for key in range(300)]


async def test_a_writer_that_stops_sending_gets_the_reports_from_the_thread() -> None:
    producer = ReportingProducer(OWN_BROKER, "out", on_error=lambda failure: None)
    sending, other = Reports[int](), Reports[int]()

    producer.attend(sending)
    producer.produce((b"a", b"v", []), 1, sending)
    producer.leave(sending)
    await asyncio.wait_for(sending.any(), 30)
    assert sending.take(LIMIT) == [(1, None)]

    producer.attend(sending)
    producer.produce((b"b", b"v", []), 2, other)
    # it does not serve: the thread looks now and then, so that no other writer waits for ever
    await asyncio.wait_for(other.any(), 30)
    assert other.take(LIMIT) == [(2, None)]
    await producer.close()
