"""Small buffers for what arrives, for a process with many connections that mostly wait.

asyncio gives each connection over TLS a buffer of 256 KiB, which is filled with zeros, and so in memory, for as long as
the connection is open: each watch, each call under way, each connection that is kept for the next call. For each read
it also asks for 256 KiB, which the C library maps from the system and gives back, because an operator returns large
blocks at once (`ots_tunnel.allocator`). Answers here are some KiB, and a record of TLS has 16 KiB at most.
"""

from __future__ import annotations

from asyncio import selector_events, sslproto

#: Bytes that are read at once: two records of TLS. More arrives in several reads.
READ_BYTES = 32 << 10


def read_in_small_pieces() -> None:
    """Let every connection of asyncio that opens from now on read so many bytes at once.

    asyncio has no parameter for it; both classes have it as their attribute in every Python from 3.11 on.
    """
    sslproto.SSLProtocol.max_size = READ_BYTES
    selector_events._SelectorTransport.max_size = READ_BYTES  # type: ignore[attr-defined]  # typeshed lacks the class
