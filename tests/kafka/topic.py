"""The messages of a topic, read by a separate consumer."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

READING = 30.0


@dataclass(frozen=True)
class Read:
    """One message."""

    partition: int
    key: bytes
    value: dict[str, Any]
    headers: dict[str, str]

    @property
    def number(self) -> int:
        """Value of the record's only column."""
        (column,) = self.value["columns"]
        number: int = column["value"]
        return number


def read_topic(address: str, topic: str) -> list[Read]:
    """Every message of a topic, each partition in its order."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": "reader", "enable.auto.commit": False})
    try:
        return _read_all(consumer, topic)
    finally:
        consumer.close()


def count_messages(address: str, topic: str) -> int:
    """The number of messages of a topic of which none was deleted and none is part of a transaction."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": "counter"})
    try:
        return sum(_ends(consumer, topic).values())
    finally:
        consumer.close()


def _ends(consumer: Consumer, topic: str) -> dict[int, int]:
    give_up = time.monotonic() + READING
    partitions = consumer.list_topics(topic, READING).topics[topic].partitions
    return {number: _end(consumer, TopicPartition(topic, number), give_up) for number in partitions}


def _read_all(consumer: Consumer, topic: str) -> list[Read]:
    give_up = time.monotonic() + READING
    ends = _ends(consumer, topic)
    consumer.assign([TopicPartition(topic, number, 0) for number in ends])
    reached, found = dict.fromkeys(ends, 0), []
    while any(reached[number] < end for number, end in ends.items()):
        assert time.monotonic() < give_up, f"read up to {reached} of {ends}"
        message = consumer.poll(1.0)
        if message is None:
            continue
        assert message.error() is None, message.error()
        assert message.offset() == reached[message.partition()], "the reader skipped messages"
        reached[message.partition()] = message.offset() + 1
        headers = {name: value.decode() for name, value in message.headers()}
        found.append(Read(message.partition(), message.key(), json.loads(message.value()), headers))
    return found


def _end(consumer: Consumer, partition: TopicPartition, give_up: float) -> int:
    while True:
        try:
            end: int = consumer.get_watermark_offsets(partition, 5)[1]
            return end
        except KafkaException:  # the leader of a new topic may not have started yet
            assert time.monotonic() < give_up
            time.sleep(0.05)


def numbers_by_key(messages: list[Read]) -> dict[bytes, list[int]]:
    """The numbers of every key in the order of its partition."""
    found: dict[bytes, list[int]] = defaultdict(list)
    for message in messages:
        found[message.key].append(message.number)
    return dict(found)


def java_partition(key: bytes, partitions: int) -> int:
    """The partition that Java's producer chooses for a key: murmur2 with its seed, without the sign."""
    mask, mixed = 0xFFFFFFFF, 0x9747B28C ^ len(key)
    for start in range(0, len(key) - 3, 4):
        part = int.from_bytes(key[start : start + 4], "little") * 0x5BD1E995 & mask
        mixed = mixed * 0x5BD1E995 & mask ^ (part ^ part >> 24) * 0x5BD1E995 & mask
    if rest := key[len(key) & ~3 :]:
        mixed = (mixed ^ int.from_bytes(rest, "little")) * 0x5BD1E995 & mask
    mixed = (mixed ^ mixed >> 13) * 0x5BD1E995 & mask
    return ((mixed ^ mixed >> 15) & 0x7FFFFFFF) % partitions
