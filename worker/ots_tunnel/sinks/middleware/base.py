"""What middleware is, and how a sink stands behind it.

Theory of operation. Middleware decides what of a batch is handed over, and when; it never sees a confirmation. Who
stands behind it stays of its kind:

    behind(middleware, immediate sink)    is immediate: `write` returns when every portion is stored
    behind(middleware, deferred sink)     is deferred: its confirmation ends when those of all portions have ended

A deferred sink is told of batches without a portion, too: a replay may begin with one (`Deferred.pass_over`).

So no middleware can make a confirmation of its own, which would let a checkpoint pass records that nobody has stored
(docs/architecture.md rule 1). What stores records itself, such as dead letters, is a deferred sink around another one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Coroutine
from contextlib import aclosing
from typing import Generic, TypeVar, overload

from ots_tunnel.fence import Guard
from ots_tunnel.model import ChannelId, ChannelType, Token
from ots_tunnel.sinks import (
    Batch,
    Channels,
    Confirmation,
    Contact,
    Deferred,
    Immediate,
    PageCost,
    Sink,
    all_confirmed,
    confirmed,
)
from ots_tunnel.sinks.tally import Tally

S = TypeVar("S", bound=Channels)


class Wrapping(Channels, Generic[S]):
    """Passes the calls of `Channels` to the wrapped sink.

    Args:
        sink: the wrapped sink; opened and closed with this one.
    """

    def __init__(self, sink: S) -> None:
        self._sink = sink
        self.cost = sink.cost

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._sink!r})"

    async def open(self) -> None:
        """See `Channels.open`."""
        await self._sink.open()

    async def begin(self, channel_id: ChannelId, channel_type: ChannelType, start: Token) -> None:
        """See `Channels.begin`."""
        await self._sink.begin(channel_id, channel_type, start)

    def turn(self, channel_id: ChannelId) -> Coroutine[None, None, None] | None:
        """See `Channels.turn`."""
        return self._sink.turn(channel_id)

    def checkpointed(self, channel_id: ChannelId, page: int) -> None:
        """See `Channels.checkpointed`."""
        self._sink.checkpointed(channel_id, page)

    async def end(self, channel_id: ChannelId, *, abandoned: bool) -> None:
        """See `Channels.end`."""
        await self._sink.end(channel_id, abandoned=abandoned)

    async def close(self) -> None:
        """See `Channels.close`."""
        await self._sink.close()

    def tally(self) -> Tally:
        """See `Channels.tally`."""
        return self._sink.tally()

    def contact(self) -> Contact | None:
        """See `Channels.contact`."""
        return self._sink.contact()


class AtOnce(Wrapping[Immediate], Deferred):
    """An immediate sink in the place of a deferred one: its confirmations have ended when it returns them."""

    async def take(self, batch: Batch, guard: Guard) -> Confirmation:
        """See `Deferred.take`."""
        await self._sink.write(batch, guard)
        return confirmed()


def deferred(sink: Sink) -> Deferred:
    """The sink as a deferred one."""
    return sink if isinstance(sink, Deferred) else AtOnce(sink)


class Middleware(ABC):
    """Decides what of a batch is handed over, and when."""

    #: Memory that a page takes beside the sink's own.
    cost: PageCost = PageCost(0, 0)

    async def open(self) -> None:
        """Called before the sink is opened."""
        return None

    def turn(self, channel_id: ChannelId) -> Coroutine[None, None, None] | None:
        """See `Channels.turn`."""
        return None

    def ended(self, channel_id: ChannelId) -> None:
        """No batch of a channel follows."""
        return None

    @abstractmethod
    def portions(self, batch: Batch, guard: Guard) -> AsyncGenerator[Batch]:
        """The parts of a batch that the sink has to store, in commit order.

        The next one is asked for when the sink has taken the one before. The records that no portion holds are not
        stored, on purpose.

        Raises:
            SinkRejected: a record cannot be stored in the way that the document asks for.
        """

    def tally(self) -> Tally:
        """Counts so far."""
        return Tally()


class _Behind(Wrapping[S]):
    def __init__(self, middleware: Middleware, sink: S) -> None:
        super().__init__(sink)
        self._middleware = middleware
        self.cost = sink.cost + middleware.cost

    def __repr__(self) -> str:
        return f"{self._middleware!r} -> {self._sink!r}"

    async def open(self) -> None:
        await self._middleware.open()
        await super().open()

    def turn(self, channel_id: ChannelId) -> Coroutine[None, None, None] | None:
        found = (self._middleware.turn(channel_id), super().turn(channel_id))
        waits = [each for each in found if each is not None]
        return _one_after_the_other(waits) if len(waits) > 1 else waits[0] if waits else None

    async def end(self, channel_id: ChannelId, *, abandoned: bool) -> None:
        self._middleware.ended(channel_id)
        await super().end(channel_id, abandoned=abandoned)

    def tally(self) -> Tally:
        return super().tally() + self._middleware.tally()


async def _one_after_the_other(waits: list[Coroutine[None, None, None]]) -> None:
    for each in waits:
        await each


class _ImmediateBehind(_Behind[Immediate], Immediate):
    async def write(self, batch: Batch, guard: Guard) -> None:
        async with aclosing(self._middleware.portions(batch, guard)) as portions:
            async for portion in portions:
                await self._sink.write(portion, guard)


class _DeferredBehind(_Behind[Deferred], Deferred):
    async def take(self, batch: Batch, guard: Guard) -> Confirmation:
        async with aclosing(self._middleware.portions(batch, guard)) as portions:
            taken = [await self._sink.take(portion, guard) async for portion in portions]
        if not taken:
            await self._sink.pass_over(batch, guard)
        return all_confirmed(taken)

    async def pass_over(self, batch: Batch, guard: Guard) -> None:
        await self._sink.pass_over(batch, guard)


@overload
def behind(middleware: Middleware, sink: Immediate) -> Immediate: ...
@overload
def behind(middleware: Middleware, sink: Deferred) -> Deferred: ...
def behind(middleware: Middleware, sink: Sink) -> Sink:
    """A sink that stores what the middleware leaves; of the same kind as the sink behind it."""
    if isinstance(sink, Deferred):
        return _DeferredBehind(middleware, sink)
    return _ImmediateBehind(middleware, sink)
