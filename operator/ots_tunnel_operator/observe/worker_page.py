"""One page of a worker's HTTP server, by a connection that carries this request alone: the worker closes it after it.

A general HTTP client takes several times the CPU for it, and an operator of 1,000 objects reads some 65 pages a second.

A worker runs an image of the user's, so a page may be of any size, and an object may have a thousand workers. All
objects share the memory of one process. So what is larger than SMALL_BYTES stays in the kernel until it is one of LARGE
pages that are read at once; the caller's time goes on meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

from ots_tunnel.errors import CodecError
from ots_tunnel.protocol.http.message import HttpResponse
from ots_tunnel.protocol.http.wire import AnswerReader
from ots_tunnel_operator import names

#: Longest document accepted, bytes; about 10,000 channels.
MAX_BYTES = 8 * 1024 * 1024
#: Bytes of an answer that are read at once, whatever else is read; about 80 channels.
SMALL_BYTES = 64 * 1024
#: Answers of more bytes that are read at once.
LARGE = 4

ReadPage = Callable[[str, str], Awaitable[bytes | None]]
"""Reads a page by the address of a pod and its path, as `WorkerPages.read` does."""


class WorkerPages:
    """The pages of the workers of all objects.

    Attributes:
        reading: large pages that are being read.
        waiting: large pages that wait for their turn.
    """

    def __init__(self) -> None:
        self.reading = 0
        self.waiting = 0
        self._large = asyncio.Semaphore(LARGE)

    async def read(self, address: str, path: str) -> bytes | None:
        """The body of a page; None where the worker answers with an error. The caller limits the time.

        Args:
            address: of the pod, IPv4 or IPv6.

        Raises:
            OSError: there is no connection, or it breaks.
            CodecError: the answer is not HTTP, or is longer than MAX_BYTES.
        """
        host = f"[{address}]" if ":" in address else address
        request = f"GET {path} HTTP/1.1\r\nHost: {host}:{names.WORKER_PORT}\r\nConnection: close\r\n\r\n"
        loop = asyncio.get_running_loop()
        transport, reading = await loop.create_connection(_Reading, address, names.WORKER_PORT)
        try:
            transport.write(request.encode())
            await reading.begun
            answer = await (reading.answer if reading.answer.done() else self._read_large(transport, reading))
        finally:
            transport.abort()
        return answer.body if answer.status == 200 else None

    async def _read_large(self, transport: asyncio.Transport, reading: _Reading) -> HttpResponse:
        self.waiting += 1
        try:
            await self._large.acquire()
        finally:
            self.waiting -= 1
        self.reading += 1
        try:
            transport.resume_reading()
            return await reading.answer
        finally:
            self.reading -= 1
            self._large.release()


class _Reading(asyncio.Protocol):
    """Reads one answer, and pauses once, where it is large.

    Attributes:
        answer: the answer, or why there is none.
        begun: done once the answer is there, or is so large that the rest has to wait for its turn.
    """

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.answer: asyncio.Future[HttpResponse] = loop.create_future()
        self.begun: asyncio.Future[None] = loop.create_future()
        self._reader = AnswerReader(MAX_BYTES)
        self._size = 0
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the loop."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Called by the loop."""
        if self.answer.done():
            return
        self._size += len(data)
        try:
            answer = self._reader.feed(data)
        except CodecError as error:
            self._fail(error)
        else:
            self._end(answer)
        if self._size > SMALL_BYTES and not self.begun.done() and self._transport is not None:
            self._transport.pause_reading()
            self._begin()

    def eof_received(self) -> None:
        """Called by the loop, which then closes the connection."""
        if not self.answer.done():
            self._end(self._reader.end())

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the loop."""
        self._fail(exc if isinstance(exc, OSError) else ConnectionResetError("closed before the answer was complete"))

    def _begin(self) -> None:
        if not self.begun.done():
            self.begun.set_result(None)

    def _end(self, answer: HttpResponse | None) -> None:
        if answer is not None:
            self.answer.set_result(answer)
            self._begin()

    def _fail(self, error: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)
            # a caller that has given up reads it no more: asyncio would log it as lost
            self.answer.exception()
        self._begin()
