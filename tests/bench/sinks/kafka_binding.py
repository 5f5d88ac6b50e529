"""The least that a client of `confluent_kafka` does: messages that are made already, and a report counted for each."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import confluent_kafka

from ots_tunnel.sinks.kafka.message import Message

#: Those of the sink that cost CPU, see `sinks.kafka.settings`.
SETTINGS: dict[str, Any] = {
    "enable.idempotence": True,
    "max.in.flight.requests.per.connection": 1,
    "linger.ms": 0,
    "partitioner": "murmur2_random",
    "compression.type": "lz4",
    "queue.buffering.max.messages": 20_000,
}
#: Messages that are not reported yet, and that are handed over between two looks at the reports.
UNDER_WAY, AT_ONCE = 8000, 250
#: The key decides about the partition; a message gets the time at which it is produced.
ANY_PARTITION, NOW = -1, 0
#: Seconds that a look waits for reports where nothing may be sent, and the messages of each that do not count.
WAIT, WARM_PART = 0.1, 10


def binding(
    broker: str, topic: str, messages: list[Message], rows: int, threads: Callable[[], float]
) -> tuple[float, float]:
    """CPU seconds per million messages, and librdkafka's threads of it.

    Args:
        messages: repeated until `rows` are sent; their number is a multiple of `AT_ONCE`.
        threads: CPU seconds of librdkafka's threads so far.
    """
    producer = confluent_kafka.Producer({**SETTINGS, "bootstrap.servers": broker})
    produce, sent, reported = producer.produce, 0, 0

    def count(error: Any, _message: object) -> None:
        nonlocal reported
        assert error is None, error
        reported += 1

    warm, begun, begun_threads = rows // WARM_PART, 0.0, 0.0
    while reported < rows:
        if not begun and reported >= warm:
            warm, begun, begun_threads = reported, time.process_time(), threads()
        may_send = sent < rows and sent - reported < UNDER_WAY
        if may_send:
            first = sent % len(messages)
            for key, value, headers in messages[first : first + AT_ONCE]:
                produce(topic, value, key, ANY_PARTITION, count, None, NOW, headers)
            sent += AT_ONCE
        producer.poll(0 if may_send else WAIT)
    millions = (rows - warm) / 1e6
    return (time.process_time() - begun) / millions, (threads() - begun_threads) / millions
