"""Code of users.

factory     confirms pages in their order, each after a while of its own, with manual checkpoints
lazy        a mistake: it returns what would process the records if somebody asked for it
handed_on   a mistake: it hands its records to a pool, which never comes to them, and returns
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from ots_tunnel.processor import ChannelContext, Confirm, SimpleProcessorFactory
from ots_tunnel.protocol.record import Record
from tests.simulation.machine.determinism import CURRENT
from tests.simulation.service import change_of_record
from tests.support.ledger import Entry, Written

#: Seconds until a page is processed: mostly short, sometimes longer than a heartbeat timeout.
USUAL, LONG = (0.001, 0.3), (5.0, 90.0)


class UserCode:
    """What the user's code does, and whom it tells."""

    witness: Callable[[Entry], None] | None = None

    def __init__(self) -> None:
        self._queues: dict[str, asyncio.Queue[tuple[Sequence[Record], Confirm | None, float]]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def initialize(self, context: ChannelContext) -> None:
        """Begin a channel."""
        self._queues[context.channel_id] = asyncio.Queue()
        self._tasks[context.channel_id] = asyncio.create_task(self._work(context.channel_id), name="user")

    async def process(self, context: ChannelContext, records: Sequence[Record], confirm: Confirm | None = None) -> None:
        """Take a page."""
        process = CURRENT.get()
        assert process is not None
        self._queues[context.channel_id].put_nowait((tuple(records), confirm, process.boottime()))

    async def shutdown(self, context: ChannelContext) -> None:
        """End a channel: what is not processed is dropped."""
        self._tasks.pop(context.channel_id).cancel()

    async def _work(self, channel_id: str) -> None:
        process, queue = CURRENT.get(), self._queues[channel_id]
        assert process is not None
        while True:
            records, confirm, taken_at = await queue.get()
            await asyncio.sleep(process.chance.uniform(*(LONG if process.chance.random() < 0.004 else USUAL)))
            if UserCode.witness is not None:
                rows = tuple(map(change_of_record, records))
                UserCode.witness(Written(process.boottime(), process.name, taken_at, rows))
            if confirm is not None:
                confirm()


def factory() -> SimpleProcessorFactory:
    """The factory that the worker's document names."""
    code = UserCode()
    return SimpleProcessorFactory(
        code.process, initialize=code.initialize, shutdown=code.shutdown, manual_checkpoints=True
    )


def lazy() -> SimpleProcessorFactory:
    """Code whose work is an iterator that nobody asks."""
    return SimpleProcessorFactory(_returns(lambda records: map(change_of_record, records)))


def handed_on() -> SimpleProcessorFactory:
    """Code whose work is in a pool that is busy for ever."""
    return SimpleProcessorFactory(_returns(lambda records: Future()))


def _returns(begin: Callable[[Sequence[Record]], Any]) -> Callable[[ChannelContext, Sequence[Record]], Any]:
    def process(context: ChannelContext, records: Sequence[Record]) -> Any:
        return begin(records)

    return process
