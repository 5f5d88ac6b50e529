"""The last calls, as the admin page shows them: never keys, secrets or row contents."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

#: Calls that are remembered.
KEPT = 200


@dataclass(frozen=True, slots=True)
class CallRecord:
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
    """The newest calls."""

    def __init__(self, kept: int = KEPT) -> None:
        self._calls: deque[CallRecord] = deque(maxlen=kept)

    def add(self, call: CallRecord) -> None:
        """Remember a call, forget the oldest one."""
        self._calls.append(call)

    def newest_first(self) -> list[CallRecord]:
        """Return what is remembered."""
        return list(reversed(self._calls))
