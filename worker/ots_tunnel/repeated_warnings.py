"""Warnings that say the same again and again are written once a minute, with how many were left out."""

from __future__ import annotations

import logging
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass

#: Seconds for which the same warning is not written again.
WINDOW = 60.0
#: Different warnings that are remembered; beyond it the oldest is forgotten, and written when it comes again.
REMEMBERED = 1000

_OF_EVERY_RECORD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime"}
#: Request ids and the like differ every time and say nothing new.
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


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
