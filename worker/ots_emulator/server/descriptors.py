"""File descriptors: every connection needs one, and the system limits how many a process may have (`ulimit -n`).

Theory of operation
-------------------
A process has two limits. It may raise the soft one, which counts, up to the hard one, which only root may raise.

Beyond the limit the event loop accepts a connection and closes it at once, or lets it wait, and tells nobody. But the
system hands out the lowest free number, so a connection that gets the last number below the limit says that none is
left. This is told once, and again only after connections have been closed and the last number is taken anew.
"""

from __future__ import annotations

import asyncio
import logging
import resource
from typing import Final

_log = logging.getLogger(__name__)

#: A hard limit below it is worth a warning: the Linux kernel gives 4,096 to a process whose limits nobody has changed.
FEW_FILES: Final = 4096
#: What macOS takes where the hard limit is said to be infinite.
_MOST_OF_MACOS: Final = 10_240
#: Descriptors of the process itself: its output, event loop, ports and database.
_OWN: Final = 20
#: Part of the limit: a connection with a lower number shows that others have been closed.
_RECOVERED: Final = 0.9


def raise_limit() -> int:
    """Raise the soft limit as far as it may be; return how many files the process may open now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for wanted in (hard, _MOST_OF_MACOS):
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (ValueError, OSError):
            continue
        return wanted
    return soft


def warning_of(limit: int) -> str | None:
    """Return what to tell about a limit when the process starts, None if it is high enough."""
    if limit == resource.RLIM_INFINITY or limit >= FEW_FILES:
        return None
    return (
        f"this process may open {limit} files, which is enough for some {max(0, limit - _OWN)} connections; further "
        f"ones are reset. For more, raise the hard limit before the start: `ulimit -Hn 65536` as root, LimitNOFILE= "
        "of systemd, `--ulimit nofile=65536` of Docker."
    )


class LastDescriptor:
    """Tells in the log when a connection has taken the last file descriptor."""

    def __init__(self) -> None:
        self._told = False

    def __repr__(self) -> str:
        return f"LastDescriptor({'taken' if self._told else 'free'})"

    def connected(self, transport: asyncio.BaseTransport | None) -> None:
        """Look at the descriptor of a new connection."""
        socket = None if transport is None else transport.get_extra_info("socket")
        if socket is not None:
            self.taken(socket.fileno(), resource.getrlimit(resource.RLIMIT_NOFILE)[0])

    def taken(self, descriptor: int, limit: int) -> None:
        """Look at a descriptor that is in use; `limit` is how many the process may have."""
        if descriptor < limit * _RECOVERED:
            self._told = False
        elif descriptor == limit - 1 and not self._told:
            self._told = True
            _log.warning(
                "no file descriptor is left: all %d that this process may have are in use, nearly all by connections. "
                "Further connections are reset until some are closed. Close connections that are idle, or start the "
                "emulator with a higher limit (ulimit -n).",
                limit,
                extra={"action": "descriptors_exhausted"},
            )
