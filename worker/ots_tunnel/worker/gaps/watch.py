"""The watch of one open stream channel: asked about every page before the sink gets it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ots_tunnel.client.tunnel import Page
from ots_tunnel.model import ChannelId, Token
from ots_tunnel.protocol.page import reached_log_end
from ots_tunnel.protocol.possible_gap import SHORTEST_RETENTION, Gap, possible_gap, read_on
from ots_tunnel.worker.gaps.service_view import LONG_PAUSE, ServiceView


@dataclass(frozen=True, slots=True)
class LastPage:
    """The last page that was read of a channel: its next token, and until when everything is read with it."""

    token: Token
    read_until: float | None


@dataclass(frozen=True, slots=True)
class WatchParts:
    """What the watches of one worker share.

    Args:
        service: says what the stream has kept.
        found: called with every gap; raises PossibleGap where the settings say Stop.
        last_pages: kept by the watches, for channels that come back.
        wall: Unix seconds, where an answer has no time.
    """

    service: ServiceView
    found: Callable[[ChannelId, Gap], None]
    last_pages: dict[ChannelId, LastPage]
    wall: Callable[[], float]


@dataclass(slots=True)
class GapWatch:
    """One open stream channel.

    Args:
        read_until: Unix seconds until which everything is read; None is unknown.
    """

    parts: WatchParts = field(repr=False)
    channel_id: ChannelId
    read_until: float | None

    async def check(self, page: Page, end_us: int | None) -> None:
        """Report the changes that may be missing before a page.

        Args:
            end_us: Unix microseconds after which nothing matters; None means that everything does.

        Raises:
            PossibleGap: changes may be missing, and the settings say Stop.
            TransportError, ServerUnavailable: the retention cannot be asked for at present.
        """
        if (gap := await self.gap_before(page, end_us)) is not None:
            self.parts.found(self.channel_id, gap)
        _, last = _commit_times(page)
        reached_end = reached_log_end(page.may_more, page.rows)
        self.read_until = read_on(self.read_until, answered=self._answered(page), last=last, reached_end=reached_end)
        self.parts.last_pages[self.channel_id] = LastPage(page.next_token, self.read_until)

    async def gap_before(self, page: Page, end_us: int | None) -> Gap | None:
        """The changes that may be missing before a page; arguments and errors as in `check`, which reports them."""
        answered = self._answered(page)
        if self.read_until is None or answered - self.read_until <= LONG_PAUSE * SHORTEST_RETENTION:
            return None
        stream = await self.parts.service.stream()
        until = self.parts.service.within_stream(self.read_until, stream)
        gap = possible_gap(until, answered=answered, first=_commit_times(page)[0], retention=stream.retention)
        if gap is None or end_us is None:
            return gap
        return Gap(gap.start, min(gap.end, end_us / 1e6)) if gap.start < end_us / 1e6 else None

    def _answered(self, page: Page) -> float:
        return page.service_time if page.service_time is not None else self.parts.wall()


def _commit_times(page: Page) -> tuple[float | None, float | None]:
    """Unix seconds at which the first and the last record of a page were committed; None without records."""
    if not page.records:
        return None, None
    first, last = page.records[0].sequence, page.records[-1].sequence
    return (None if first is None else first.timestamp_us / 1e6), (None if last is None else last.timestamp_us / 1e6)
