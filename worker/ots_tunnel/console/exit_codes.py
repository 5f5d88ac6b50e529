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
class ExitCode:
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
EXIT_CODES = (
    ExitCode(0, "done: complete; `run` also: stopped by a signal"),
    ExitCode(1, "verify and demo: the tables differ"),
    ExitCode(2, "wrong document, option or keys, or a job that must not begin; nothing was touched", (ConfigError,)),
    ExitCode(11, "no such table, or the tunnel is of another one", (TableNotFound, ObjectNotExist, WrongTable)),
    ExitCode(10, "no such tunnel", (TunnelNotFound, WrongTunnel)),
    ExitCode(12, "denied: unknown key, wrong signature or no permission", (AuthFailed, PermissionDenied)),
    ExitCode(13, "the tunnel is expired: changes it has not delivered are gone", (TunnelExpired,)),
    ExitCode(3, "the service refused for good in another way", (ServiceError,)),
    ExitCode(4, "the sink refused for good: its destination or records", (SinkRejected,)),
    ExitCode(5, "anything else, such as a service that does not answer", (Exception,)),
    ExitCode(130, "interrupted; by another signal: 128 and its number, such as 143", (KeyboardInterrupt,)),
)


def exit_code(error: BaseException) -> int:
    """The process's exit code for an error."""
    told = error.__cause__ if isinstance(error, Explained) else error
    return next((row.code for row in EXIT_CODES if isinstance(told, row.errors)), 5)


def exit_code_table() -> Iterator[tuple[str, str]]:
    """Code and meaning of every row, in the order of the codes."""
    for row in sorted(EXIT_CODES, key=lambda row: row.code):
        yield str(row.code), row.meaning
