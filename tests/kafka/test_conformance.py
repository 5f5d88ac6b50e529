"""The Kafka sink passes the sink conformance kit."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from ots_tunnel.protocol.record import Record
from tests.kafka.broker import Broker
from tests.kafka.topic import read_topic
from tests.support.sink_kit import RefusalConformance, SinkConformance, Stored, change, stored_in_json

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.timeout(300),  # the first test also fetches and starts the broker
    pytest.mark.xdist_group("kafka"),  # the tests of this folder share one broker
    pytest.mark.lasts(3),
]
#: Bytes above which the broker refuses a message; its default is 1 MiB.
TOO_LARGE = 1_200_000


class Topic:
    """A topic, as the kit sees it; keys are never in two partitions."""

    def __init__(self, broker: Broker, name: str) -> None:
        address = broker.address("PLAINTEXT")
        self.section: Mapping[str, Any] = {
            "kafka": {"bootstrapServers": [address], "topic": name, "compression": "none"}
        }
        self._broker = broker
        self._name = name

    async def stored(self) -> list[Stored]:
        messages = await asyncio.to_thread(read_topic, self._broker.address(), self._name)
        return [stored_in_json(message.value) for message in messages]

    def refused(self, key: int, number: int) -> Record:
        return change(key, number, padding=TOO_LARGE)


class TestKafkaSink(SinkConformance, RefusalConformance):
    @pytest.fixture
    def destination(self, broker: Broker, topic: str) -> Topic:
        return Topic(broker, topic)
