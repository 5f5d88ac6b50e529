"""Delivery reports come by the ten thousand, and the event loop takes them in portions."""

from __future__ import annotations

import asyncio
import errno
import threading
from collections import Counter

import pytest

from ots_tunnel.sinks.kafka import producer as producer_module
from ots_tunnel.sinks.kafka.failures import Failure
from ots_tunnel.sinks.kafka.message import Message
from ots_tunnel.sinks.kafka.producer import PASSED_AT_ONCE, ReportingProducer

MESSAGES = 10_000


async def test_many_reports_at_once_do_not_hold_the_loop_up() -> None:
    # librdkafka brings a broker of its own
    settings = {"test.mock.num.brokers": 1, "linger.ms": 200, "log_level": 0}
    producer = ReportingProducer(settings, "out", on_error=lambda failure: None)
    in_round: Counter[int] = Counter()
    number, ended = 0, asyncio.Event()

    def on_report(failure: Failure | None) -> None:
        assert failure is None
        in_round[number] += 1
        if in_round.total() == MESSAGES:
            ended.set()

    async def rounds() -> None:
        nonlocal number
        while True:
            number += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(rounds())
    await asyncio.sleep(0)
    for key in range(MESSAGES):
        producer.produce(Message(b"%d" % key, b"v", []), on_report)
    await asyncio.wait_for(ended.wait(), 30)
    counting.cancel()
    await producer.close()

    assert max(in_round.values()) <= PASSED_AT_ONCE


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
    reported: asyncio.Future[Failure | None] = asyncio.get_running_loop().create_future()
    producer.produce(Message(b"key", b"v", []), reported.set_result)
    room = asyncio.create_task(producer.room())
    assert await asyncio.to_thread(looking.wait, 30)

    closing = asyncio.create_task(producer.close())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    breaking.set()

    failure = await asyncio.wait_for(reported, 30)
    assert failure is not None
    assert failure.name == "_PURGE_QUEUE"
    await asyncio.wait_for(room, 30)
