"""Progress of a replication: figures, the share that is done, one line of text. Pure.

While existing rows are copied, the share counts finished base channels. While changes are followed, it is the consumed
part of the time up to the end; the time left follows from the pace of the last 30 s, and is never less than the time
until an end in the future.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from ots_tunnel.console.progress_bar import duration
from ots_tunnel.model import ChannelStatus, ChannelType, Stage, TunnelDescription

#: Seconds over which the pace is measured; own choice, long enough to smooth single pages.
WINDOW = 30.0


@dataclass(slots=True)
class ReplicationMeter:
    """Figures of one run; times are Unix seconds.

    Args:
        end: end time.
        elsewhere: unfinished channels that other clients hold.
        wall: clock.
    """

    end: float
    wall: Callable[[], float]
    rows: int = 0
    rows_per_second: float = 0.0
    lag: float | None = None
    stage: str = ""
    base_done: int = 0
    base_total: int = 0
    elsewhere: int = 0
    consumed: float = 0.0
    first_consumed: float = 0.0
    _pace: deque[tuple[float, float]] = field(default_factory=deque, repr=False)

    def describe(self, tunnel: TunnelDescription) -> None:
        """Update stage, base channels and consume point from a description of the tunnel."""
        self.stage = tunnel.tunnel.stage
        base = [channel for channel in tunnel.channels if channel.channel_type is ChannelType.BASE]
        self.base_total = len(base)
        self.base_done = sum(channel.status is ChannelStatus.TERMINATED for channel in base)
        consumed = tunnel.consume_point_ns / 1e9
        if self.stage == Stage.STREAM and consumed:
            self.consumed = consumed
            self.first_consumed = self.first_consumed or consumed
            now = self.wall()
            self._pace.append((now, consumed))
            while len(self._pace) > 2 and now - self._pace[1][0] >= WINDOW:
                self._pace.popleft()

    @property
    def share(self) -> float | None:
        """Share of the current phase that is done, 0 to 1; None before the first figures."""
        if self.stage == Stage.BASE and self.base_total:
            return self.base_done / self.base_total
        if self.stage != Stage.STREAM or not self.first_consumed:
            return None
        whole = self.end - self.first_consumed
        return 1.0 if whole <= 0 else min(1.0, max(0.0, (self.consumed - self.first_consumed) / whole))

    def seconds_left(self, seconds: float) -> float | None:
        """Estimate for the current phase; None if there are too few figures.

        Args:
            seconds: time since the run began.
        """
        if self.stage == Stage.BASE:
            left = self.base_total - self.base_done
            return left * seconds / self.base_done if self.base_done else None
        if self.stage != Stage.STREAM or len(self._pace) < 2:
            return None
        (since, base), (now, consumed) = self._pace[0], self._pace[-1]
        if consumed >= self.end:
            return 0.0
        pace = (consumed - base) / (now - since) if now > since else 0.0
        until_end = max(0.0, self.end - self.wall())
        return max(until_end, (self.end - consumed) / pace) if pace > 0 else None

    def line(self, seconds: float) -> str:
        """One line of progress, `seconds` after the run began."""
        parts = [self._phase(), f"{self.rows:,} rows", f"{self.rows_per_second:,.0f} rows/s"]
        if self.stage == Stage.STREAM and self.lag is not None:
            parts.append(f"lag {duration(self.lag)}")
        if self.elsewhere:
            parts.append(f"waiting for {self.elsewhere:,} channels of another client")
        if (left := self.seconds_left(seconds)) is not None:
            parts.append(f"about {duration(left)} left")
        return ", ".join(parts)

    def _phase(self) -> str:
        match self.stage:
            case Stage.BASE:
                return f"existing rows: {self.base_done}/{self.base_total} channels"
            case Stage.STREAM:
                return "changes"
            case _:
                return "waiting for the tunnel's channels"
