"""Guarded body of a request that aiohttp sends, for sinks that call other servers."""

from __future__ import annotations

from collections.abc import Callable

from aiohttp.abc import AbstractStreamWriter
from aiohttp.payload import Payload


class GuardedBody(Payload):
    """A request's body that calls `before_send` right before the first byte leaves.

    aiohttp holds the headers back until the first bytes of the body, and asks for these only when the connection is
    open. So nothing at all is sent if `before_send` raises.
    """

    _value: bytes
    _autoclose = True

    def __init__(self, body: bytes, before_send: Callable[[], None] | None) -> None:
        super().__init__(body)
        self._size = len(body)
        self._before_send = before_send
        #: What `before_send` raised; aiohttp wraps it in errors of its own.
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
