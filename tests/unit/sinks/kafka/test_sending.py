"""What is asked, and in which order, while the messages of a portion are handed to a producer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from ots_tunnel.config import KafkaSinkConfig
from ots_tunnel.model import ChannelId, ChannelType
from ots_tunnel.sinks.kafka.connections import Connections
from ots_tunnel.sinks.kafka.failures import Failure
from ots_tunnel.sinks.kafka.message import Message, Messages, Origin
from ots_tunnel.sinks.kafka.places import Places
from ots_tunnel.sinks.kafka.producer import Parcel as Callback
from ots_tunnel.sinks.kafka.producer import ReportingProducer
from ots_tunnel.sinks.kafka.reports import Reports
from ots_tunnel.sinks.kafka.sending import MESSAGES_AT_ONCE, Sending
from ots_tunnel.sinks.kafka.shipment import Parcel
from tests.support.records import numbered_record


class Asked:
    """Notes each question and each group of messages."""

    def __init__(self) -> None:
        self.events: list[str | int] = []

    def check(self) -> None:
        self.events.append("asked")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    asked, produce = Asked(), ReportingProducer.produce

    def noted(
        producer: ReportingProducer, messages: Sequence[Message], parcels: Sequence[Callback], reports: Reports[Any]
    ) -> tuple[int, Failure | None]:
        asked.events.append(len(messages))
        return produce(producer, messages, parcels, reports)

    monkeypatch.setattr(ReportingProducer, "produce", noted)
    return asked


async def test_the_guard_is_asked_before_every_group_and_behind_the_last(asked: Asked) -> None:
    """What leaves is in doubt from the last question on, also where the process stands still within a group."""
    reports: Reports[Parcel] = Reports()
    records = [numbered_record(key, 1) for key in range(MESSAGES_AT_ONCE + 2)]
    parcels = tuple(Parcel(record, record.key, record.size, reports.kept, Places()) for record in records)
    parcels[-1].alone = True
    known = _connections()
    sending = Sending(known, Messages(Origin("i", "t", "n"), ChannelId("c"), ChannelType.STREAM), asked, reports)

    await sending.send(parcels, goes_on=False)
    await known.close()

    assert asked.events == ["asked", MESSAGES_AT_ONCE, "asked", 1, "asked", 1, "asked"]
    assert len(reports.kept) == len(parcels)


def _connections() -> Connections:
    """Of brokers that nobody has started."""
    config = KafkaSinkConfig(bootstrap_servers=["127.0.0.1:1"], topic="t", timeout_seconds=30, compression="none")
    return Connections(config, deadline=10, check_pause=lambda: 0.1)
