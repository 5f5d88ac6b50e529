"""One connection of an asyncio client: one request at a time, with its answer as a future.

Theory of operation. A request leaves by an `Outlet`, which asks for permission right before the last byte of one that
writes.

Giving a request up resets the connection, which discards what the kernel has not sent (`sending_limit`). The loop
closes the socket in its next round; `closed` waits for that, before the error is raised.

An answer can wait, too: when its first bytes have come, and the caller has no room for it (`AT_ONCE` says that it has),
nothing more is taken from the kernel until the caller admits it. The kernel's buffer is small; the peer keeps the rest.

Source: docs/architecture.md rule 4.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from typing import TypeVar

from ots_tunnel.errors import CodecError
from ots_tunnel.protocol.http.limits import ANSWER_LIMIT
from ots_tunnel.protocol.http.message import HttpResponse
from ots_tunnel.protocol.http.wire import AnswerReader
from ots_tunnel.transport import AT_ONCE, BeforeAnswer
from ots_tunnel.transport.admission import admitted_or_done, outside
from ots_tunnel.transport.outlet import Outlet

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
        #: The transport that takes bytes: the socket's or that of TLS above it.
        self._transport: asyncio.Transport | None = None
        self._outlet: Outlet | None = None
        self._reader: AnswerReader | None = None
        #: Ends with the answer, or with None where the answer has begun and waits for room; then another one follows.
        self._answer: asyncio.Future[HttpResponse | None] | None = None
        #: Asked when an answer begins, before more of it is taken.
        self._admit: BeforeAnswer | None = None
        #: What an answer that has begun waits for, and the future of the answer.
        self._held: tuple[Awaitable[None], asyncio.Future[HttpResponse | None]] | None = None
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
        assert self._outlet is not None, "not connected"
        assert self.is_usable, "a request is under way"
        self.is_usable = False
        if ask is None:
            self._outlet.socket.lift()
        self._reader = AnswerReader(most)
        answer: asyncio.Future[HttpResponse | None] = asyncio.get_running_loop().create_future()
        self._answer = answer
        self._admit = admit
        try:
            await self._outlet.send(head, body, ask, answer)
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
        assert self._outlet is not None, "not connected"
        self._outlet.socket.limit(seconds)

    def abort(self) -> None:
        """Close at once; unsent bytes of a request are discarded, also those that the kernel holds."""
        self.is_usable = False
        self._reader = None
        if self._transport is None or self._outlet is None:
            return
        with contextlib.suppress(OSError):  # it is closed already
            if self._answer is not None:
                self._outlet.socket.discard()
            else:
                self._outlet.socket.lift()
        self._transport.abort()

    async def closed(self) -> None:
        """Wait until the socket of an aborted connection is closed: from then on nothing leaves it."""
        if not self.is_usable:
            await asyncio.sleep(0)

    def secured_by(self, transport: asyncio.Transport) -> None:
        """From now on bytes go through the TLS layer `transport`."""
        assert self._outlet is not None, "not connected"
        self._outlet.secured_by(transport)
        self._transport = transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the loop."""
        assert isinstance(transport, asyncio.Transport)
        self._transport, self._outlet = transport, Outlet(transport)
        self.is_usable = True
        self.used_at = asyncio.get_running_loop().time()

    def resume_writing(self) -> None:
        """Called by the loop."""
        if self._outlet is not None:
            self._outlet.resume()

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
        if self._outlet is not None and self._answer is None:
            self._outlet.socket.lift()
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

    def _succeed(self, answer: HttpResponse, *, reuse: bool) -> None:
        # An answer before the whole request has arrived leaves the connection in an unknown state.
        assert self._outlet is not None
        if self._outlet.is_done:
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
