"""How a command can end: one table of exit codes, for the process, for `--help` and for people.

A code says whose turn it is: whoever wrote the document (2), whoever keeps the tunnel and its keys (10 to 13), whoever
keeps the destination (4). None is changed once it was released.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ots_tunnel.errors import (
    AuthFailed,
    ConfigError,
    Explained,
    ObjectNotExist,
    PermissionDenied,
    ServiceError,
    SinkRejected,
    TableNotFound,
    TunnelExpired,
    TunnelNotFound,
    WrongTable,
    WrongTunnel,
)


@dataclass(frozen=True, slots=True)
class Ending:
    """One way to end.

    Args:
        code: of the process.
        meaning: for people.
        errors: what ends a command so.
    """

    code: int
    meaning: str
    errors: tuple[type[BaseException], ...] = ()


#: The first one that an error is an instance of counts.
ENDINGS = (
    Ending(0, "done: complete; `run` also: stopped by a signal"),
    Ending(1, "verify and demo: the tables differ"),
    Ending(2, "wrong document, option or keys, or a job that must not begin; nothing was touched", (ConfigError,)),
    Ending(11, "no such table, or the tunnel is of another one", (TableNotFound, ObjectNotExist, WrongTable)),
    Ending(10, "no such tunnel", (TunnelNotFound, WrongTunnel)),
    Ending(12, "denied: unknown key, wrong signature or no permission", (AuthFailed, PermissionDenied)),
    Ending(13, "the tunnel is expired: changes it has not delivered are gone", (TunnelExpired,)),
    Ending(3, "the service refused for good in another way", (ServiceError,)),
    Ending(4, "the sink refused for good: its destination or records", (SinkRejected,)),
    Ending(5, "anything else, such as a service that does not answer", (Exception,)),
    Ending(130, "interrupted; by another signal: 128 and its number, such as 143", (KeyboardInterrupt,)),
)


def exit_code(error: BaseException) -> int:
    """The process's exit code for an error."""
    told = error.__cause__ if isinstance(error, Explained) else error
    return next((ending.code for ending in ENDINGS if isinstance(told, ending.errors)), 5)


def exit_codes() -> Iterator[tuple[str, str]]:
    """Code and meaning of every ending, in the order of the codes."""
    for ending in sorted(ENDINGS, key=lambda ending: ending.code):
        yield str(ending.code), ending.meaning
