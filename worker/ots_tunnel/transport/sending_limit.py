"""What the kernel does with the bytes of a write: nothing of it leaves once the write is given up.

The kernel sends what a process has handed over also when the process has closed the socket or has ended, and repeats
lost packets for up to a quarter of an hour. A write that was given up would so arrive when the path is back, behind
newer ones, and undo them. While a write is under way its socket therefore has

    SO_LINGER {1, 0}    closing it, also by the end of the process, discards what was not sent and resets the connection
    TCP_USER_TIMEOUT    the kernel gives the connection up when the peer acknowledges nothing for so long, also while
                        the process is stopped

The limit counts from the peer's last acknowledgement. A peer that acknowledges little by little would keep a write
alive, so the last byte of a larger one is handed over only when the kernel has sent all others (`is_sent`).

Source: docs/architecture.md rule 4; tcp(7), socket(7).
"""

from __future__ import annotations

import select
import socket
import struct
from collections.abc import Iterator
from typing import Protocol

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
_SEND_ON_CLOSE = struct.pack("ii", 0, 0)
#: Part of the time left that the kernel has, which looks at the limit only when one of its timers expires, and that a
#: library has which closes its connections in a thread of its own.
KERNEL_SHARE = 0.9
#: Seconds between two looks whether everything is sent: the shortest and the longest.
SENT_POLL = 0.0005, 0.01


class OptionSocket(Protocol):
    """A socket whose options can be set, such as that of an asyncio transport."""

    def setsockopt(self, level: int, option: int, value: int | bytes, /) -> None:
        """See `socket.socket.setsockopt`."""
        ...


class PolledSocket(OptionSocket, Protocol):
    """A socket that can be polled, too."""

    def fileno(self) -> int:
        """Its descriptor."""
        ...


def limit_sending(sock: OptionSocket, seconds: float) -> None:
    """Let the kernel send for `seconds` at most, and nothing after the socket is closed."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, limit_ms(seconds))


def limit_ms(seconds: float) -> int:
    """The kernel's limit, milliseconds, for a write that has `seconds`."""
    return max(1, int(seconds * KERNEL_SHARE * 1000))


def lift_limit(sock: OptionSocket) -> None:
    """The write is answered: the socket may be closed politely again."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _SEND_ON_CLOSE)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 0)


def discard_unsent(sock: OptionSocket) -> None:
    """Let the close that follows discard what was not sent."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)


def is_sent(sock: PolledSocket, seconds: float = 0.0) -> bool:
    """Whether the kernel has sent all that it was given, and takes one more byte at once; or the connection broke.

    Sent bytes are in the peer's window: nothing that the peer reads or does not read holds them back any more.

    Args:
        seconds: to wait for it.
    """
    poll = select.poll()
    poll.register(sock.fileno(), select.POLLOUT)
    # With this option the socket counts as writable when less than one byte is unsent.
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, 1)
    try:
        return bool(poll.poll(seconds * 1000))
    finally:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, 0)


def pauses() -> Iterator[float]:
    """Seconds between looks by `is_sent`, for a loop: growing, so that a wait becomes at most about twice as long."""
    pause, longest = SENT_POLL
    while True:
        yield pause
        pause = min(2 * pause, longest)
