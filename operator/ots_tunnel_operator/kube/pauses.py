"""Pauses that the API server asks for (Retry-After): until then the call is not sent again, whoever repeats it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

#: Longest pause in seconds that is made for one refusal; then the API server is asked again.
LONGEST_SECONDS = 60.0


class Pauses:
    """What is left of each call's pause.

    Args:
        clock: seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until: dict[str, float] = {}

    def ask(self, call: str, seconds: float) -> None:
        """The API server wants a call only after so many seconds; of two pauses the longer one counts."""
        now = self._clock()
        self._until = {known: until for known, until in self._until.items() if until > now}
        self._until[call] = max(self._until.get(call, 0.0), now + min(seconds, LONGEST_SECONDS))

    def left(self, call: str) -> float:
        """Seconds until a call may be sent."""
        return max(0.0, self._until.get(call, 0.0) - self._clock())

    async def end(self, call: str) -> None:
        """Wait until a call may be sent, also where its pause grows meanwhile.

        Secrets are watched by one path, each by its name, and each refusal has a pause of its own.
        """
        while True:
            left = self.left(call)
            if not left:
                return
            await asyncio.sleep(left)
