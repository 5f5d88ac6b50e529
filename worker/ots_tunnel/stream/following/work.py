"""The work on one shard: what reads its records and brings them somewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ots_tunnel.stream.decide.consumer import Event

#: Tells the shard's machine what has happened on the way.
Report = Callable[[Event], None]


class ShardWork(Protocol):
    """Reads one shard once, from the checkpoint of its lease on."""

    @property
    def has_moved(self) -> bool:
        """Whether it has processed a page: a failure after that is a new one."""
        ...

    async def run(self, report: Report) -> Event:
        """Read until the end, a failure or the order to stop; no write is in flight when it returns.

        It reports OPENED, and END_REACHED before it stores SHARD_END.

        Returns:
            ENDED, DRAINED, FAILED, DONE or RESTART.

        Raises:
            CancelledError: the lease was lost.
        """
        ...

    def stop(self) -> None:
        """Finish the present records, store the checkpoint, and let `run` return."""
        ...
