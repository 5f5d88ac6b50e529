"""A producer is replaced while writers use it: each goes on with the one that took its place."""

from __future__ import annotations

import asyncio

import pytest

from ots_tunnel.config import KafkaSinkConfig
from ots_tunnel.model import ChannelId, ChannelType
from ots_tunnel.sinks.kafka.connections import Connections
from ots_tunnel.sinks.kafka.failures import Failure
from ots_tunnel.sinks.kafka.message import Messages, Origin
from ots_tunnel.sinks.kafka.places import Places
from ots_tunnel.sinks.kafka.producer import ReportingProducer
from ots_tunnel.sinks.kafka.reports import Reports
from ots_tunnel.sinks.kafka.sending import Sending
from ots_tunnel.sinks.kafka.shipment import Parcel
from tests.support.guards import OpenGuard
from tests.support.records import numbered_record

BROKEN = Failure("_SSL", "the file of certificates has changed", fatal=True)


def connections() -> Connections:
    """Of brokers that nobody has started."""
    config = KafkaSinkConfig(bootstrap_servers=["127.0.0.1:1"], topic="t", timeout_seconds=30, compression="none")
    return Connections(config, deadline=10, check_pause=lambda: 0.1)


def parcel(key: str, reports: Reports[Parcel]) -> Parcel:
    record = numbered_record(key, 1)
    return Parcel(record, record.key, record.size, reports.kept, Places())


async def test_the_last_portion_of_a_page_goes_to_the_next_producer() -> None:
    known = connections()
    messages = Messages(Origin("shop", "orders", "t"), ChannelId("c"), ChannelType.STREAM)
    reports: Reports[Parcel] = Reports()
    sending, first, last = Sending(known, messages, OpenGuard(), reports), parcel("a", reports), parcel("b", reports)
    async with asyncio.timeout(30):
        await sending.send((first,), goes_on=True)
        (await known.ready()).retire(BROKEN)

        await sending.send((last,), goes_on=False)

        (reported,) = await sending.reported(wait=True)
        assert reported is first
        assert first.failure is not None
        assert first.failure.name == "_PURGE_QUEUE"
        await known.close()
        (reported,) = await sending.reported(wait=True)
        assert reported is last


async def test_a_producer_that_breaks_while_the_one_before_is_closed_is_given_to_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known, closing = connections(), asyncio.Event()
    close = ReportingProducer.close
    async with asyncio.timeout(30):
        first = await known.ready()
        first.retire(BROKEN)

        async def close_slowly(producer: ReportingProducer) -> None:
            await close(producer)
            if producer is first:
                await closing.wait()

        monkeypatch.setattr(ReportingProducer, "close", close_slowly)
        waiting = asyncio.create_task(known.ready())
        await asyncio.sleep(0)
        (await known.ready()).retire(BROKEN)
        third = await known.ready()
        closing.set()

        assert await waiting is third
        await known.close()
