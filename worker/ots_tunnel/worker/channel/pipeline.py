"""The way of one channel's records: read ahead, write in order, confirm in order.

Theory of operation. A pipeline has two tasks beside its own:

    ReadAhead.run          reads pages and puts them into a queue, within the limits of `read_ahead`
    Pipeline               takes one page after the other and gives its records to the sink
    UnconfirmedPages.run   confirms pages whose confirmation comes later than the write

A page passes them as one `ReadPage`. It holds its records and their share of the byte budget until the sink has taken
them: either they are stored when `Immediate.write` returns, or `Deferred.take` has put them elsewhere.
Its token and its figures then wait until the page and all before it are confirmed. Only then is the token a checkpoint
(docs/architecture.md rule 1).

A pipeline ends in one of these ways, the first that applies:

1. A write, a confirmation or a read failed: its error is raised. Pages that were read before a failed read are
   written first, except when the error means that another client may own the channel. Those of them that the sink
   still holds are dropped unconfirmed. A read that was refused because its records are trimmed is no such error
   where gaps are looked for: TRIMMED, and the channel may go on behind them.
2. `stop` was called: the page being written is finished, pages behind it are dropped unconfirmed. So is a page whose
   turn has not come (`Channels.turn`): nothing of it has left.
3. The page with the token `finished` was written: FINISHED.
4. The page with the end time was written (`end_time.cut_page`): END_TIME.

In the cases 2 to 4, and with TRIMMED, the sink stores the records that it holds (`Channels.end`), and every page that
it took is confirmed when `run` returns. In case 1, and when `run` is cancelled, the sink drops them, and the write that
it began is in doubt for D (see `fence`).

Example: pages A, B and C are queued, B is empty. The sink returns a confirmation for A, which it combines with C. B is
stored at once but waits for A. When the sink has written A and C, A, B and C are confirmed in this order.

Source: docs/protocol.md 5.8; docs/architecture.md rules 1 and 8.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Callable

from ots_tunnel.errors import TunnelExpired, first_error
from ots_tunnel.fence import ChannelFence
from ots_tunnel.model import FINISHED
from ots_tunnel.sinks import Batch, Confirmation, confirmed
from ots_tunnel.sinks.middleware.base import deferred
from ots_tunnel.worker.channel.read_ahead import ReadAhead
from ots_tunnel.worker.context import WorkerContext
from ots_tunnel.worker.pages.read_page import ReadPage
from ots_tunnel.worker.progress.unconfirmed import UnconfirmedPages


class PipelineEnd(enum.Enum):
    """How a pipeline ended without an error."""

    FINISHED = "read and confirmed to the channel's end"
    END_TIME = "read and confirmed up to the end time"
    STOPPED = "stopped"
    TRIMMED = "read and confirmed up to records that the service has dropped"


class Pipeline:
    """Moves the records of one channel until it ends or `stop` is called.

    Args:
        ahead: reads the channel's pages.
        fence: asked by the sink right before bytes go out; learns which writes are in doubt.
        on_confirmed: called with every page once the sink has confirmed it and all before it.
        on_ending: called before the sink stores what it holds: what it waits for should come soon.
    """

    def __init__(
        self,
        ahead: ReadAhead,
        context: WorkerContext,
        fence: ChannelFence,
        on_confirmed: Callable[[ReadPage], None],
        on_ending: Callable[[], None] = lambda: None,
    ) -> None:
        self._ahead = ahead
        self._start = ahead.start
        self._sink = deferred(context.sink)
        self._pages = 0
        self._metrics = context.metrics
        self._fence = fence
        self._unconfirmed = UnconfirmedPages(on_confirmed)
        self._on_ending = on_ending
        self._reading: asyncio.Task[None] | None = None
        #: The wait of the next page for its turn.
        self._turn: asyncio.Future[None] | None = None
        self._stopping = False
        #: The refusal of the read with which it has ended as TRIMMED.
        self.refusal: TunnelExpired | None = None

    def __repr__(self) -> str:
        return f"Pipeline({self._ahead}, {self._unconfirmed})"

    def stop(self) -> None:
        """Stop reading and end after the page being written; pages read ahead are dropped unconfirmed."""
        self._stopping = True
        if self._reading is not None:
            self._reading.cancel()
        if self._turn is not None:
            self._turn.cancel()
        self._ahead.stop()

    async def run(self) -> PipelineEnd:
        """Move records until the pipeline ends.

        Raises:
            SinkRejected, OwnershipLost: from the sink. TransportError, ServiceError, CodecError: from reading.
        """
        start = self._start
        if start.token == FINISHED:
            return PipelineEnd.FINISHED
        await self._sink.begin(start.channel_id, start.channel_type, start.token)
        ended_in_order = False
        try:
            async with asyncio.TaskGroup() as tasks:
                self._reading = tasks.create_task(self._ahead.run(), name=f"read {start.channel_id}")
                confirming = tasks.create_task(self._unconfirmed.run(), name=f"confirm {start.channel_id}")
                end = await self._write_pages()
                self._on_ending()
                await self._sink.end(start.channel_id, abandoned=False)
                await self._unconfirmed.settle()
                self._fence.confirm_writes()
                ended_in_order = True
                self._reading.cancel()
                confirming.cancel()
            return end
        except ExceptionGroup as group:
            raise first_error(group) from group
        finally:
            self._ahead.stop()
            self._unconfirmed.close()
            if not ended_in_order:
                await self._sink.end(start.channel_id, abandoned=True)

    async def _write_pages(self) -> PipelineEnd:
        while not self._stopping and (page := await self._next()) is not None:
            try:
                if page.answer.records and not await self._has_turn():
                    break
                confirmation = await self._write(page)
            finally:
                page.release()
            self._unconfirmed.add(page, confirmation)
            if not self._unconfirmed:
                self._fence.confirm_writes()
            if page.following == FINISHED:
                return PipelineEnd.FINISHED
            if page.is_last:
                return PipelineEnd.END_TIME
        return PipelineEnd.STOPPED if self.refusal is None else PipelineEnd.TRIMMED

    async def _has_turn(self) -> bool:
        """Wait until the sink may begin with a page; False where the order to stop comes first."""
        wait = self._sink.turn(self._start.channel_id)
        if wait is None:
            return True
        self._turn = turn = asyncio.ensure_future(wait)
        try:
            await asyncio.wait((turn,))
        finally:
            turn.cancel()
        if turn.cancelled():
            return False
        turn.result()
        return True

    async def _next(self) -> ReadPage | None:
        try:
            return await self._ahead.next()
        except TunnelExpired as error:
            if self._start.gaps is None or not error.is_trimmed:
                raise
            self.refusal = error
            return None

    async def _write(self, page: ReadPage) -> Confirmation:
        self._pages += 1
        page.number = self._pages
        records = page.answer.records
        if not records and not self._sink.every_page:
            return confirmed()
        kind, head = self._start.channel_type, records[0] if records else None
        batch = Batch(self._start.channel_id, kind, records, page.start, page.following, head, page=page.number)
        if self._sink.sends:
            self._fence.begin_write()
        with self._metrics.writing(kind):
            return await self._sink.take(batch, self._fence)
