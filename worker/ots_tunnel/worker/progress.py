"""What is known of one channel's progress: counts, and up to which time it was consumed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from ots_tunnel.model import ChannelId, ChannelType
from ots_tunnel.worker.read_page import ReadPage

#: An idle channel is read at least every 6.25 s; a look that is older than this says nothing of now, seconds.
LOOK_LASTS = 15.0


@dataclass(slots=True)
class ChannelProgress:
    """Mutable figures of one open channel; times are Unix seconds, None is unknown.

    Args:
        consumed_up_to: everything the log had until then is confirmed.
        caught_up_time: the service's time of the last read that reached the log's end, all before it confirmed.
        end_reached: everything up to the end time is confirmed, and nothing more is read.
        error: what stopped the channel last, until a page is confirmed again.
        last_look: when, by `clock`, the log's end was reached; None when the last read did not reach it or when
            anything read is unconfirmed.
        clock: monotonic seconds.
    """

    channel_id: ChannelId
    channel_type: ChannelType
    rows: int = 0
    size_bytes: int = 0
    consumed_up_to: float | None = None
    caught_up_time: float | None = None
    finished: bool = False
    end_reached: bool = False
    error: str | None = None
    unconfirmed_pages: int = field(default=0, repr=False)
    last_look: float | None = field(default=None, repr=False)
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)
    _read_at: float = field(default=0.0, repr=False)

    @property
    def caught_up(self) -> bool:
        """Whether a look at the log's end a moment ago found nothing that is not confirmed.

        Reads that fail, or wait for room or for a turn, let it lapse: unknown is not caught up.
        """
        return self.last_look is not None and self.clock() - self.last_look <= LOOK_LASTS

    def page_read(self, page: ReadPage) -> None:
        """A page has come and waits for the sink."""
        self.unconfirmed_pages += 1
        self._read_at = self.clock()
        if page.rows:
            self.last_look = None

    def page_confirmed(self, page: ReadPage) -> None:
        """The sink has confirmed a page."""
        self.unconfirmed_pages -= 1
        self.error = None
        self.rows += page.rows
        self.size_bytes += page.answer.size_bytes if page.rows else 0
        if self.channel_type is not ChannelType.STREAM:
            return
        if page.position is not None:
            self._advance(page.position.timestamp_us / 1e6)
        if not page.reached_log_end:
            self.last_look = None
            return
        if page.answer.service_time is not None:
            self.caught_up_time = page.answer.service_time
            self._advance(page.answer.service_time)
        # With nothing unconfirmed this page is the one that was read last.
        self.last_look = self._read_at if self.unconfirmed_pages == 0 else None

    def lag(self, now: float) -> float | None:
        """Seconds between `now` and the consume point; None for base channels and while unknown."""
        if self.channel_type is not ChannelType.STREAM:
            return None
        if self.finished or self.end_reached:
            return 0.0
        return None if self.consumed_up_to is None else max(0.0, now - self.consumed_up_to)

    def _advance(self, time: float) -> None:
        self.consumed_up_to = max(self.consumed_up_to or 0.0, time)
