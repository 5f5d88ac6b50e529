"""The body of a request that aiohttp sends, guarded: for sinks that call servers of others."""

from __future__ import annotations

from collections.abc import Callable

from aiohttp.abc import AbstractStreamWriter
from aiohttp.payload import Payload


class GuardedBody(Payload):
    """A request's body that asks `before_send` in the moment the first byte would leave.

    aiohttp holds the headers back until the body's first bytes, and asks for them only when a connection is
    there, so a refusal here means that nothing at all was sent.
    """

    _value: bytes
    _autoclose = True

    def __init__(self, body: bytes, before_send: Callable[[], None] | None) -> None:
        super().__init__(body)
        self._size = len(body)
        self._before_send = before_send
        #: What `before_send` raised; aiohttp wraps it beyond recognition.
        self.refusal: BaseException | None = None
        #: Whether bytes may have left; if not, the request was certainly not executed.
        self.started = False

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """The body as text; part of aiohttp's interface."""
        return self._value.decode(encoding, errors)

    async def as_bytes(self, encoding: str = "utf-8", errors: str = "strict") -> bytes:
        """The body; part of aiohttp's interface."""
        return self._value

    async def write(self, writer: AbstractStreamWriter) -> None:
        """Ask, then hand the bytes to the connection."""
        await self.write_with_length(writer, None)

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        """Ask, then hand the bytes to the connection."""
        if self._before_send is not None:
            try:
                self._before_send()
            except BaseException as refusal:
                self.refusal = refusal
                raise
        self.started = True
        await writer.write(self._value)
