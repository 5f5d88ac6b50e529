"""Whether a channel whose next records the service has dropped may be opened once more. Pure.

A read of records that are past the retention is refused for good, but the service may have another cursor once the
channel is opened again. So it is opened once more: where that leads to the same refusal, the tunnel cannot go on. After
some progress the next refusal is another one. Progress is

    a page with records, confirmed behind the opening
    an hour: every stream keeps its records for that long at least, so what is dropped later was written later
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ots_tunnel.protocol.possible_gap import SHORTEST_RETENTION


@dataclass(frozen=True, slots=True)
class Reopening:
    """What is known of one channel on one client.

    Args:
        opened_at: seconds since boot at which it was opened once more; None is not at all, or progress since.
    """

    opened_at: float | None = None

    def may_open(self, now: float) -> bool:
        """Whether the channel may be opened once more."""
        return self.opened_at is None or now - self.opened_at >= SHORTEST_RETENTION

    def opened(self, now: float) -> Reopening:
        """The channel is opened once more."""
        return replace(self, opened_at=now)

    def confirmed(self, rows: int) -> Reopening:
        """A page was confirmed."""
        return replace(self, opened_at=None) if rows else self
