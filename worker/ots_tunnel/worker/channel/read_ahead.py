"""Reads one channel's pages ahead of the one being written, within the limits that all channels share.

A page is passed on before its back-off begins (docs/protocol.md 6.2, J2), and only stream channels back off. Source:
docs/protocol.md 5.8; docs/architecture.md rules 7 and 8.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ots_tunnel.client.page import Page
from ots_tunnel.errors import OwnershipLost, ResourceGone, TunnelError
from ots_tunnel.fence import boottime
from ots_tunnel.model import FINISHED, ChannelId, ChannelType, Token
from ots_tunnel.protocol.idle_read import IdleReads
from ots_tunnel.worker.context import ReadsPages, WorkerContext
from ots_tunnel.worker.gaps.watch import GapWatch
from ots_tunnel.worker.pages.budget import PATIENCE, Reservation
from ots_tunnel.worker.pages.end_time import cut_page
from ots_tunnel.worker.pages.read_page import ReadPage

#: Pages read ahead of the one being written; the byte budget is the real limit, this one keeps it fair.
READ_AHEAD_PAGES = 2


@dataclass(frozen=True, slots=True)
class ChannelStart:
    """A channel, and the token at which it is opened."""

    channel_id: ChannelId
    channel_type: ChannelType
    token: Token
    gaps: GapWatch | None = None
    """Asked about every page; None looks for no gaps."""


class ReadAhead:
    """Reads the pages of a channel until it ends, `run` is cancelled, or a read fails.

    Args:
        cursor: reads one page.
        on_read: called with every page when it has come.
        sleep, entropy: replaced in tests.
    """

    def __init__(
        self,
        start: ChannelStart,
        cursor: ReadsPages,
        context: WorkerContext,
        *,
        on_read: Callable[[ReadPage], None],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        entropy: Callable[[], float] = random.random,
    ) -> None:
        self.start = start
        self._cursor = cursor
        self._context = context
        self._on_read = on_read
        self._sleep = sleep
        self._entropy = entropy
        # of the last answer
        self._service_time: float | None = None
        self._pages: asyncio.Queue[ReadPage | TunnelError | None] = asyncio.Queue()
        self._room = asyncio.Semaphore(READ_AHEAD_PAGES)

    def __repr__(self) -> str:
        return f"ReadAhead({self.start.channel_id}, {self._pages.qsize()} pages)"

    async def run(self) -> None:
        """Read; a failure is queued behind the pages read before it, which are still written.

        Raises:
            OwnershipLost, ResourceGone: another client may own the channel: writing has to stop at once.
        """
        try:
            await self._read_until_end()
        except (OwnershipLost, ResourceGone):
            raise
        except TunnelError as error:
            self._pages.put_nowait(error)

    async def next(self) -> ReadPage | None:
        """The next page, which the caller has to release; None after `stop`.

        Raises:
            TransportError, ServiceError, CodecError: reading failed behind the last page.
            PossibleGap: changes may be missing behind the last page.
        """
        page = await self._pages.get()
        if isinstance(page, TunnelError):
            raise page
        if page is not None:
            self._room.release()
        return page

    def stop(self) -> None:
        """Release the queued pages, and wake the caller of `next`.

        `run` does not end by this: the caller cancels its task.
        """
        while not self._pages.empty():
            page = self._pages.get_nowait()
            if isinstance(page, ReadPage):
                page.release()
        self._pages.put_nowait(None)

    async def _read_until_end(self) -> None:
        token = self.start.token
        idle = IdleReads()
        while token != FINISHED:
            await self._room.acquire()
            async with self._context.slot():
                page = await self._read(token)
                self._on_read(page)
                self._pages.put_nowait(page)
                token = page.answer.next_token
                following = idle.after(rows=page.rows, size_bytes=page.answer.size_bytes, may_more=page.answer.may_more)
                if self._context.slots is not None:
                    await page.released.wait()
            if page.is_last:
                return
            if self.start.channel_type is ChannelType.STREAM:
                idle = following or IdleReads()
                if following is not None and token != FINISHED:
                    now = asyncio.get_running_loop().time()
                    await self._sleep(following.pause(now, self._entropy()))

    async def _read(self, token: Token) -> ReadPage:
        rate, metrics, kind = self._context.rate, self._context.metrics, self.start.channel_type
        charged_rows = await rate.ready()
        try:
            with await self._context.budget.reserve() as reservation:
                asked_at, asked = boottime(), self._context.clock.running()
                with metrics.reading(kind), _lent_while_silent(reservation):
                    page = await self._cursor.read(token, reservation.regain)
                self._context.clock.heard(page.service_time, asked=asked)
                await reservation.regain()  # a page that came as a whole
                if self.start.gaps is not None:
                    await self.start.gaps.check(page, self._context.end_us)
                metrics.decoded(kind, page.decode_seconds)
                read = self._hold(token, page, reservation, asked_at)
        except BaseException:
            rate.refund(charged_rows)
            raise
        rate.spend(len(page.records), charged_rows)
        return read

    def _hold(self, token: Token, page: Page, reservation: Reservation, asked_at: float) -> ReadPage:
        following, position, is_last = page.next_token, None, False
        if self.start.channel_type is ChannelType.STREAM:
            if self._context.end_us is not None:
                cut = cut_page(page, self._context.end_us, self._service_time)
                self._service_time = page.service_time
                page, is_last = cut.page, cut.done
                following = following if cut.whole else token
            if page.records:
                position = page.records[-1].sequence
        share = reservation.keep(self._context.sink.cost.of(page.size_bytes, page.rows))
        return ReadPage(token, following, page, share, position, is_last, asked_at)


@contextmanager
def _lent_while_silent(reservation: Reservation) -> Iterator[None]:
    """Lend the room of a read whose answer has not begun after `PATIENCE`."""
    lending = asyncio.get_running_loop().call_later(PATIENCE, reservation.lend)
    try:
        yield
    finally:
        lending.cancel()
