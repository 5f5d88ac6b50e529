"""What the kernel does with the bytes of a write: nothing of it leaves once the write is given up.

The kernel sends what a process has handed over also when the process has closed the socket or has ended, and repeats
lost packets for up to a quarter of an hour. A write that was given up would so arrive when the path is back, behind
newer ones, and undo them. While a write is under way its socket therefore has

    SO_LINGER {1, 0}    closing it, also by the end of the process, discards what was not sent and resets the connection
    TCP_USER_TIMEOUT    the kernel gives the connection up when the peer acknowledges nothing for so long, also while
                        the process is stopped

Source: docs/architecture.md rule 4; tcp(7), socket(7).
"""

from __future__ import annotations

import socket
import struct
from typing import Protocol

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
_SEND_ON_CLOSE = struct.pack("ii", 0, 0)
#: Part of the time left that the kernel has: it looks at the limit only when one of its timers expires.
KERNEL_SHARE = 0.9


class OptionSocket(Protocol):
    """A socket whose options can be set, such as that of an asyncio transport."""

    def setsockopt(self, level: int, option: int, value: int | bytes, /) -> None:
        """See `socket.socket.setsockopt`."""
        ...


def limit_sending(sock: OptionSocket, seconds: float) -> None:
    """Let the kernel send for `seconds` at most, and nothing after the socket is closed."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, max(1, int(seconds * KERNEL_SHARE * 1000)))


def lift_limit(sock: OptionSocket) -> None:
    """The write is answered: the socket may be closed politely again."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _SEND_ON_CLOSE)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 0)


def discard_unsent(sock: OptionSocket) -> None:
    """Let the close that follows discard what was not sent."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
