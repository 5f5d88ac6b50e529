"""The way out of one connection: permission is asked right before the last byte of a request that writes leaves.

Theory of operation. A request is executed when its last byte has arrived. However long the sending took, permission is
asked right before that byte leaves:

    a small body    fits into the kernel's empty buffer: permission, then head and body in one go
    a larger body   in parts. Behind a part that the kernel does not take whole, the rest waits until it has room, and
                    permission is asked again, because the process may have been suspended meanwhile. The last byte
                    waits until the kernel has sent all bytes before it, so that it cannot wait behind them, in a buffer
                    of this process or of the kernel, from where it would leave without permission.

Over TLS, bytes wait in two buffers, that of the TLS layer and that of the transport below; a `DrainTap` between them
tells when the lower one is empty.

Source: docs/architecture.md rule 4.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from ots_tunnel.transport.drain_tap import DrainTap
from ots_tunnel.transport.guarded_socket import GuardedSocket
from ots_tunnel.transport.sending_limit import pauses

#: Bytes of a body that the kernel takes at once on an idle connection: its first send buffer is larger on any Linux.
SMALL_BODY = 32_768
#: Bytes of one part of a larger body: a request of 200 usual rows is one.
PART_BYTES = 262_144


class Outlet:
    """Puts the bytes of requests on a connection, one request at a time.

    Args:
        transport: the socket's.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        transport.set_write_buffer_limits(high=0)  # `resume` means: the buffer is empty
        #: The socket's transport, and the one that takes bytes: its own or that of TLS above it.
        self._lower = self._transport = transport
        #: The socket below; guards writes.
        self.socket = GuardedSocket(transport.get_extra_info("socket"))
        self._room: asyncio.Future[None] | None = None
        self._all_sent = True

    @property
    def is_done(self) -> bool:
        """Whether every byte of the request has left for good, so that another one may follow its answer."""
        return self._all_sent and not self._unsent() and not self.socket.may_send_again()

    def secured_by(self, transport: asyncio.Transport) -> None:
        """From now on bytes go through the TLS layer `transport`."""
        below = self._lower.get_protocol()
        assert isinstance(below, asyncio.BufferedProtocol), "the protocol of asyncio's TLS layer"
        self._lower.set_protocol(DrainTap(below, self.resume))
        self._transport = transport

    def resume(self) -> None:
        """No byte waits in the socket's transport."""
        if self._room is not None and not self._room.done():
            self._room.set_result(None)

    async def send(self, head: bytes, body: bytes, ask: Callable[[], None] | None, answer: asyncio.Future[Any]) -> None:
        """Send a request; returns early where its answer is there, or the connection is lost.

        Args:
            ask: permission to write, which the caller has just got; asked again before the rest of a large body. None:
                the request writes nothing.

        Raises:
            Any error of `ask`.
        """
        if ask is None or len(body) <= SMALL_BODY:
            # From Python 3.12 on the loop writes an empty piece again and again.
            self._transport.writelines((head, body) if body else (head,))
        else:
            self._all_sent = False
            await self._send_in_parts(head, memoryview(body), ask, answer)

    async def _send_in_parts(
        self, head: bytes, body: memoryview, ask: Callable[[], None], answer: asyncio.Future[Any]
    ) -> None:
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
        if not self.socket.is_sent():
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
        is_plain = self._transport is self._lower and not self._transport.is_closing()
        taken = self.socket.take(head, part) if is_plain else 0
        if taken < len(head):
            self._transport.writelines((head[taken:], part))
        elif taken < len(head) + len(part):
            self._transport.write(part[taken - len(head) :])

    def _unsent(self) -> int:
        """Bytes that wait in this process."""
        above = self._transport.get_write_buffer_size() if self._transport is not self._lower else 0
        return above + self._lower.get_write_buffer_size()

    async def _until_empty(self, answer: asyncio.Future[Any]) -> None:
        while self._unsent() and not answer.done():
            self._room = asyncio.get_running_loop().create_future()
            await asyncio.wait((self._room, answer), return_when=asyncio.FIRST_COMPLETED)

    async def _until_sent(self, answer: asyncio.Future[Any]) -> None:
        for pause in pauses():
            await asyncio.sleep(pause)
            if answer.done() or self.socket.is_sent():
                return
