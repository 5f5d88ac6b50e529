"""Exit codes: one table for the process, for `--help` and for the documentation.

A code tells who has to act: the author of the document (2), the owner of the tunnel and its keys (10 to 14), of the
stream and of the table of leases (15 to 17), the owner of the destination (4). Only 0 means that everything that was
asked for is done; 6 asks to look again. A released code keeps its meaning.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ots_tunnel.errors import (
    AuthFailed,
    ConfigError,
    Explained,
    NoStream,
    ObjectNotExist,
    PermissionDenied,
    PossibleGap,
    ServiceError,
    SinkRejected,
    StreamReplaced,
    TableNotFound,
    TunnelExpired,
    TunnelNotFound,
    WrongLeaseTable,
    WrongTable,
    WrongTunnel,
)


@dataclass(frozen=True, slots=True)
class ExitCode:
    """One exit code.

    Args:
        code: exit code of the process, 0 to 255.
        meaning: description for users.
        errors: error classes that lead to this code.
    """

    code: int
    meaning: str
    errors: tuple[type[BaseException], ...] = ()


#: Code of an error that no row names, and of a drain that was cut off, such as by a processor that does not return.
OTHER_ERROR = 5

#: Exit code where the own part is done, and another client holds the rest: of a copy, or of a run to the end.
INCOMPLETE = 6

#: Shells report a process that a signal ended as 128 and the signal's number.
_SIGNAL_BASE = 128

#: The first row whose errors match decides, so that subclasses come before their base classes.
EXIT_CODES = (
    ExitCode(0, "complete; `run` without `--exit-when-complete` also: drained after a signal"),
    ExitCode(1, "`verify` and `demo`: the tables differ"),
    ExitCode(17, "the table of leases is another kind of table, or something else writes to it", (WrongLeaseTable,)),
    ExitCode(2, "wrong document, option or key, or a job that must not start; nothing was changed", (ConfigError,)),
    ExitCode(11, "no such table, or the tunnel belongs to another table", (TableNotFound, ObjectNotExist, WrongTable)),
    ExitCode(10, "no such tunnel", (TunnelNotFound, WrongTunnel)),
    ExitCode(12, "denied: unknown key, wrong signature or no permission", (AuthFailed, PermissionDenied)),
    ExitCode(13, "the tunnel has expired: changes that it did not deliver are lost", (TunnelExpired,)),
    ExitCode(14, "changes may be missing, because they were not read within the retention", (PossibleGap,)),
    ExitCode(15, "the table has no stream: it is switched off", (NoStream,)),
    ExitCode(16, "the stream was switched off and on again: changes from in between are lost", (StreamReplaced,)),
    ExitCode(3, "another permanent error of the service", (ServiceError,)),
    ExitCode(4, "permanent error of the sink: it rejects its destination or records", (SinkRejected,)),
    ExitCode(
        OTHER_ERROR,
        "any other error, such as a service that does not answer, or a drain that takes longer than it may",
        (Exception,),
    ),
    ExitCode(
        INCOMPLETE,
        "`replicate`, `run --exit-when-complete`: another client holds what is not read yet; run it again",
    ),
    ExitCode(
        130,
        "stopped by SIGINT before it was complete, `run` without `--exit-when-complete`: closed by a second signal; by "
        "another signal: 128 and its number, such as 143",
        (KeyboardInterrupt,),
    ),
)


def exit_code(error: BaseException) -> int:
    """The process's exit code for an error; the cause of an Explained error decides."""
    cause = error.__cause__ if isinstance(error, Explained) else error
    return next((row.code for row in EXIT_CODES if isinstance(cause, row.errors)), OTHER_ERROR)


def signal_exit_code(number: int) -> int:
    """The exit code of a process that ends because of a signal."""
    return _SIGNAL_BASE + number


def exit_code_table() -> Iterator[tuple[str, str]]:
    """Code and meaning of every exit code, in ascending order."""
    for row in sorted(EXIT_CODES, key=lambda row: row.code):
        yield str(row.code), row.meaning
