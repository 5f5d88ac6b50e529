"""History of calls for the admin page; it never contains keys, secrets or rows."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

#: Length of the history, which fills the admin page.
KEPT = 200


class CallRecord(NamedTuple):
    """One answered call; `time` in Unix seconds, `milliseconds` until the answer was ready, sizes in bytes."""

    time: float
    instance: str
    operation: str
    status: int
    code: str
    milliseconds: float
    request_bytes: int
    answer_bytes: int


class CallHistory:
    """The newest calls, up to a number."""

    def __init__(self, kept: int = KEPT) -> None:
        self._calls: deque[CallRecord] = deque(maxlen=kept)

    def add(self, call: CallRecord) -> None:
        """Add a call; the oldest one is dropped when the history is full."""
        self._calls.append(call)

    def newest_first(self) -> list[CallRecord]:
        """Return the calls, newest first."""
        return list(reversed(self._calls))
