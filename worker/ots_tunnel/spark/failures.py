"""Errors of tasks as one line: which of them no other attempt can cure, and what Spark's text tells of the others.

Spark starts a task that raises again, up to `spark.task.maxFailures` times, and the Spark operator the application, up
to ten times. That is in vain where the destination refuses a row. So a task returns a permanent error as its result,
and the driver ends the job. Whether another driver can do better is a second question: missing rights may be given,
and keys are replaced while a copy runs, but a refused row stays refused (`Refusal.is_final`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ots_tunnel import errors
from ots_tunnel.errors import (
    ConfigError,
    ObjectNotExist,
    ParameterInvalid,
    PossibleGap,
    QueryRefused,
    ReplayDiffers,
    RowRejected,
    ServiceError,
    SinkRejected,
    TunnelError,
    TunnelExpired,
)
from ots_tunnel.protocol.service_codes import service_error

#: Errors after which a query that follows a tunnel meets the same again, whatever the service does by then.
_ENDS_QUERY: Final = (PossibleGap, QueryRefused, ReplayDiffers, TunnelExpired)
_OUR_ERROR: Final = re.compile(r"ots_tunnel\.errors\.(\w+)(?:: |$)")

#: With what the bridge to the JVM begins the text of any error.
_CALL: Final = re.compile(r"An error occurred while calling \S+\.")

#: With what a traceback of Python begins; in Spark's text it stands behind the words of its own error.
_TRACEBACK: Final = "Traceback (most recent call last):"

#: Most characters of a line; Spark joins whole stack traces into one error.
LINE_CHARACTERS = 500


class SnapshotIncomplete(Exception):
    """The job failed or left splits pending; what was copied is recorded."""


class SnapshotRefused(SnapshotIncomplete):
    """A permanent error; no other attempt can do better."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A permanent error of a task."""

    split: int
    text: str
    """One line."""
    is_final: bool
    """Whether another driver would meet it as well."""

    def error(self) -> SnapshotIncomplete:
        """The error of the driver."""
        return SnapshotRefused(self.text) if self.is_final else SnapshotIncomplete(self.text)


def refusal_of(split: int, error: TunnelError) -> Refusal | None:
    """The permanent error of a task; None for one that another attempt may not meet."""
    text = refusal_text(error)
    if text is None:
        return None
    return Refusal(split, one_line(f"split {split}: {text}"), is_final(error))


def refusal_text(error: TunnelError) -> str | None:
    """What a permanent error tells; None for one that another attempt may not meet."""
    match error:
        case SinkRejected(keys=keys) if keys:
            return f"the destination refuses {', '.join(keys)}: {error}"
        case SinkRejected() | ServiceError(retryable=False) | ConfigError():
            return str(error)
        case _:
            return None


def one_line(error: object) -> str:
    """The text of an error without its line breaks, at most `LINE_CHARACTERS`."""
    return " ".join(str(error).split())[:LINE_CHARACTERS]


def line_of_job(error: BaseException) -> str:
    """What a failed job tells: the last line that names an error of this package, or what Spark's text has as a reason.

    That is what Python code has raised, such as a function of `foreachBatch`, and otherwise the first line.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    ours = [line for line in lines if line.startswith("ots_tunnel.errors.")]
    raised = _raised(str(error).splitlines())
    theirs = raised or [line.removeprefix(": ") for line in lines if not _CALL.fullmatch(line)]
    return one_line(ours[-1] if ours else (theirs or lines or [type(error).__name__])[0])


def _raised(lines: Sequence[str]) -> list[str]:
    """The line behind the last traceback of Python, or that of Java's error, which Python had from its bridge."""
    starts = [number for number, line in enumerate(lines) if line.endswith(_TRACEBACK)]
    behind = [line for line in lines[starts[-1] + 1 :] if line and not line[0].isspace()] if starts else []
    return [line.removeprefix(": ") for line in behind if not _CALL.search(line)][:1]


def is_final(error: TunnelError) -> bool:
    """Whether another driver would meet the error as well: it is about rows or tables.

    Rights and quotas change while a copy runs.
    """
    if not isinstance(error, SinkRejected | ServiceError):
        return False
    return isinstance(service_error(error.code, error.message), ParameterInvalid | RowRejected | ObjectNotExist)


def ends_query(line: str) -> bool:
    """Whether the line of a failed query tells of an error that no other attempt repairs; Spark leaves only text."""
    found = _OUR_ERROR.match(line)
    kind = None if found is None else getattr(errors, found[1], None)
    return isinstance(kind, type) and issubclass(kind, _ENDS_QUERY)


def told(line: str) -> str:
    """The line without the name of our error's class."""
    found = _OUR_ERROR.match(line)
    return line if found is None else line[found.end() :]
