"""JSON logs on standard error, set up once by a command.

A line has a stable sentence, an action (`log_actions`) and the keys that belong to it. Row contents and tokens never
appear in logs, but for what a web service says of rows that it refuses. Of primary keys only that of a permanently
refused record does, because a user has to find the record.
A warning that repeats is written once a minute, with the number of those left out.
"""

from __future__ import annotations

import logging
import re
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TextIO

from pythonjsonlogger.json import JsonFormatter

#: Seconds for which the same warning is not written again.
WINDOW = 60.0
#: Different warnings in memory; beyond it the oldest is forgotten, and is written when it comes again.
REMEMBERED = 1000

_OF_EVERY_RECORD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime"}
#: Ids of requests, which differ in every warning.
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


class JsonLine(JsonFormatter):
    """Format of a line of worker and operator: time in UTC, level, logger, message, then the record's own keys."""

    def __init__(self) -> None:
        super().__init__(
            ["asctime", "levelname", "name", "message"],
            rename_fields={"asctime": "time", "levelname": "level", "name": "logger"},
            # Other libraries put objects into records; the name of the type is enough.
            json_default=lambda value: type(value).__name__,
        )

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        """RFC 3339 with milliseconds."""
        moment = datetime.fromtimestamp(record.created, UTC)
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class StandardError(logging.StreamHandler[TextIO]):
    """Writes to the current `sys.stderr`, which a progress bar replaces to print lines above itself."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        self.stream = sys.stderr
        super().emit(record)


@dataclass(slots=True)
class _Seen:
    since: float
    left_out: int = 0


class RepeatedWarnings(logging.Filter):
    """Passes equal warnings once per minute; `left_out` of the next one counts those in between.

    Two warnings are equal if their sentences and keys are, apart from ids of requests. Other levels always pass.

    Args:
        clock: seconds, monotonic.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._seen: OrderedDict[Hashable, _Seen] = OrderedDict()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to write the record."""
        if record.levelno != logging.WARNING:
            return True
        now, content = self._clock(), _content(record)
        seen = self._seen.get(content)
        if seen is not None and now - seen.since < WINDOW:
            seen.left_out += 1
            return False
        if seen is not None and seen.left_out:
            record.left_out = seen.left_out
        self._seen[content] = _Seen(now)
        self._seen.move_to_end(content)
        if len(self._seen) > REMEMBERED:
            self._seen.popitem(last=False)
        return True


def _content(record: logging.LogRecord) -> Hashable:
    extra = {name: value for name, value in record.__dict__.items() if name not in _OF_EVERY_RECORD}
    return record.name, _ID.sub("", f"{record.getMessage()} {sorted(extra.items())}")


def set_up_logs(level: str = "INFO") -> None:
    """Write JSON lines of `level` and above to standard error."""
    handler = StandardError()
    handler.setFormatter(JsonLine())
    handler.addFilter(RepeatedWarnings())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
