"""Reads one channel's pages ahead of the one being written, within the limits that all channels share.

A page is handed on before its back-off begins (docs/protocol.md 6.2, J2), and only stream channels back off. Source:
docs/protocol.md 5.8; docs/architecture.md rules 7, 8.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from ots_tunnel.client.tunnel import Page
from ots_tunnel.errors import OwnershipLost, ResourceGone, TunnelError
from ots_tunnel.model import FINISHED, ChannelType, Token
from ots_tunnel.protocol.idle_read import IdleReads
from ots_tunnel.worker.budget import Share
from ots_tunnel.worker.context import Shared
from ots_tunnel.worker.end_time import cut_page
from ots_tunnel.worker.progress import ChannelProgress

#: Pages read ahead of the one being written; the byte budget is the real limit, this one keeps it fair.
READ_AHEAD_PAGES = 2


@dataclass(frozen=True, slots=True)
class ReadPage:
    """A page that is read and not written yet."""

    start: Token
    page: Page
    share: Share
    #: Where the channel goes on once the page is confirmed.
    following: Token
    #: Nothing comes after it before the end time.
    last: bool = False
    #: Its records are in memory no longer for the sink's sake: they are stored, or the sink keeps them elsewhere.
    taken: asyncio.Event = field(default_factory=asyncio.Event)


class ReadAhead:
    """Reads pages from `start` on until the channel ends, `run` is cancelled, or a read fails.

    Args:
        read: one page from a token; its retries are its own business.
        sleep, entropy: replaced in tests.
    """

    def __init__(
        self,
        progress: ChannelProgress,
        start: Token,
        *,
        read: Callable[[Token], Awaitable[Page]],
        shared: Shared,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        entropy: Callable[[], float] = random.random,
    ) -> None:
        self.progress = progress
        self._start = start
        self._read = read
        self._shared = shared
        self._sleep = sleep
        self._entropy = entropy
        self._pages: asyncio.Queue[ReadPage | TunnelError | None] = asyncio.Queue()
        self._room = asyncio.Semaphore(READ_AHEAD_PAGES)

    def __repr__(self) -> str:
        return f"ReadAhead({self.progress.channel_id}, {self._pages.qsize()} pages)"

    async def run(self) -> None:
        """Read; a failure is handed on behind the pages read before it, which are still written.

        Raises:
            OwnershipLost, ResourceGone: the pages may be somebody else's, too: writing stops at once.
        """
        try:
            await self._read_ahead()
        except (OwnershipLost, ResourceGone):
            raise
        except TunnelError as error:
            self._pages.put_nowait(error)

    async def next(self) -> ReadPage | TunnelError | None:
        """The next page, or what ended the reading; None after `stop`."""
        return await self._pages.get()

    def make_room(self) -> None:
        """One page is being written: another one may be read ahead."""
        self._room.release()

    def stop(self) -> None:
        """Wake whoever waits for a page; reading itself ends with the task of `run`."""
        self._pages.put_nowait(None)

    def drop(self) -> None:
        """Give back what the pages that nobody asked for take of the budget."""
        while not self._pages.empty():
            page = self._pages.get_nowait()
            if isinstance(page, ReadPage):
                page.share.release()

    async def _read_ahead(self) -> None:
        token = self._start
        idle = IdleReads()
        while token != FINISHED:
            await self._room.acquire()
            async with self._shared.slot():
                item = await self._read_one(token)
                self._pages.put_nowait(item)
                token, last, taken = item.page.next_token, item.last, item.taken
                following = idle.after(
                    rows=item.page.rows, size_bytes=item.page.size_bytes, may_more=item.page.may_more
                )
                del item  # the budget counts a page until it is written, so nothing may hold it longer
                if self._shared.slots is not None:
                    await taken.wait()
            if last:
                return
            if self.progress.channel_type is ChannelType.STREAM:
                idle = following or IdleReads()
                if following is not None and token != FINISHED:
                    now = asyncio.get_running_loop().time()
                    await self._sleep(following.pause(now, self._entropy()))

    async def _read_one(self, token: Token) -> ReadPage:
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
            return ReadPage(token, page, share, page.next_token)
        cut = cut_page(page, end_us)
        return ReadPage(token, cut.page, share, page.next_token if cut.whole else token, cut.done)
