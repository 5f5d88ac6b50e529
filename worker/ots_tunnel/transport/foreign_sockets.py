"""Limits for the sockets of libraries that have no options for them: librdkafka's, and those of a bucket's client.

The library opens its sockets itself, in threads of its own. They are found among the descriptors of this process by
the port of their peer, and get the limits of `sending_limit`. A socket that is opened between two looks goes without
them until the next look; that window is stated in docs/guarantees.md.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
from collections.abc import AsyncIterator, Collection
from pathlib import Path

from ots_tunnel.transport.sending_limit import discard_unsent, limit_ms, limit_sending

#: Seconds between two looks while a write is under way.
LOOK_EVERY = 0.1
_DESCRIPTORS = Path("/proc/self/fd")
#: A look needs a descriptor of its own.
_NO_DESCRIPTOR = frozenset((errno.EMFILE, errno.ENFILE))


@contextlib.asynccontextmanager
async def limited_sockets(ports: Collection[int], seconds: float) -> AsyncIterator[None]:
    """Inside the block, connections to these ports send for `seconds` at most, and nothing after they are closed.

    Raises:
        OSError: no descriptor is free at the beginning.
    """
    limit_sockets(ports, seconds)
    looking = asyncio.create_task(_look_again(ports, seconds), name="limit sockets")
    try:
        yield
    finally:
        looking.cancel()


def limit_sockets(ports: Collection[int], seconds: float) -> int:
    """Limit the connections of this process to these ports; returns how many there are.

    Raises:
        OSError: no descriptor is free.
    """
    limited = 0
    for name in os.listdir(_DESCRIPTORS):
        try:
            if os.readlink(_DESCRIPTORS / name).startswith("socket:"):
                limited += _limit_if_peer(int(name), ports, seconds)
        except OSError as error:
            if error.errno in _NO_DESCRIPTOR:
                raise
            # closed meanwhile, no socket, or not connected
    return limited


async def _look_again(ports: Collection[int], seconds: float) -> None:
    while True:
        await asyncio.sleep(LOOK_EVERY)
        # Without a free descriptor: the library has none for a new connection either, and the next look comes soon.
        with contextlib.suppress(OSError):
            limit_sockets(ports, seconds)


def _limit_if_peer(descriptor: int, ports: Collection[int], seconds: float) -> bool:
    with socket.socket(fileno=os.dup(descriptor)) as sock:
        is_tcp = sock.family in (socket.AF_INET, socket.AF_INET6) and sock.type == socket.SOCK_STREAM
        if not is_tcp or sock.getpeername()[1] not in ports:
            return False
        # A limit is never made longer: this package's own connections to the same port keep theirs (`guarded_socket`).
        if 0 < sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) <= limit_ms(seconds):
            discard_unsent(sock)
        else:
            limit_sending(sock, seconds)
        return True
