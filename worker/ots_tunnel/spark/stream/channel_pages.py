"""The pages of one channel between the tunnel and Spark. Pure; the clock's time is a parameter.

When a channel is opened again, its records come again from its last checkpoint, which is behind what Spark has logged.
What is logged is told by the position's mark, and left out. A page of which nothing is left is confirmed with the batch
that has its records.

A channel is in Spark's log before the service has a checkpoint behind its first page, so that this page waits for a
batch, also without records: a later process knows by that which channels another client has read (`offsets`).

Any other page without records moves no offset: an idle table makes no batches. The token of an idle channel gets old
with that, and the service does not keep the log forever. So every `REFRESH_SECONDS` a page without records goes into a
batch. The batch tells until when the channel was read as well: where the service leaves the token of an idle channel
as it is, no token and no consume point would prove to the next process, after the stream's retention, that nothing is
missing. The age of a position is that of the time it tells, by the service's clock: the runs of a query may be shorter
than `REFRESH_SECONDS` and far apart. Of a channel of which the log tells neither a time nor a record, the first idle
page goes into a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import ceil, floor, inf
from typing import Final

from ots_tunnel.errors import SinkRejected
from ots_tunnel.model import FINISHED, ChannelId, SequenceInfo, Token
from ots_tunnel.protocol.page import total_size
from ots_tunnel.protocol.possible_gap import Gap
from ots_tunnel.protocol.record import Record
from ots_tunnel.spark.stream.batch_plan import WaitingPage
from ots_tunnel.spark.stream.marks import Mark, is_behind, mark_of, rows_until
from ots_tunnel.spark.stream.offsets import Position
from ots_tunnel.spark.stream.page_states import PageEvent, PageState, step

#: Own choice: a sixth of the shortest retention of a stream, and one batch without records in ten minutes costs little.
REFRESH_SECONDS: Final = 600.0


@dataclass(frozen=True, slots=True)
class GivenPage:
    """A page as the worker gives it.

    Args:
        number: of the page since its channel was opened.
        confirm: called once when Spark has committed every record of it.
    """

    number: int
    start: Token = field(repr=False)
    following: Token = field(repr=False)
    records: Sequence[Record] = field(repr=False)
    confirm: Callable[[], None] = field(repr=False)


@dataclass(slots=True, eq=False)
class _HeldPage:
    facts: WaitingPage
    records: Sequence[Record] = field(repr=False)
    confirm: Callable[[], None] = field(repr=False)
    state: PageState = PageState.WAITING

    @property
    def following_when_idle(self) -> Token | None:
        """The token behind a first page without records: until when the channel was read is told by the next batch."""
        is_idle = not self.facts.rows and self.facts.following != FINISHED and self.confirm is not _nothing
        return self.facts.following if is_idle else None


class ChannelPages:
    """Holds a channel's pages until Spark has committed them.

    Args:
        position: where the query stands; None for a channel that it does not know yet.
        now: monotonic seconds.
    """

    def __init__(self, channel_id: ChannelId, position: Position | None, now: float) -> None:
        self._channel_id = channel_id
        self._position = position
        self._read: Mark | None = None
        #: Whether records up to the position's mark may come again.
        self._passing = False
        self._pages: list[_HeldPage] = []
        #: Tokens that a checkpoint of this query may have, each with its page since the channel was opened last.
        self._tokens: dict[Token, int] = {} if position is None else {position.token: 0}
        self._idle: Token | None = None
        self._moved = now
        self._last_page: int | None = None
        #: Whether the channel was opened at a checkpoint that is not of this query.
        self._is_elsewhere = False
        self._gap = None if position is None else position.gap
        #: Whether Spark has committed an offset that knows the channel.
        self._is_logged = position is not None
        #: Whether the service has stored the end of the channel: it never comes again.
        self.is_over = False

    def __repr__(self) -> str:
        return f"ChannelPages({self._channel_id}, {len(self._pages)} pages)"

    @property
    def size_bytes(self) -> int:
        """Bytes of the records that are held."""
        return sum(page.facts.size_bytes for page in self._pages)

    @property
    def is_empty(self) -> bool:
        """Whether every page is committed."""
        return not self._pages

    def begin(self, start: Token) -> None:
        """The channel is opened at a checkpoint; see `check`."""
        self.abandon()
        if self._position is None:
            self._position = Position(start)
        self._is_elsewhere = start not in self._tokens and bool(self._tokens)
        self._tokens = dict.fromkeys(self._tokens, 0) | {start: 0}
        self._read, self._passing, self._idle = self._position.last, True, None

    def check(self, gap: Gap | None) -> None:
        """Refuse the first page behind a checkpoint that is not one of this query.

        The service itself moves a checkpoint to what is left of the log, where changes are gone. The worker has told of
        these before its first page comes.

        Args:
            gap: what the worker has found missing since `begin`; None is nothing.

        Raises:
            SinkRejected: another client has moved the channel.
        """
        if self._is_elsewhere and gap is None:
            raise SinkRejected(
                "CheckpointMoved",
                f"channel {self._channel_id}: found a checkpoint that is not of this query, so another client consumes "
                "the tunnel; allowed is one query, or one group of workers, on a tunnel",
            )
        self._is_elsewhere = False
        if gap is not None:
            self._gap = Gap(floor(gap.start), ceil(gap.end))

    def take(self, page: GivenPage, arrival: int) -> bool:
        """Hold a page; False for one that is confirmed at once, because nothing of it has to be committed.

        Args:
            arrival: see `WaitingPage.number`.

        Raises:
            CodecError: a record is malformed. SinkRejected: the records are not in order.
        """
        records = self._new(page.records)
        self._tokens[page.following] = page.number
        ends = page.following == FINISHED
        if ends:
            self._last_page = page.number
        # a page that came again as a whole; the end of a channel counts like a record
        again = not records and (self._has_ended if ends else bool(page.records))
        if not records and not again and not ends and not self._is_news_to_log:
            if not self.has_waiting:
                self._idle = page.following
            page.confirm()
            return False
        if again and not self._pages:
            page.confirm()
            return False
        if records:
            self._read, self._idle = mark_of(records[-1]), None
        last = self._read if records else None
        size = total_size(list(records))
        facts = WaitingPage(arrival, page.start, page.following, len(records), size, last, gap=self._gap)
        # what came again is in the batch that is under way
        self._pages.append(_HeldPage(facts, records, page.confirm, PageState.IN_BATCH if again else PageState.WAITING))
        return True

    def abandon(self) -> None:
        """The channel is closed: what no batch has comes again."""
        for page in self._pages:
            page.state = step(page.state, PageEvent.ABANDONED)
        # an orphan without records is only a confirmation, which has ended; not so the end of the channel
        orphans = [page for page in self._pages if page.state is PageState.ORPHANED]
        self._pages = [page for page in orphans if page.facts.rows or page.facts.following == FINISHED]
        self._last_page, self._idle = None, None

    def is_due(self, now: float, until: float | None, share: float = 1.0) -> bool:
        """Whether the position is old, and a page without records would make it newer.

        Args:
            until: Unix seconds until which the channel was read to its end; None is unknown.
            share: of `REFRESH_SECONDS`, the age from which on it is old.
        """
        if self._idle is None or self._pages:
            return False
        # the same token and time would make the same offset, which Spark takes for no batch
        if self._idle in self._at and not self._is_news(_whole(until)):
            return False
        return max(now - self._moved, self._seconds_behind(until)) >= share * REFRESH_SECONDS

    def waiting(self, now: float, arrival: int, until: float | None = None, share: float = 1.0) -> list[WaitingPage]:
        """The pages that no batch has; one without records if the position is old.

        Args:
            arrival: number of such a page.
            until, share: as for `is_due`.
        """
        if self._idle is not None and self.is_due(now, until, share):
            facts = WaitingPage(arrival, self._idle, self._idle, 0, 0, None, _whole(until), self._gap)
            self._pages.append(_HeldPage(facts, (), _nothing))
        return [page.facts for page in self._pages if page.state is PageState.WAITING]

    def planned(self, count: int, position: Position, now: float) -> None:
        """A batch has the first `count` of the waiting pages, and ends at a position."""
        for page in [page for page in self._pages if page.state is PageState.WAITING][:count]:
            page.state = step(page.state, PageEvent.PLANNED)
        self._position, self._moved, self._idle = position, now, None
        self._tokens.setdefault(position.token, 0)

    def in_batch(self) -> list[Record]:
        """The records that the batch under way has."""
        kept = (PageState.IN_BATCH, PageState.ORPHANED)
        return [record for page in self._pages if page.state in kept for record in page.records]

    def committed(self, *, is_logged: bool) -> None:
        """Spark has committed the batch under way.

        Args:
            is_logged: whether its offset knows the channel.
        """
        self._is_logged = self._is_logged or is_logged
        left = []
        for page in self._pages:
            if page.state is PageState.WAITING:
                left.append(page)
                continue
            page.state = step(page.state, PageEvent.COMMITTED)
            if page.state is PageState.CONFIRMED:
                page.confirm()
                self._idle = self._idle or page.following_when_idle
        self._pages = left
        if left:
            self._idle = None

    def stored(self, number: int) -> None:
        """The service has stored a checkpoint behind the page with this number."""
        self._tokens = {token: page for token, page in self._tokens.items() if page >= number}
        if self._position is not None:
            self._tokens.setdefault(self._position.token, number)
        self.is_over = self._last_page is not None and number >= self._last_page

    @property
    def _at(self) -> tuple[Token, ...]:
        return () if self._position is None else (self._position.token,)

    @property
    def _is_news_to_log(self) -> bool:
        """Whether no page of the opened channel leads it into the log; what comes later is confirmed after that one."""
        return not self._is_logged and all(page.state is PageState.ORPHANED for page in self._pages)

    def _is_news(self, until: int | None) -> bool:
        """Whether a time is later than that of the position."""
        known = None if self._position is None else self._position.until
        return until is not None and (known is None or until > known)

    def _seconds_behind(self, until: float | None) -> float:
        """How far the time that the position tells is behind `until`."""
        if until is None or self._position is None:
            return 0.0
        if self._position.until is not None:
            return until - self._position.until
        last = self._position.last
        if isinstance(last, SequenceInfo):
            return until - last.timestamp_us / 1e6
        return inf  # the log tells nothing yet: a restart would look at the channel as if it had never been read

    @property
    def _has_ended(self) -> bool:
        """Whether a batch has the end of the channel."""
        return FINISHED in self._at

    @property
    def has_waiting(self) -> bool:
        """Whether there is a page that no batch has."""
        return any(page.state is PageState.WAITING for page in self._pages)

    def _new(self, records: Sequence[Record]) -> Sequence[Record]:
        """The records that were not given before."""
        if not records or self._read is None:
            self._passing = self._passing and not records
            return records
        if self._passing:
            found = records[rows_until(records, self._read) :]
            self._passing = not found
            return found
        if not is_behind(mark_of(records[0]), self._read):
            # leaving them out could lose records, and a batch with them could not be found again
            raise SinkRejected(
                "OutOfOrder", f"channel {self._channel_id}: found a record that is not behind the one before it"
            )
        return records


def _whole(until: float | None) -> int | None:
    return None if until is None else floor(until)


def _nothing() -> None:
    """A page without records that is only a token has nothing to confirm."""
