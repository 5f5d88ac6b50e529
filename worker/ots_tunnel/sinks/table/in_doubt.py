"""How long a request whose answer is missing may still take effect: what follows it has to wait for that."""

from __future__ import annotations

import time

from ots_tunnel.fence import Guard
from ots_tunnel.sinks.table.delivery import Pause


class Doubt:
    """The guard of one request after the other, which remembers until when the last one may take effect.

    Args:
        guard: asked before every request (docs/architecture.md rule 4).
        deadline: seconds a request may take.
    """

    def __init__(self, guard: Guard, deadline: float) -> None:
        self._guard = guard
        self._deadline = deadline
        self._until = float("-inf")

    def __repr__(self) -> str:
        return f"Doubt(until {self._until})"

    def check(self) -> None:
        """Ask right before a request goes out; see `Guard.check`.

        Raises:
            OwnershipLost: the guard forbids to send.
        """
        self._guard.check()
        self._until = time.monotonic() + self._deadline

    def pause(self, step: Pause) -> float:
        """Seconds to wait before the next request, so that no later change can be overtaken by this one."""
        return max(step.seconds, self._until - time.monotonic()) if step.in_doubt else step.seconds
