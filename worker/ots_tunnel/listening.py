"""Sockets that servers listen on."""

from __future__ import annotations

import errno
import socket

#: Every address of the machine, or of the pod: those of IP version 6 too, because a pod may have no other.
EVERY_ADDRESS = "0.0.0.0"
#: What a kernel says whose IP version 6 is switched off.
_SWITCHED_OFF = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})


def listening_socket(host: str, port: int) -> socket.socket:
    """A socket that listens on one address, or on all of them with `EVERY_ADDRESS`; port 0 selects a free one.

    Raises:
        OSError: the address cannot be used.
    """
    if host == EVERY_ADDRESS and socket.has_dualstack_ipv6():
        try:
            return socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True)
        except OSError as error:
            if error.errno not in _SWITCHED_OFF:
                raise
    family, *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    return socket.create_server((host, port), family=family)
