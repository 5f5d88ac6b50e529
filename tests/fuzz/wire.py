"""HTTP without a client library: requests that no library would send."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

from ots_tunnel.protocol.http.message import HttpRequest, HttpResponse

#: Deadline in seconds for an answer or the end of a connection.
DEADLINE = 10.0


class Ended(Exception):
    """The server closed the connection instead of answering."""


class Wire:
    """One connection; requests go out as bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, data: bytes) -> None:
        """Send bytes; a connection closed by the server is noticed when its answer is read."""
        self._writer.write(data)
        with suppress(ConnectionError):
            await asyncio.wait_for(self._writer.drain(), DEADLINE)

    def end(self) -> None:
        """Half-close the connection: nothing more will be sent."""
        if self._writer.can_write_eof():
            self._writer.write_eof()

    def abort(self) -> None:
        """Close the connection at once."""
        self._writer.transport.abort()

    async def answer(self) -> HttpResponse:
        """Read one answer.

        Raises:
            Ended: the connection ended first.
            TimeoutError: neither came.
        """
        try:
            return await asyncio.wait_for(self._read(), DEADLINE)
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise Ended from error

    async def answers(self) -> list[HttpResponse]:
        """Read answers until the connection ends.

        Raises:
            TimeoutError: it does not.
        """
        found: list[HttpResponse] = []
        while True:
            try:
                found.append(await self.answer())
            except Ended:
                return found

    async def _read(self) -> HttpResponse:
        status = int((await self._reader.readuntil(b"\r\n")).split()[1])
        # As they are spelt: some clients do not ignore the case.
        headers: dict[str, str] = {}
        size = 0
        while line := (await self._reader.readuntil(b"\r\n"))[:-2]:
            name, _, value = line.decode("utf-8", "surrogateescape").partition(":")
            headers[name.strip()] = value.strip()
            if name.strip().lower() == "content-length":
                size = int(value)
        if status < 200:  # an interim answer, such as 100 Continue
            return await self._read()
        body = await self._reader.readexactly(size)
        return HttpResponse(status, headers, body)

    async def close(self) -> None:
        self._writer.transport.abort()
        with suppress(ConnectionError):
            await self._writer.wait_closed()


@asynccontextmanager
async def connected(endpoint: str) -> AsyncIterator[Wire]:
    """Connect to a server."""
    address = urlsplit(endpoint)
    wire = Wire(*await asyncio.open_connection(address.hostname, address.port, limit=1 << 24))
    try:
        yield wire
    finally:
        await wire.close()


def encode(request: HttpRequest, *, method: str = "POST", extra: bytes = b"") -> bytes:
    """Write a request as HTTP/1.1."""
    lines = [f"{method} {request.path} HTTP/1.1", "host: emulator", f"content-length: {len(request.body)}"]
    lines += [f"{name}: {value}" for name, value in request.headers.items()]
    head = "\r\n".join(lines).encode("utf-8", "surrogateescape") + b"\r\n" + extra
    return head + b"\r\n" + request.body
