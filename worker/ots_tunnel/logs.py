"""JSON logs on standard error, set up once by a command.

A line has a stable sentence and fixed keys: `action`, `tunnel_id`, `client_id`, `channel_id`, `request_id`, `rows`,
`bytes`, `duration`, `error`, `left_out`. Row contents and tokens never appear, nor do keys but that of a record that
was refused for good: somebody has to find it.
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
#: Different warnings that are remembered; beyond it the oldest is forgotten, and written when it comes again.
REMEMBERED = 1000

_OF_EVERY_RECORD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime"}
#: Request ids and the like differ every time and say nothing new.
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


class JsonLine(JsonFormatter):
    """One line of worker and operator alike: time in UTC, level, logger, message, then the record's own keys."""

    def __init__(self) -> None:
        super().__init__(
            ["asctime", "levelname", "name", "message"],
            rename_fields={"asctime": "time", "levelname": "level", "name": "logger"},
            # Foreign libraries put their objects into records: what kind it was is enough.
            json_default=lambda value: type(value).__name__,
        )

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        """RFC 3339 with milliseconds."""
        moment = datetime.fromtimestamp(record.created, UTC)
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class StandardError(logging.StreamHandler[TextIO]):
    """Writes to what `sys.stderr` is at the moment: while a progress bar is shown, lines belong above it."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        self.stream = sys.stderr
        super().emit(record)


@dataclass(slots=True)
class _Seen:
    since: float
    left_out: int = 0


class RepeatedWarnings(logging.Filter):
    """Lets a warning pass once per minute; `left_out` of the next one is how many like it were not written.

    Two warnings are the same when sentence and keys are, but for ids of requests. Other levels always pass.

    Args:
        clock: seconds, monotonic.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._seen: OrderedDict[Hashable, _Seen] = OrderedDict()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to write a record."""
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
    """Write JSON lines from `level` on to standard error."""
    handler = StandardError()
    handler.setFormatter(JsonLine())
    handler.addFilter(RepeatedWarnings())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
