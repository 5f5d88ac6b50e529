"""What is known of one channel's progress: counts, and up to which time it was consumed."""

from __future__ import annotations

from dataclasses import dataclass, field

from ots_tunnel.client import Page
from ots_tunnel.model import ChannelId, ChannelType, SequenceInfo


@dataclass(slots=True)
class ChannelProgress:
    """Mutable figures of one open channel; times are Unix seconds, None is unknown.

    Args:
        consumed_up_to: everything the log had until then is confirmed.
        caught_up_time: the service's time of the last read that reached the log's end, all before it confirmed.
        caught_up: nothing read is unconfirmed, and the last read reached the log's end.
        error: what stopped the channel last, until a page is confirmed again.
    """

    channel_id: ChannelId
    channel_type: ChannelType
    rows: int = 0
    size_bytes: int = 0
    consumed_up_to: float | None = None
    caught_up_time: float | None = None
    caught_up: bool = False
    finished: bool = False
    error: str | None = None
    unconfirmed_pages: int = field(default=0, repr=False)

    def page_read(self, page: Page) -> None:
        """A page has come and waits for the sink."""
        self.unconfirmed_pages += 1
        if page.records:
            self.caught_up = False

    def page_confirmed(self, page: Page, last: SequenceInfo | None) -> None:
        """The sink has confirmed a page; `last` is the position of its last record, None where it has none."""
        self.unconfirmed_pages -= 1
        self.error = None
        self.rows += len(page.records)
        self.size_bytes += page.size_bytes if page.records else 0
        if self.channel_type is not ChannelType.STREAM:
            return
        if last is not None:
            self._advance(last.timestamp_us / 1e6)
        if reached_end(page):
            if page.service_time is not None:
                self.caught_up_time = page.service_time
                self._advance(page.service_time)
            self.caught_up = self.unconfirmed_pages == 0
        else:
            self.caught_up = False

    def lag(self, now: float) -> float | None:
        """Seconds between `now` and the consume point; None for base channels and while unknown."""
        if self.channel_type is not ChannelType.STREAM:
            return None
        if self.finished:
            return 0.0
        return None if self.consumed_up_to is None else max(0.0, now - self.consumed_up_to)

    def _advance(self, time: float) -> None:
        self.consumed_up_to = max(self.consumed_up_to or 0.0, time)


def reached_end(page: Page) -> bool:
    """Whether the page ends where the log ended when it was read (tunnel-protocol 4.7)."""
    return not page.records if page.may_more is None else not page.may_more
