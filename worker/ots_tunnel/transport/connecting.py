"""Opening a connection: look the name up, then try its addresses by happy eyeballs (RFC 8305).

Lookups have threads of their own, because a heartbeat must not wait for a thread that something else holds. The next
address is tried a moment after the one before has not answered, so that a silent address costs that moment and not the
whole call.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Sequence
from concurrent.futures import Future

from aiohappyeyeballs import AddrInfoType, start_connection

from ots_tunnel.threads import DaemonThreads

#: Seconds until the next address is tried beside the one before; RFC 8305 recommends 0.25.
NEXT_ADDRESS_AFTER = 0.25
#: Seconds for lookup and all attempts; own choice. A call may always be repeated when no connection was opened.
CONNECT_DEADLINE = 10.0
#: Lookups of one transport at the same time; own choice. A lookup without an answer takes 10 to 30 s.
LOOKUPS = 4


def lookup_threads(host: str) -> DaemonThreads:
    """Threads for the lookups of one transport."""
    return DaemonThreads(f"lookup {host}", LOOKUPS)


async def open_socket(
    host: str, port: int, threads: DaemonThreads, deadline: float = CONNECT_DEADLINE
) -> socket.socket:
    """A connected socket, not blocking.

    Args:
        deadline: seconds for lookup and connection.

    Raises:
        OSError: the name has no address, or no address accepts. TimeoutError: the deadline is over.
    """
    async with asyncio.timeout(deadline):
        addresses = await _addresses(host, port, threads)
        return await start_connection(addresses, happy_eyeballs_delay=NEXT_ADDRESS_AFTER, interleave=1)


def open_socket_blocking(host: str, port: int, deadline: float) -> socket.socket:
    """The same for a thread without an event loop.

    Raises:
        OSError: the name has no address, or no address accepts. TimeoutError: the deadline is over.
    """
    deadline = min(deadline, CONNECT_DEADLINE)
    # A thread, because the caller's may run a loop already, as in a notebook; a new one, because Spark forks.
    opening = DaemonThreads(f"connect {host}", 1, idle_seconds=0)
    opened: Future[socket.socket] = opening.submit(
        lambda: asyncio.run(open_socket(host, port, lookup_threads(host), deadline))
    )
    try:
        return opened.result(deadline + 1)
    except BaseException:
        opened.add_done_callback(_close_late)
        raise


async def _addresses(host: str, port: int, threads: DaemonThreads) -> Sequence[AddrInfoType]:
    with contextlib.suppress(socket.gaierror):  # not an address but a name
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    return await threads.run(_look_up, host, port)


def _look_up(host: str, port: int) -> Sequence[AddrInfoType]:
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)


def _close_late(opened: Future[socket.socket]) -> None:
    if not opened.cancelled() and opened.exception() is None:
        opened.result().close()
