"""Base of sinks that wrap another sink: every call is passed on until a subclass overrides it."""

from __future__ import annotations

from ots_tunnel.model import ChannelId, ChannelType, Token
from ots_tunnel.sinks import Sink
from ots_tunnel.sinks.tally import Tally


class WrappingSink:
    """Passes every call of `Sink` but `write` to the wrapped sink.

    Args:
        sink: the wrapped sink; opened and closed with this one.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._sink!r})"

    async def open(self) -> None:
        """See `Sink.open`."""
        await self._sink.open()

    async def begin(self, channel_id: ChannelId, channel_type: ChannelType, start: Token) -> None:
        """See `Sink.begin`."""
        await self._sink.begin(channel_id, channel_type, start)

    def checkpointed(self, channel_id: ChannelId, token: Token) -> None:
        """See `Sink.checkpointed`."""
        self._sink.checkpointed(channel_id, token)

    async def end(self, channel_id: ChannelId, *, abandoned: bool) -> None:
        """See `Sink.end`."""
        await self._sink.end(channel_id, abandoned=abandoned)

    async def close(self) -> None:
        """See `Sink.close`."""
        await self._sink.close()

    def tally(self) -> Tally:
        """See `Sink.tally`."""
        return self._sink.tally()
