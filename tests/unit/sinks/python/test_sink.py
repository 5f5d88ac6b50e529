"""Confirmations by a user's code that come after the worker has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ots_tunnel.model import ChannelId, ChannelType, Token
from ots_tunnel.processor import ChannelContext, Confirm, SimpleProcessorFactory
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks import Batch
from ots_tunnel.sinks.python.sink import ManualProcessorSink
from tests.support.guards import OpenGuard

CHANNEL = ChannelId("c1")


def test_a_confirmation_after_the_worker_has_ended_does_nothing() -> None:
    confirms: list[Confirm] = []

    def process(context: ChannelContext, records: Sequence[Record], confirm: Confirm | None) -> None:
        assert confirm is not None
        confirms.append(confirm)

    async def work() -> None:
        sink = ManualProcessorSink(SimpleProcessorFactory(process, manual_checkpoints=True))
        await sink.begin(CHANNEL, ChannelType.STREAM, Token(""))
        _ = await sink.take(Batch(CHANNEL, ChannelType.STREAM, []), OpenGuard())
        await sink.end(CHANNEL, abandoned=True)

    asyncio.run(work())

    confirms[0]()


async def test_a_shutdown_that_raises_a_time_out_of_its_own_does_not_count_as_hanging() -> None:
    def process(context: ChannelContext, records: Sequence[Record], confirm: Confirm | None) -> None:
        """Take the records."""

    def shutdown(context: ChannelContext) -> None:
        raise TimeoutError("the user's connection")

    hung: list[ChannelId] = []
    sink = ManualProcessorSink(
        SimpleProcessorFactory(process, shutdown=shutdown, manual_checkpoints=True), on_hang=hung.append
    )
    await sink.begin(CHANNEL, ChannelType.STREAM, Token(""))

    await sink.end(CHANNEL, abandoned=False)

    assert hung == []
