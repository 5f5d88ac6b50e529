"""The progress of one channel: counts, consume point, and whether it is caught up.

`Consumption` is the only writer; the status reads it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ots_tunnel.fence import boottime
from ots_tunnel.model import ChannelId, ChannelType
from ots_tunnel.worker.pages.read_page import ReadPage

#: Seconds for which a read that reached the log's end counts as caught up. An idle channel is read at least every
#: 6.75 s (5 s, a jitter of a quarter and a tick, see `protocol.idle_read`), so two reads fit in.
LOOK_LASTS = 15.0
#: Unix seconds from which on no date is left, at the end of the year 9999: a time behind it tells nothing.
NO_DATE = 253_402_300_800.0


@dataclass(slots=True)
class ChannelProgress:
    """Mutable figures of one open channel; times are Unix seconds, None is unknown.

    Args:
        consumed_up_to: the consume point: everything committed until then is confirmed.
        caught_up_time: the service's time of the last confirmed read that reached the log's end.
        end_reached: everything up to the end time is confirmed, and nothing more is read.
        error: the last failure, until a page is confirmed again.
        last_look: when a read that reached the log's end began, by `clock`; None when the last read did not reach it,
            or when a page is unconfirmed. An answer may come late: it shows the log as it was when it was asked for.
        clock: seconds since boot, suspended time included.
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
    clock: Callable[[], float] = field(default=boottime, repr=False)

    @property
    def caught_up(self) -> bool:
        """Whether a read that began in the last seconds reached the log's end and everything before it is confirmed.

        It lapses while reads fail or wait for room or for a slot: unknown is not caught up.
        """
        return self.last_look is not None and self.clock() - self.last_look <= LOOK_LASTS

    def page_read(self, page: ReadPage) -> None:
        """A page has come and waits for the sink."""
        self.unconfirmed_pages += 1
        if page.rows or not page.reached_log_end:
            self.last_look = None

    def page_confirmed(self, page: ReadPage) -> None:
        """The sink has confirmed a page, or several that were joined to one."""
        self.unconfirmed_pages -= page.pages
        self.error = None
        self.rows += page.rows
        self.size_bytes += page.answer.size_bytes if page.rows else 0
        if self.channel_type is not ChannelType.STREAM:
            return
        if page.position is not None:
            self._advance(page.position.timestamp_us / 1e6)
        if page.caught_up_time is not None:
            self.caught_up_time = page.caught_up_time
            self._advance(page.caught_up_time)
        if not page.reached_log_end:
            self.last_look = None
            return
        # With nothing unconfirmed this page is the one that was read last.
        self.last_look = page.asked_at if self.unconfirmed_pages == 0 else None

    def stopped_at(self, end: float) -> None:
        """Everything committed until the end time is confirmed, and nothing more is read."""
        self.end_reached = True
        self._advance(end)

    def lag(self, now: float) -> float | None:
        """Seconds from the consume point to `now`, by the service's clock; None for base channels and while unknown."""
        if self.channel_type is not ChannelType.STREAM:
            return None
        if self.finished or self.end_reached:
            return 0.0
        return None if self.consumed_up_to is None else max(0.0, now - self.consumed_up_to)

    def _advance(self, time: float) -> None:
        if time < NO_DATE:
            self.consumed_up_to = max(self.consumed_up_to or 0.0, time)
