"""Guarded body of a request that aiohttp sends, for sinks that call other servers.

It is sent as `connection` describes: permission is asked before the first byte and right before the last one. Over TLS
up to 64 KiB may wait below aiohttp, where they cannot be seen (docs/guarantees.md).
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Any

from aiohttp.abc import AbstractStreamWriter
from aiohttp.payload import Payload

from ots_tunnel.transport.outlet import PART_BYTES, SMALL_BODY
from ots_tunnel.transport.sending_limit import discard_unsent, is_sent, lift_limit, limit_sending, pauses

#: Bytes of one part of a larger body over TLS, which may all wait below aiohttp.
SECURE_PART_BYTES = 65_536


class GuardedBody(Payload):
    """A request's body that calls `before_send` right before its first and its last byte leave.

    aiohttp holds the headers back until the first bytes of the body, and asks for these only when the connection is
    open. So nothing at all is sent if `before_send` raises at once, and the request is not executed if it raises later.

    Args:
        seconds: from now on, after which nothing of the body may leave any more.
    """

    _value: bytes
    _autoclose = True

    def __init__(self, body: bytes, before_send: Callable[[], None] | None, seconds: float) -> None:
        super().__init__(body)
        self._size = len(body)
        self._before_send = before_send
        self._deadline = time.monotonic() + seconds
        self._transport: asyncio.Transport | None = None
        #: What `before_send` raised; aiohttp wraps it in errors of its own.
        self.refusal: BaseException | None = None
        #: Whether bytes may have left; if not, the request was certainly not executed.
        self.started = False
        #: Whether its last byte was handed to the connection; an answer that comes earlier is not about all of it.
        self.is_complete = False

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
        transport: Any = getattr(writer, "transport", None)
        self._ask()
        if transport is not None:
            self._transport = transport
            self._limit(transport)
        body = self._value
        if self._before_send is None or transport is None or len(body) <= SMALL_BODY:
            await writer.write(body)
            self.is_complete = True
            return
        is_secure = transport.get_extra_info("sslcontext") is not None
        transport.set_write_buffer_limits(high=1 if is_secure else 0, low=0)  # `drain` waits until nothing waits here
        view, last = memoryview(body), len(body) - 1
        part = SECURE_PART_BYTES if is_secure else PART_BYTES
        for start in range(0, last, part):
            await writer.write(view[start : min(start + part, last)])
            await writer.drain()
        await _until_sent(transport)
        self._ask()
        self._limit(transport)
        await writer.write(view[last:])
        self.is_complete = True

    def answered(self) -> None:
        """The request is answered: its connection may be used again."""
        if self._transport is not None and not self._transport.is_closing():
            lift_limit(self._transport.get_extra_info("socket"))

    async def give_up(self) -> None:
        """Reset the connection: what was not sent does not leave any more."""
        if self._transport is not None:
            with contextlib.suppress(OSError):  # it is closed already
                discard_unsent(self._transport.get_extra_info("socket"))
            self._transport.abort()
            await asyncio.sleep(0)  # the loop closes the socket in its next round

    def _ask(self) -> None:
        if self._before_send is not None:
            try:
                self._before_send()
            except BaseException as refusal:
                self.refusal = refusal
                raise
        self.started = True

    def _limit(self, transport: asyncio.Transport) -> None:
        limit_sending(transport.get_extra_info("socket"), self._deadline - time.monotonic())


async def _until_sent(transport: asyncio.Transport) -> None:
    for pause in pauses():
        if transport.is_closing() or is_sent(transport.get_extra_info("socket")):
            return
        await asyncio.sleep(pause)
