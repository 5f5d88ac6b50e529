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

An answer can wait, too: when its first bytes have come, and the caller has no room for it (`AT_ONCE` says that it has),
nothing more is taken from the kernel until the caller admits it. The kernel's buffer is small; the peer keeps the rest.

Over TLS, bytes wait in two buffers, that of the TLS layer and that of the transport below; a `DrainTap` between them
tells when the lower one is empty.

Source: docs/architecture.md rule 4.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from typing import TypeVar

from ots_tunnel.errors import CodecError
from ots_tunnel.protocol.http.message import HttpResponse
from ots_tunnel.protocol.http.wire import ANSWER_LIMIT, AnswerReader
from ots_tunnel.transport import AT_ONCE, BeforeAnswer
from ots_tunnel.transport.guarded_socket import GuardedSocket
from ots_tunnel.transport.sending_limit import pauses

#: Bytes of a body that the kernel takes at once on an idle connection: its first send buffer is larger on any Linux.
SMALL_BODY = 32_768
#: Bytes of one part of a larger body: a request of 200 usual rows is one.
PART_BYTES = 262_144
#: Bytes that are read at once, unless they belong to a large body.
READ_BYTES = 16_384

T = TypeVar("T")


class Connection(asyncio.BufferedProtocol):
    """Writes a request and reads its answer; the caller sends the next request after that.

    `is_usable`: whether the connection can carry another request.

    Args:
        small: memory for what is read, unless it goes into the room of a large body. Connections of one loop share it.
    """

    def __init__(self, small: memoryview) -> None:
        self._small = small
        #: Whether the loop reads into the room of a large body.
        self._in_place = False
        #: The socket's transport, and the one that takes bytes: its own or that of TLS above it.
        self._lower: asyncio.Transport | None = None
        self._transport: asyncio.Transport | None = None
        self._reader: AnswerReader | None = None
        #: Ends with the answer, or with None where the answer has begun and waits for room; then another one follows.
        self._answer: asyncio.Future[HttpResponse | None] | None = None
        self._room: asyncio.Future[None] | None = None
        #: Asked when an answer begins, before more of it is taken.
        self._admit: BeforeAnswer | None = None
        #: What an answer that has begun waits for, and the future of the answer.
        self._held: tuple[Awaitable[None], asyncio.Future[HttpResponse | None]] | None = None
        self._all_sent = True
        #: The socket below; guards writes.
        self._socket: GuardedSocket | None = None
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
        limit: asyncio.Timeout | None = None,
        most: int = ANSWER_LIMIT,
    ) -> HttpResponse:
        """Send a request and return its answer.

        Args:
            ask: permission to write, which the caller has just got; asked again before the rest of a large body.
            admit: awaited when the answer has begun, before more of it is taken.
            limit: stands still while `admit` is awaited.
            most: most bytes of the answer's body.

        Raises:
            OSError: the connection broke. CodecError: the answer is malformed. Any error of `ask`.
        """
        assert self._transport is not None, "not connected"
        assert self._socket is not None, "not connected"
        assert self.is_usable, "a request is under way"
        self.is_usable = False
        if ask is None:
            self._socket.lift()
        self._reader = AnswerReader(most)
        answer: asyncio.Future[HttpResponse | None] = asyncio.get_running_loop().create_future()
        self._answer = answer
        self._admit = admit
        try:
            if ask is None or len(body) <= SMALL_BODY:
                # From Python 3.12 on the loop writes an empty piece again and again.
                self._transport.writelines((head, body) if body else (head,))
            else:
                self._all_sent = False
                await self._send_in_parts(head, memoryview(body), ask, answer)
            found = await answer
            while found is None:
                found = await self._let_in(limit)
            return found
        except BaseException:
            for future in (answer, self._answer):
                if future is not None:
                    future.cancel()  # no caller awaits it any more
            raise
        finally:
            self._admit = None
            if self._held is not None:
                self._forget_admission()

    def limit_sending(self, seconds: float) -> None:
        """Let nothing of the present request leave after `seconds`, or after this process has ended."""
        assert self._socket is not None, "not connected"
        self._socket.limit(seconds)

    def abort(self) -> None:
        """Close at once; unsent bytes of a request are discarded, also those that the kernel holds."""
        self.is_usable = False
        self._reader = None
        if self._transport is None or self._socket is None:
            return
        with contextlib.suppress(OSError):  # it is closed already
            if self._answer is not None:
                self._socket.discard()
            else:
                self._socket.lift()
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
        self._socket = GuardedSocket(transport.get_extra_info("socket"))
        self.is_usable = True
        self.used_at = asyncio.get_running_loop().time()

    def resume_writing(self) -> None:
        """Called by the loop."""
        if self._room is not None and not self._room.done():
            self._room.set_result(None)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Called by the loop, which reads into it."""
        room = self._reader.room() if self._reader is not None else None
        self._in_place = room is not None
        return self._small if room is None else room

    def buffer_updated(self, nbytes: int) -> None:
        """Called by the loop."""
        if not self._in_place:
            self.data_received(bytes(self._small[:nbytes]))
        elif self._reader is not None:
            self._read(self._reader.filled, nbytes)

    def data_received(self, data: bytes) -> None:
        """Bytes have come."""
        if self._reader is None:
            self.abort()  # bytes without a request
        else:
            self._read(self._reader.feed, data)

    def eof_received(self) -> bool:
        """Called by the loop; the connection is closed then."""
        if self._socket is not None and self._answer is None:
            self._socket.lift()
        answer = self._reader.end() if self._reader is not None else None
        if answer is not None:
            self._succeed(answer, reuse=False)
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the loop."""
        self.is_usable = False
        self._fail(exc if isinstance(exc, OSError) else ConnectionResetError("closed by the other side"))

    def _read(self, take: Callable[[T], HttpResponse | None], taken: T) -> None:
        reader = self._reader
        assert reader is not None
        assert self._transport is not None
        try:
            answer = take(taken)
        except CodecError as error:
            self._fail(error)
            return
        if answer is not None:
            self._succeed(answer, reuse=reader.may_reuse)
        elif self._admit is not None:
            admission, self._admit = self._admit(), None
            if admission is not AT_ONCE:
                self._hold_back(admission)

    def _hold_back(self, admission: Awaitable[None]) -> None:
        assert self._transport is not None
        self._transport.pause_reading()
        begun, answer = self._answer, asyncio.get_running_loop().create_future()
        self._answer, self._held = answer, (admission, answer)
        if begun is not None and not begun.done():
            begun.set_result(None)

    def _forget_admission(self) -> None:
        assert self._held is not None
        (admission, _), self._held = self._held, None
        if isinstance(admission, Coroutine):
            admission.close()

    async def _let_in(self, limit: asyncio.Timeout | None) -> HttpResponse | None:
        assert self._held is not None
        assert self._transport is not None
        admission, answer = self._held
        if answer.done():
            self._forget_admission()  # it broke meanwhile
        else:
            self._held = None
            admitted = admitted_or_done(admission, answer)
            await (admitted if limit is None else outside(limit, admitted))
            self._transport.resume_reading()
        return await answer

    async def _send_in_parts(
        self, head: bytes, body: memoryview, ask: Callable[[], None], answer: asyncio.Future[HttpResponse | None]
    ) -> None:
        assert self._transport is not None
        assert self._socket is not None
        last = len(body) - 1
        for start in range(0, last, PART_BYTES):
            part = body[start : min(start + PART_BYTES, last)]
            if start:
                self._transport.write(part)
            else:
                self._begin(head, part)
            if self._unsent():
                await self._until_empty(answer)
                if answer.done():
                    return  # lost, or answered early
                ask()
        if not self._socket.is_sent():
            await self._until_sent(answer)
        if answer.done():
            return
        ask()
        self._transport.write(body[last:])
        self._all_sent = True

    def _begin(self, head: bytes, part: memoryview) -> None:
        """Write a head, and the body's first part, in one packet: a head of its own would wake the peer.

        Python 3.11 joins what `writelines` gets, which copies nearly the whole request.
        """
        assert self._transport is not None
        assert self._socket is not None
        is_plain = self._transport is self._lower and not self._transport.is_closing()
        taken = self._socket.take(head, part) if is_plain else 0
        if taken < len(head):
            self._transport.writelines((head[taken:], part))
        elif taken < len(head) + len(part):
            self._transport.write(part[taken - len(head) :])

    def _unsent(self) -> int:
        """Bytes that wait in this process."""
        assert self._transport is not None
        assert self._lower is not None
        above = self._transport.get_write_buffer_size() if self._transport is not self._lower else 0
        return above + self._lower.get_write_buffer_size()

    async def _until_empty(self, answer: asyncio.Future[HttpResponse | None]) -> None:
        while self._unsent() and not answer.done():
            self._room = asyncio.get_running_loop().create_future()
            await asyncio.wait((self._room, answer), return_when=asyncio.FIRST_COMPLETED)

    async def _until_sent(self, answer: asyncio.Future[HttpResponse | None]) -> None:
        assert self._socket is not None
        for pause in pauses():
            await asyncio.sleep(pause)
            if answer.done() or self._socket.is_sent():
                return

    def _succeed(self, answer: HttpResponse, *, reuse: bool) -> None:
        # An answer before the whole request has arrived leaves the connection in an unknown state.
        assert self._socket is not None
        if self._all_sent and not self._unsent() and not self._socket.may_send_again():
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


async def admitted_or_done(admission: Awaitable[None], answer: asyncio.Future[HttpResponse | None]) -> None:
    """Await an admission, but no longer than its answer can come: the connection may be closed meanwhile."""
    waiting = asyncio.ensure_future(admission)
    try:
        await asyncio.wait((waiting, answer), return_when=asyncio.FIRST_COMPLETED)
        if waiting.done():
            await waiting  # for its error
    finally:
        waiting.cancel()


async def outside(limit: asyncio.Timeout, waiting: Awaitable[None]) -> None:
    """Await something whose time does not count."""
    loop, until = asyncio.get_running_loop(), limit.when()
    assert until is not None, "every request has a limit"
    left = until - loop.time()
    limit.reschedule(None)
    await waiting
    limit.reschedule(loop.time() + left)


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
