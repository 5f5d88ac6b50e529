"""One connection of an asyncio client: one request at a time, with its answer as a future.

Theory of operation. A request is executed when its last byte has arrived. A guarded request, one that writes, is
therefore sent so that permission is asked right before its last byte leaves, however long the sending took:

    a small body    fits into the kernel's empty buffer: permission, then head and body in one go
    a larger body   in parts. Behind a part that the kernel does not take whole, the rest waits until it has room, and
                    permission is asked again, because the process may have been suspended meanwhile. The last byte
                    waits until the kernel has sent all bytes before it, so that it cannot wait behind them, in a buffer
                    of this process or of the kernel, from where it would leave without permission.

Giving a request up resets the connection, which discards what the kernel has not sent (`sending_limit`). The loop
closes the socket in its next round; `closed` waits for that, before the error is raised.

An answer can wait, too: when its first bytes have come, nothing more is taken from the kernel until the caller admits
it. The kernel's buffer is small, so the peer keeps the rest.

Over TLS, bytes wait in two buffers, that of the TLS layer and that of the transport below; a `DrainTap` between them
tells when the lower one is empty.

Source: docs/architecture.md rule 4.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from ots_tunnel.errors import CodecError
from ots_tunnel.protocol.http.message import HttpResponse
from ots_tunnel.protocol.http.wire import AnswerReader
from ots_tunnel.transport import BeforeAnswer
from ots_tunnel.transport.sending_limit import discard_unsent, is_sent, lift_limit, limit_sending, pauses

#: Bytes of a body that the kernel takes at once on an idle connection: its first send buffer is larger on any Linux.
SMALL_BODY = 32_768
#: Bytes of one part of a larger body.
PART_BYTES = 65_536


class Connection(asyncio.Protocol):
    """Writes a request and reads its answer; the caller sends the next request after that.

    `is_usable`: whether the connection can carry another request.
    """

    def __init__(self) -> None:
        #: The socket's transport, and the one that takes bytes: its own or that of TLS above it.
        self._lower: asyncio.Transport | None = None
        self._transport: asyncio.Transport | None = None
        self._reader: AnswerReader | None = None
        self._answer: asyncio.Future[HttpResponse] | None = None
        self._room: asyncio.Future[None] | None = None
        #: Ends when an answer that has to be admitted has begun.
        self._begun: asyncio.Future[None] | None = None
        self._all_sent = True
        self._is_limited = False
        self.is_usable = False
        #: Time of its opening or of the last answer, by the loop's clock.
        self.used_at = 0.0

    def __repr__(self) -> str:
        return f"Connection(is_usable={self.is_usable})"

    async def exchange(
        self,
        head: bytes,
        body: bytes,
        ask: Callable[[], None] | None = None,
        admit: BeforeAnswer | None = None,
    ) -> HttpResponse:
        """Send a request and return its answer.

        Args:
            ask: permission to write, which the caller has just got; asked again before the rest of a large body.
            admit: awaited when the answer has begun, before more of it is taken.

        Raises:
            OSError: the connection broke. CodecError: the answer is malformed. Any error of `ask`.
        """
        assert self._transport is not None, "not connected"
        assert self.is_usable, "a request is under way"
        self.is_usable = False
        self._reader = AnswerReader()
        answer: asyncio.Future[HttpResponse] = asyncio.get_running_loop().create_future()
        self._answer = answer
        self._begun = None if admit is None else asyncio.get_running_loop().create_future()
        try:
            if ask is None or len(body) <= SMALL_BODY:
                self._transport.writelines((head, body))
            else:
                self._all_sent = False
                self._transport.write(head)
                await self._send_in_parts(memoryview(body), ask, answer)
            if admit is not None:
                await self._let_in(admit, answer)
            return await answer
        except BaseException:
            answer.cancel()  # no caller awaits it any more
            raise

    def limit_sending(self, seconds: float) -> None:
        """Let nothing of the present request leave after `seconds`, or after this process has ended."""
        assert self._transport is not None, "not connected"
        limit_sending(self._transport.get_extra_info("socket"), seconds)
        self._is_limited = True

    def abort(self) -> None:
        """Close at once; unsent bytes of a request are discarded, also those that the kernel holds."""
        self.is_usable = False
        self._reader = None
        if self._transport is None or self._lower is None:
            return
        if self._answer is not None:
            with contextlib.suppress(OSError):  # it is closed already
                discard_unsent(self._lower.get_extra_info("socket"))
        self._transport.abort()

    async def closed(self) -> None:
        """Wait until the socket of an aborted connection is closed: from then on nothing leaves it."""
        if not self.is_usable:
            await asyncio.sleep(0)

    def secured_by(self, transport: asyncio.Transport) -> None:
        """From now on bytes go through the TLS layer `transport`."""
        assert self._lower is not None, "not connected"
        below = self._lower.get_protocol()
        assert isinstance(below, asyncio.BufferedProtocol), "the protocol of asyncio's TLS layer"
        self._lower.set_protocol(DrainTap(below, self.resume_writing))
        self._transport = transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the loop."""
        assert isinstance(transport, asyncio.Transport)
        transport.set_write_buffer_limits(high=0)  # `resume_writing` means: the buffer is empty
        self._lower = self._transport = transport
        self.is_usable = True
        self.used_at = asyncio.get_running_loop().time()

    def resume_writing(self) -> None:
        """Called by the loop."""
        if self._room is not None and not self._room.done():
            self._room.set_result(None)

    def data_received(self, data: bytes) -> None:
        """Called by the loop."""
        reader = self._reader
        if reader is None:
            self.abort()  # bytes without a request
            return
        try:
            answer = reader.feed(data)
        except CodecError as error:
            self._fail(error)
            return
        if answer is not None:
            self._succeed(answer, reuse=reader.may_reuse)
        elif self._begun is not None and not self._begun.done():
            assert self._transport is not None
            self._transport.pause_reading()
            self._begun.set_result(None)

    def eof_received(self) -> bool:
        """Called by the loop; the connection is closed then."""
        answer = self._reader.end() if self._reader is not None else None
        if answer is not None:
            self._succeed(answer, reuse=False)
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the loop."""
        self.is_usable = False
        self._fail(exc if isinstance(exc, OSError) else ConnectionResetError("closed by the other side"))

    async def _let_in(self, admit: BeforeAnswer, answer: asyncio.Future[HttpResponse]) -> None:
        assert self._begun is not None
        assert self._transport is not None
        await asyncio.wait((self._begun, answer), return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():  # otherwise it broke, or came as a whole with its first bytes
            await admit()
            self._transport.resume_reading()

    async def _send_in_parts(
        self, body: memoryview, ask: Callable[[], None], answer: asyncio.Future[HttpResponse]
    ) -> None:
        assert self._transport is not None
        last = len(body) - 1
        for start in range(0, last, PART_BYTES):
            self._transport.write(body[start : min(start + PART_BYTES, last)])
            if self._unsent():
                await self._until_empty(answer)
                if answer.done():
                    return  # lost, or answered early
                ask()
        await self._until_sent(answer)
        if answer.done():
            return
        ask()
        self._transport.write(body[last:])
        self._all_sent = True

    def _unsent(self) -> int:
        """Bytes that wait in this process."""
        assert self._transport is not None
        assert self._lower is not None
        above = self._transport.get_write_buffer_size() if self._transport is not self._lower else 0
        return above + self._lower.get_write_buffer_size()

    async def _until_empty(self, answer: asyncio.Future[HttpResponse]) -> None:
        while self._unsent() and not answer.done():
            self._room = asyncio.get_running_loop().create_future()
            await asyncio.wait((self._room, answer), return_when=asyncio.FIRST_COMPLETED)

    async def _until_sent(self, answer: asyncio.Future[HttpResponse]) -> None:
        assert self._lower is not None
        for pause in pauses():
            if answer.done() or is_sent(self._lower.get_extra_info("socket")):
                return
            await asyncio.sleep(pause)

    def _succeed(self, answer: HttpResponse, *, reuse: bool) -> None:
        # An answer before the whole request is sent leaves the connection in an unknown state.
        if self._all_sent and not self._unsent():
            self._lift_limit()
            future, self._answer = self._answer, None
        else:
            reuse, future = False, self._answer
        self._reader = None
        if reuse:
            self.is_usable = True
            self.used_at = asyncio.get_running_loop().time()
        else:
            self.abort()
        self._answer = None
        if future is not None and not future.done():
            future.set_result(answer)

    def _fail(self, error: Exception) -> None:
        future = self._answer
        self.abort()
        self._answer = None
        if future is not None and not future.done():
            future.set_exception(error)

    def _lift_limit(self) -> None:
        if self._is_limited and self._lower is not None:
            lift_limit(self._lower.get_extra_info("socket"))
            self._is_limited = False


class DrainTap(asyncio.BufferedProtocol):
    """Passes everything on to the protocol of a TLS layer, and reports when the transport below it is empty.

    asyncio does not report that to the protocol above TLS.

    Args:
        inner: the TLS layer's.
        on_empty: called when no byte waits in the transport below.
    """

    def __init__(self, inner: asyncio.BufferedProtocol, on_empty: Callable[[], None]) -> None:
        self._inner = inner
        self._on_empty = on_empty
        # bound once: these are called for every read
        self.get_buffer = inner.get_buffer  # type: ignore[method-assign]  # no call in between
        self.buffer_updated = inner.buffer_updated  # type: ignore[method-assign]  # no call in between

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the loop."""
        self._inner.connection_lost(exc)

    def eof_received(self) -> bool | None:
        """Called by the loop."""
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        """Called by the loop."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """Called by the loop."""
        self._inner.resume_writing()
        self._on_empty()
