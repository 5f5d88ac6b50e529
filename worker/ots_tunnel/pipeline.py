"""The way of one channel's records: read ahead, write in order, confirm.

One page is written while the next ones are read. A page is handed on before its back-off begins (tunnel-protocol
6.2, J2), and only stream channels back off. Source: tunnel-protocol 5.8; design section 5, rules 1, 7, 8.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field

from ots_tunnel.budget import ByteBudget, Share
from ots_tunnel.client import Page
from ots_tunnel.end_time import cut_page
from ots_tunnel.errors import OwnershipLost, ResourceGone, TunnelError
from ots_tunnel.failures import first_error
from ots_tunnel.fence import Guard
from ots_tunnel.handed import HandedPage, HandedPages
from ots_tunnel.metrics import WorkerMetrics
from ots_tunnel.model import FINISHED, ChannelType, Token
from ots_tunnel.progress import ChannelProgress
from ots_tunnel.protocol.backoff import TRICKLE, idle_pause, reads_on
from ots_tunnel.rate import RateLimit
from ots_tunnel.sinks import Batch, Confirmation, Sink

#: Pages read ahead of the one being written; the byte budget is the real limit, this one keeps it fair.
READ_AHEAD_PAGES = 2


@dataclass(frozen=True, slots=True)
class Shared:
    """What the channels of a worker share.

    Args:
        slots: channels that read and write at the same time; None means all.
        end_us: Unix microseconds at which stream channels stop; None means never.
    """

    sink: Sink
    metrics: WorkerMetrics
    budget: ByteBudget
    rate: RateLimit
    slots: asyncio.Semaphore | None = None
    end_us: int | None = None

    def slot(self) -> AbstractAsyncContextManager[None]:
        """Held from a read until its page is confirmed."""
        return self.slots if self.slots is not None else nullcontext()


@dataclass(frozen=True, slots=True)
class _Item:
    start: Token
    page: Page
    share: Share
    #: Where the channel goes on once the page is confirmed.
    following: Token
    #: Nothing comes after it before the end time.
    last: bool = False
    #: Its records are in memory no longer for the sink's sake: they are stored, or the sink keeps them elsewhere.
    taken: asyncio.Event = field(default_factory=asyncio.Event)


def next_idle_attempt(attempt: int, page: Page) -> int | None:
    """How long the pause after this page is, as an attempt of the idle schedule; None reads on at once.

    Pauses grow over empty pages, and shrink while there is a trickle, so that they settle near the time between
    two records instead of growing to the cap under load or asking for every record on its own. Where the shortest
    pause brings several, they become shorter yet, and a few empty pages do not end that.
    """
    if reads_on(may_more=page.may_more, rows=page.rows, size_bytes=page.size_bytes):
        return None
    if not page.records:
        return attempt + 1
    trickles = attempt == 0 or attempt < -1  # -1: nothing is known yet
    if trickles and page.rows > 1:
        return TRICKLE
    return attempt if attempt < -1 else max(0, min(attempt - 1, 1))


class Pipeline:
    """Moves one channel's records from `start` on until the channel ends or `stop` is called.

    Args:
        read: one page from a token; its retries are its own business.
        confirmed: told the token of every page once the sink has confirmed it and all before it.
        guard: asked by the sink right before bytes go out.
        sleep, entropy: replaced in tests.
    """

    def __init__(
        self,
        progress: ChannelProgress,
        start: Token,
        *,
        read: Callable[[Token], Awaitable[Page]],
        guard: Guard,
        confirmed: Callable[[Token], None],
        shared: Shared,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        entropy: Callable[[], float] = random.random,
    ) -> None:
        self.progress = progress
        self._start = start
        self._read = read
        self._guard = guard
        self._confirmed = confirmed
        self._shared = shared
        self._sleep = sleep
        self._entropy = entropy
        self._pages: asyncio.Queue[_Item | TunnelError | None] = asyncio.Queue()
        self._room = asyncio.Semaphore(READ_AHEAD_PAGES)
        self._reader: asyncio.Task[None] | None = None
        self._stopping = False
        #: A write was begun and neither confirmed nor known to have ended: it may still take effect within D.
        self.write_in_doubt = False

    def __repr__(self) -> str:
        return f"Pipeline({self.progress.channel_id}, rows={self.progress.rows})"

    def stop(self) -> None:
        """Stop reading and end after the page being written; pages read ahead are dropped unconfirmed."""
        self._stopping = True
        if self._reader is not None:
            self._reader.cancel()
        self._pages.put_nowait(None)

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
                self._reader = tasks.create_task(self._read_until_failure(), name=f"read {channel_id}")
                failing = tasks.create_task(_fail_with(handed), name=f"confirm {channel_id}")
                finished = await self._deliver(handed)
                ended = True
                self._reader.cancel()
                failing.cancel()
        except ExceptionGroup as group:
            raise first_error(group) from group
        finally:
            self._release_pages()
            handed.close()
            if not ended:
                await sink.end(channel_id, abandoned=True)
        return finished

    async def _read_until_failure(self) -> None:
        try:
            await self._read_ahead()
        except (OwnershipLost, ResourceGone):
            raise  # the pages read before it may be somebody else's, too: writing stops at once
        except TunnelError as error:
            self._pages.put_nowait(error)  # behind the pages read before it, which are still written

    async def _read_ahead(self) -> None:
        token = self._start
        attempt = -1
        while token != FINISHED:
            await self._room.acquire()
            async with self._shared.slot():
                item = await self._read_one(token)
                self._pages.put_nowait(item)
                token, last, taken = item.page.next_token, item.last, item.taken
                following = next_idle_attempt(attempt, item.page)
                del item  # the budget counts a page until it is written, so nothing may hold it longer
                if self._shared.slots is not None:
                    await taken.wait()
            if last:
                return
            if self.progress.channel_type is ChannelType.STREAM:
                attempt = -1 if following is None else following
                if following is not None and token != FINISHED:
                    now = asyncio.get_running_loop().time()
                    await self._sleep(idle_pause(following, now, self._entropy()))

    async def _read_one(self, token: Token) -> _Item:
        rate, share = self._shared.rate, None
        charged = await rate.ready()
        try:
            share = await self._shared.budget.reserve()
            with self._shared.metrics.reading(self.progress.channel_type):
                page = await self._read(token)
        except BaseException:
            rate.refund(charged)
            if share is not None:
                share.release()
            raise
        share.resize(page.size_bytes)
        rate.spend(len(page.records), charged)
        self.progress.page_read(page)
        end_us = self._shared.end_us
        if end_us is None or self.progress.channel_type is not ChannelType.STREAM:
            return _Item(token, page, share, page.next_token)
        cut = cut_page(page, end_us)
        return _Item(token, cut.page, share, page.next_token if cut.whole else token, cut.done)

    async def _deliver(self, handed: HandedPages) -> bool:
        """Hand pages to the sink until the channel ends or is stopped; returns when all of them are confirmed."""
        finished = False
        while not finished and (item := await self._pages.get()) is not None:
            if self._stopping:
                if isinstance(item, _Item):
                    item.share.release()
                break
            if isinstance(item, TunnelError):
                raise item
            self._room.release()
            try:
                confirmation = await self._write(item)
            finally:
                item.share.release()
            handed.add(HandedPage.of(item.page, self.progress.channel_type, item.following), confirmation)
            self.write_in_doubt = len(handed) > 0
            item.taken.set()
            finished = item.following == FINISHED
            if item.last and not finished:
                await self._rest(handed)
                return False
            item = None  # it would be held until the next page has come, and the budget does not count it any more
        await self._shared.sink.end(self.progress.channel_id, abandoned=False)
        handed.settle()
        self.write_in_doubt = False
        return finished

    async def _rest(self, handed: HandedPages) -> None:
        """At the end time: have everything confirmed, then hold the channel without reading until told to stop."""
        await self._shared.sink.end(self.progress.channel_id, abandoned=False)
        handed.settle()
        self.write_in_doubt = False
        self.progress.end_reached = True
        while await self._pages.get() is not None:
            pass

    async def _write(self, item: _Item) -> Confirmation | None:
        page, kind = item.page, self.progress.channel_type
        if not page.records:
            return None
        self.write_in_doubt = True
        batch = Batch(self.progress.channel_id, kind, page.records, item.start, item.following, page.records[0])
        with self._shared.metrics.writing(kind):
            return await self._shared.sink.write(batch, self._guard)

    def _page_confirmed(self, page: HandedPage) -> None:
        if page.rows:
            self._shared.metrics.confirmed(self.progress.channel_type, page.actions, page.size_bytes)
        self.progress.page_confirmed(page, page.last)
        self._confirmed(page.next_token)

    def _release_pages(self) -> None:
        while not self._pages.empty():
            item = self._pages.get_nowait()
            if isinstance(item, _Item):
                item.share.release()


async def _fail_with(handed: HandedPages) -> None:
    await handed.failed
