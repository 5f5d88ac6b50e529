"""The sink that hands a worker's pages over to Spark: it confirms a page when Spark has committed it.

Two threads meet here. The worker's loop gives pages; Spark's calls take batches and commit them. Both use the ledger
under one lock and never wait while they hold it.

A page is held until its batch is committed, outside of the worker's memory budget. So no page is taken while the pages
held have `held_bytes`, except the first one of a channel: each channel has something for the next batch.
"""

from __future__ import annotations

import asyncio
import threading
from typing import ClassVar

from ots_tunnel.errors import SinkError
from ots_tunnel.fence import Guard
from ots_tunnel.model import ChannelId, ChannelType, Token
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks import Batch, Confirmation, Deferred, PageCost
from ots_tunnel.spark.stream.channel_pages import GivenPage
from ots_tunnel.spark.stream.ledger import Ledger
from ots_tunnel.spark.stream.offsets import Offset


class HandOver(Deferred):
    """Gives pages to Spark; coroutines are the worker's, the other methods are for Spark's thread.

    Args:
        held_bytes: of records that are held, beside one page of each channel.
    """

    #: Nothing is written anywhere: what is read again is told apart by its marks.
    sends: ClassVar[bool] = False
    every_page: ClassVar[bool] = True
    #: The answer and its records; they stay in memory, but `held_bytes` limits them.
    cost: PageCost = PageCost(2.0, 100)

    def __init__(self, ledger: Ledger, held_bytes: int) -> None:
        self._ledger = ledger
        self._held_bytes = held_bytes
        self._changed = threading.Condition()
        self._loop: asyncio.AbstractEventLoop | None = None
        #: Set whenever pages were committed, and when the query ends.
        self._moved = asyncio.Event()
        self._leaving = False

    def __repr__(self) -> str:
        return f"HandOver({self._ledger})"

    async def open(self) -> None:
        """Nothing has to be reached."""
        self._loop = asyncio.get_running_loop()

    async def begin(self, channel_id: ChannelId, channel_type: ChannelType, start: Token) -> None:
        """See `Channels.begin`."""
        with self._changed:
            self._ledger.begin(channel_id, start)

    async def take(self, batch: Batch, guard: Guard) -> Confirmation:
        """See `Deferred.take`; waits while enough pages are held.

        Raises:
            SinkRejected: the records are not in order, or another client has moved the channel. SinkError: the query
                ends.
        """
        while self._is_full(batch.channel_id):
            if self._leaving:
                raise SinkError("the query ends: the page is read again")
            await self._next_move()
        loop = asyncio.get_running_loop()
        confirmation: Confirmation = loop.create_future()

        def confirm() -> None:
            loop.call_soon_threadsafe(_end, confirmation)

        with self._changed:
            page = GivenPage(batch.page, batch.start, batch.following, batch.records, confirm)
            if self._ledger.take(batch.channel_id, page):
                self._changed.notify_all()
        return confirmation

    def checkpointed(self, channel_id: ChannelId, page: int) -> None:
        """See `Channels.checkpointed`."""
        with self._changed:
            self._ledger.stored(channel_id, page)

    async def end(self, channel_id: ChannelId, *, abandoned: bool) -> None:
        """See `Channels.end`; waits until Spark has committed the channel's pages.

        Raises:
            SinkError: the query ends before.
        """
        while not abandoned and not self._is_committed(channel_id):
            if self._leaving:
                raise SinkError("the query ends: the pages that it has not committed are read again")
            await self._next_move()
        if abandoned:
            with self._changed:
                self._ledger.abandon(channel_id)

    async def close(self) -> None:
        """Nothing is open."""

    def leave(self) -> None:
        """The query ends: nothing waits for Spark any more. For the worker's loop."""
        self._leaving = True
        self._moved.set()

    def next_batch(self, start: Offset, limit_bytes: int) -> Offset:
        """See `Ledger.next_batch`."""
        with self._changed:
            end = self._ledger.next_batch(start, limit_bytes)
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._moved.set)
        return end

    def records_of(self, end: Offset) -> dict[ChannelId, list[Record]] | None:
        """See `Ledger.records_of`."""
        with self._changed:
            return self._ledger.records_of(end)

    def wait(self, seconds: float) -> bool:
        """Wait until there is something for a batch; whether there is."""
        with self._changed:
            return self._changed.wait_for(lambda: self._ledger.has_waiting, seconds)

    @property
    def held(self) -> int:
        """Bytes of the records that are held."""
        with self._changed:
            return self._ledger.size_bytes

    def _is_full(self, channel_id: ChannelId) -> bool:
        with self._changed:
            return self._ledger.size_bytes >= self._held_bytes and not self._ledger.is_empty(channel_id)

    def _is_committed(self, channel_id: ChannelId) -> bool:
        with self._changed:
            return self._ledger.is_empty(channel_id)

    async def _next_move(self) -> None:
        self._moved.clear()
        await self._moved.wait()


def _end(confirmation: Confirmation) -> None:
    if not confirmation.done():  # the pipeline may have cancelled it
        confirmation.set_result(None)
