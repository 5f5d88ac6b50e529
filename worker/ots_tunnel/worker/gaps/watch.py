"""The watch of one open stream channel: asked about every page before the sink gets it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ots_tunnel.client.page import Page
from ots_tunnel.model import ChannelId, Token
from ots_tunnel.protocol.page import reached_log_end
from ots_tunnel.protocol.possible_gap import SHORTEST_RETENTION, Gap, gap_of_refusal, possible_gap, read_on
from ots_tunnel.worker.gaps.service_view import LONG_PAUSE, ServiceView

#: A token at which a channel stood for longer than this is remembered, seconds.
STOOD_FOR = LONG_PAUSE * SHORTEST_RETENTION
#: How many of them; more than so many long silences are not left unconfirmed.
REMEMBERED = 16


@dataclass(slots=True)
class KnownTokens:
    """Until when everything before a token's next record is read, of one channel: at its last token, and at those where
    it stood for long, to which a failed write may lead back.

    Args:
        last: the next token of the last page.
        moved: until when everything was read as the channel came to that token; None is unknown.
        read_until: and until when since; None is unknown.
    """

    last: Token
    moved: float | None
    read_until: float | None
    stood: dict[Token, float] = field(default_factory=dict)

    def at(self, token: Token) -> float | None:
        """Until when everything is read at a token; None is unknown."""
        return self.read_until if token == self.last else self.stood.get(token)

    def come_to(self, token: Token, moved: float | None, read_until: float | None) -> None:
        """A page was read."""
        if token != self.last:
            if self.read_until is not None and self.read_until - (self.moved or 0.0) > STOOD_FOR:
                self.stood[self.last] = self.read_until
            while len(self.stood) > REMEMBERED:
                del self.stood[next(iter(self.stood))]
            self.last, self.moved = token, moved
        self.read_until = read_until


@dataclass(frozen=True, slots=True)
class WatchParts:
    """What the watches of one worker share.

    Args:
        service: says what the stream has kept.
        found: called with every gap; raises PossibleGap where the settings say Stop.
        known: kept by the watches, for channels that come back.
        wall: Unix seconds, where an answer has no time.
    """

    service: ServiceView
    found: Callable[[ChannelId, Gap], None]
    known: dict[ChannelId, KnownTokens]
    wall: Callable[[], float]


@dataclass(slots=True)
class GapWatch:
    """One open stream channel.

    Args:
        token: of the next page.
        read_until: Unix seconds until which everything is read; None is unknown.
        was_refused: whether the next page is behind records that the service has dropped, as it said itself.
    """

    parts: WatchParts = field(repr=False)
    channel_id: ChannelId
    token: Token
    read_until: float | None
    was_refused: bool = False

    async def check(self, page: Page, end_us: int | None) -> None:
        """Report the changes that may be missing before a page.

        Args:
            end_us: Unix microseconds after which nothing matters; None means that everything does.

        Raises:
            PossibleGap: changes may be missing, and the settings say Stop.
            TransportError, ServerUnavailable: the retention cannot be asked for at present.
        """
        answered = page.service_time if page.service_time is not None else self.parts.wall()
        first, last = _commit_times(page)
        self._report(await self._gap(answered, first), end_us)
        self.was_refused = False
        until = self.read_until
        known = self.parts.known.setdefault(self.channel_id, KnownTokens(self.token, until, until))
        known.come_to(self.token, until, until)
        reached_end = reached_log_end(page.may_more, page.rows)
        self.read_until = read_on(until, answered=answered, last=last, reached_end=reached_end)
        known.come_to(page.next_token, self.read_until if last is None else last, self.read_until)
        self.token = page.next_token

    async def nothing_left(self, end_us: int | None) -> None:
        """Report what may be missing of a channel that the service has ended, so that it has no page any more.

        Args:
            end_us: as for `check`.

        Raises:
            PossibleGap, TransportError, ServerUnavailable: as `check`.
        """
        now = max(self.parts.wall(), self.parts.service.described_at or 0.0)  # the description may be an old one
        self._report(await self._gap(now, None), end_us)

    def _report(self, gap: Gap | None, end_us: int | None) -> None:
        end = None if end_us is None else end_us / 1e6
        if gap is not None and (end is None or gap.start < end):
            self.parts.found(self.channel_id, Gap(gap.start, gap.end if end is None else min(gap.end, end)))

    async def _gap(self, answered: float, first: float | None) -> Gap | None:
        if self.was_refused:
            return gap_of_refusal(self.read_until, answered=answered, first=first)
        if self.read_until is None or answered - self.read_until <= LONG_PAUSE * SHORTEST_RETENTION:
            return None
        stream = await self.parts.service.stream()
        until = self.parts.service.within_stream(self.read_until, stream)
        return possible_gap(until, answered=answered, first=first, retention=stream.retention)


def _commit_times(page: Page) -> tuple[float | None, float | None]:
    """Unix seconds at which the first and the last record of a page were committed; None without records."""
    if not page.records:
        return None, None
    first, last = page.records[0].sequence, page.records[-1].sequence
    return (None if first is None else first.timestamp_us / 1e6), (None if last is None else last.timestamp_us / 1e6)
