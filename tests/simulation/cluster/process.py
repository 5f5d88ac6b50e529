"""A process that a pod runs, as the kubelet sees it."""

from __future__ import annotations

from typing import Protocol


class Process(Protocol):
    """One container's process; it starts when it is made."""

    async def wait(self) -> int:
        """The exit code, when the process has ended."""
        ...

    def terminate(self) -> None:
        """Send SIGTERM."""
        ...

    def kill(self) -> None:
        """End it at once: nothing of it runs any more."""
        ...

    @property
    def is_ready(self) -> bool:
        """What its readiness probe says."""
        ...

    @property
    def is_live(self) -> bool:
        """What its liveness probe says."""
        ...

    @property
    def message(self) -> str:
        """Its termination message."""
        ...
