"""One connection of an asyncio client: one request at a time, with its answer as a future."""

from __future__ import annotations

import asyncio

from ots_tunnel.errors import CodecError
from ots_tunnel.protocol.http.message import HttpResponse
from ots_tunnel.protocol.http.wire import AnswerReader


class Connection(asyncio.Protocol):
    """Writes a request and reads its answer; the caller sends the next request after that.

    `is_usable`: whether the connection can carry another request.
    """

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._reader: AnswerReader | None = None
        self._answer: asyncio.Future[HttpResponse] | None = None
        self.is_usable = False
        #: Time of its opening or of the last answer, by the loop's clock.
        self.used_at = 0.0

    def __repr__(self) -> str:
        return f"Connection(is_usable={self.is_usable})"

    def exchange(self, head: bytes, body: bytes) -> asyncio.Future[HttpResponse]:
        """Send a request; the future raises OSError if the connection breaks, CodecError if the answer is malformed."""
        assert self._transport is not None, "not connected"
        assert self.is_usable, "a request is under way"
        self.is_usable = False
        self._reader = AnswerReader()
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.writelines((head, body))
        return self._answer

    def abort(self) -> None:
        """Close at once; unsent bytes are discarded."""
        self.is_usable = False
        self._reader = None
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the loop."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self.is_usable = True
        self.used_at = asyncio.get_running_loop().time()

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

    def _succeed(self, answer: HttpResponse, *, reuse: bool) -> None:
        future, self._answer, self._reader = self._answer, None, None
        assert self._transport is not None
        # An answer before the whole request is sent leaves the connection in an unknown state.
        if reuse and not self._transport.get_write_buffer_size():
            self.is_usable = True
            self.used_at = asyncio.get_running_loop().time()
        else:
            self._transport.abort()
        if future is not None and not future.done():
            future.set_result(answer)

    def _fail(self, error: Exception) -> None:
        future, self._answer = self._answer, None
        self.abort()
        if future is not None and not future.done():
            future.set_exception(error)
