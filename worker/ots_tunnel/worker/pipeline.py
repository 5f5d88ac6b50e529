"""The way of one channel's records: read ahead, write in order, confirm.

One page is written while the next ones are read: see `read_ahead`. Source: docs/architecture.md rule 1.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

from ots_tunnel.client.tunnel import Page
from ots_tunnel.errors import TunnelError, first_error
from ots_tunnel.fence import ChannelFence
from ots_tunnel.model import FINISHED, Token
from ots_tunnel.sinks import Batch, Confirmation
from ots_tunnel.worker.context import Shared
from ots_tunnel.worker.progress import ChannelProgress
from ots_tunnel.worker.read_ahead import ReadAhead, ReadPage
from ots_tunnel.worker.unconfirmed import HandedPage, HandedPages


class Pipeline:
    """Moves one channel's records from `start` on until the channel ends or `stop` is called.

    Args:
        read: one page from a token; its retries are its own business.
        confirmed: told the token of every page once the sink has confirmed it and all before it.
        fence: asked by the sink right before bytes go out; knows which writes are in doubt.
        sleep, entropy: replaced in tests.
    """

    def __init__(
        self,
        progress: ChannelProgress,
        start: Token,
        *,
        read: Callable[[Token], Awaitable[Page]],
        fence: ChannelFence,
        confirmed: Callable[[Token], None],
        shared: Shared,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        entropy: Callable[[], float] = random.random,
    ) -> None:
        self.progress = progress
        self._start = start
        self._fence = fence
        self._confirmed = confirmed
        self._shared = shared
        self._ahead = ReadAhead(progress, start, read=read, shared=shared, sleep=sleep, entropy=entropy)
        self._reader: asyncio.Task[None] | None = None
        self._stopping = False

    def __repr__(self) -> str:
        return f"Pipeline({self.progress.channel_id}, rows={self.progress.rows})"

    def stop(self) -> None:
        """Stop reading and end after the page being written; pages read ahead are dropped unconfirmed."""
        self._stopping = True
        if self._reader is not None:
            self._reader.cancel()
        self._ahead.stop()

    async def run(self) -> bool:
        """Move records; True when the channel was read and confirmed to its end, False when stopped.

        Raises:
            SinkRejected, OwnershipLost: from the sink. TransportError, ServiceError, CodecError: from reading.
        """
        if self._start == FINISHED:
            return True
        sink, channel_id = self._shared.sink, self.progress.channel_id
        await sink.begin(channel_id, self.progress.channel_type, self._start)
        handed, finished, ended = HandedPages(self._page_confirmed), False, False
        try:
            async with asyncio.TaskGroup() as tasks:
                self._reader = tasks.create_task(self._ahead.run(), name=f"read {channel_id}")
                failing = tasks.create_task(_fail_with(handed), name=f"confirm {channel_id}")
                finished = await self._deliver(handed)
                ended = True
                self._reader.cancel()
                failing.cancel()
        except ExceptionGroup as group:
            raise first_error(group) from group
        finally:
            self._ahead.drop()
            handed.close()
            if not ended:
                await sink.end(channel_id, abandoned=True)
        return finished

    async def _deliver(self, handed: HandedPages) -> bool:
        """Hand pages to the sink until the channel ends or is stopped; returns when all of them are confirmed."""
        finished = False
        while not finished and (item := await self._ahead.next()) is not None:
            if self._stopping:
                if isinstance(item, ReadPage):
                    item.share.release()
                break
            if isinstance(item, TunnelError):
                raise item
            self._ahead.make_room()
            try:
                confirmation = await self._write(item)
            finally:
                item.share.release()
            handed.add(HandedPage.of(item.page, self.progress.channel_type, item.following), confirmation)
            if not len(handed):
                self._fence.confirm_writes()
            item.taken.set()
            finished = item.following == FINISHED
            if item.last and not finished:
                await self._rest(handed)
                return False
            item = None  # it would be held until the next page has come, and the budget does not count it any more
        await self._shared.sink.end(self.progress.channel_id, abandoned=False)
        handed.settle()
        self._fence.confirm_writes()
        return finished

    async def _rest(self, handed: HandedPages) -> None:
        """At the end time: have everything confirmed, then hold the channel without reading until told to stop."""
        await self._shared.sink.end(self.progress.channel_id, abandoned=False)
        handed.settle()
        self._fence.confirm_writes()
        self.progress.end_reached = True
        while await self._ahead.next() is not None:
            pass

    async def _write(self, item: ReadPage) -> Confirmation | None:
        page, kind = item.page, self.progress.channel_type
        if not page.records:
            return None
        self._fence.begin_write()
        batch = Batch(self.progress.channel_id, kind, page.records, item.start, item.following, page.records[0])
        with self._shared.metrics.writing(kind):
            return await self._shared.sink.write(batch, self._fence)

    def _page_confirmed(self, page: HandedPage) -> None:
        if page.rows:
            self._shared.metrics.confirmed(self.progress.channel_type, page.actions, page.size_bytes)
        self.progress.page_confirmed(page, page.last)
        self._confirmed(page.next_token)


async def _fail_with(handed: HandedPages) -> None:
    await handed.failed
