"""The socket of a connection that carries one write after the other: `sending_limit` with few calls of the kernel.

A write needs a limit when it begins, again before its last byte, and a look in between whether all others are sent.
Set and lifted anew for each write these are eight options and a poll. So the limit stays from one write to the next:
without a write nothing is there that it could hold back. It is set again where the next write has less time left, or
much more.

Example: D is 16.7 s. The first write has 16.70 s left, and the kernel gets 15.03 s. Before its last byte it has 16.69 s
left, and the kernel gets 15.02 s. The next write has 16.70 s left: 15.02 s stay. One that has waited for a connection
has 12 s left, and the kernel gets 10.8 s; the one behind it gets 15.03 s again.

Source: docs/architecture.md rule 4.
"""

from __future__ import annotations

import fcntl
import os
import select
import sys

from ots_tunnel.transport.sending_limit import (
    PolledSocket,
    discard_unsent,
    is_sent,
    lift_limit,
    limit_ms,
    limit_sending,
)

#: Least part of a write's own limit with which an earlier one stays.
KEPT_SHARE = 0.95
#: Requests of ioctl(2), an int each (linux/sockios.h): bytes that the kernel was given and has not sent, and bytes that
#: the peer has not acknowledged, sent or not.
_SIOCOUTQNSD = 0x894B
_SIOCOUTQ = 0x5411
_INT = bytes(4)


class GuardedSocket:
    """Limits of a socket, and whether it has sent everything.

    Args:
        sock: of the connection.
    """

    __slots__ = ("_limit_ms", "_poll", "_sock")

    def __init__(self, sock: PolledSocket) -> None:
        self._sock = sock
        #: The kernel's limit; 0 for none.
        self._limit_ms = 0
        self._poll: select.poll | None = None

    def __repr__(self) -> str:
        return f"GuardedSocket({self._limit_ms} ms)"

    def limit(self, seconds: float) -> None:
        """A write leaves: the kernel sends for `seconds` at most, and nothing after the socket is closed."""
        most_ms = limit_ms(seconds)
        if not most_ms * KEPT_SHARE <= self._limit_ms <= most_ms:
            limit_sending(self._sock, seconds)
            self._limit_ms = most_ms

    def lift(self) -> None:
        """No write is under way: the socket may be closed politely, and a read has the kernel's own time."""
        if self._limit_ms:
            lift_limit(self._sock)
            self._limit_ms = 0

    def discard(self) -> None:
        """A write is given up: the close that follows discards what was not sent, which `lift` does not take back."""
        self._limit_ms = 0
        discard_unsent(self._sock)

    def take(self, *pieces: bytes | memoryview) -> int:
        """Hand bytes to the kernel, before which no others wait; how many it takes at once.

        A broken connection takes none; the transport finds it broken with its next write.
        """
        try:
            return os.writev(self._sock.fileno(), pieces)
        except OSError:
            return 0

    def is_sent(self) -> bool:
        """See `sending_limit.is_sent`; two calls of the kernel where everything is sent."""
        if self._sock.fileno() < 0:
            return True  # closed: TLS tells of that one round of the loop later
        return (self._has_room() and self._bytes(_SIOCOUTQNSD) == 0) or is_sent(self._sock)

    def may_send_again(self) -> bool:
        """Whether the kernel holds bytes of a write that the peer has not acknowledged, so that they may still leave.

        An answer to a whole request acknowledges all of it.
        """
        return bool(self._limit_ms and self._bytes(_SIOCOUTQ))

    def _has_room(self) -> bool:
        """Whether the kernel takes one more byte at once."""
        if self._poll is None:
            self._poll = select.poll()
            self._poll.register(self._sock.fileno(), select.POLLOUT)
        return bool(self._poll.poll(0))

    def _bytes(self, request: int) -> int | None:
        """Bytes that the kernel holds, see the requests; None where it does not tell."""
        try:
            return int.from_bytes(fcntl.ioctl(self._sock.fileno(), request, _INT), sys.byteorder)
        except (OSError, ValueError):  # another system, or the connection broke; the second: it is closed
            return None
