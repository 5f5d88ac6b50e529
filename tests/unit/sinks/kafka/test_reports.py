"""Delivery reports come by the ten thousand, and the event loop takes them in portions."""

from __future__ import annotations

import asyncio
from collections import Counter

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
