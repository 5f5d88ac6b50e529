"""What lies between the tunnel and Spark: the pages of all channels, and the batch under way. Pure, for one thread at a
time; the clock is a parameter.

Theory of operation. Spark has at most one batch that is planned and not committed. Its calls, in their order:

    next_batch(start)   `start` is the end of the last batch that Spark has committed. If it is the end of the batch
                        under way, that batch is committed: its pages are confirmed, and checkpoints of the tunnel may
                        follow. Then the pages that wait make the next batch
    records_of(end)     the records of the batch under way, as often as it is planned

Spark's own call `commit` comes one batch later, and never for the last one: a channel that ends would keep its children
waiting until another one has records. So it is not used (docs/architecture.md 7).

Example: the batch under way ends at offset B. `next_batch(A)` returns B again, because A is the end of the batch
before: Spark has not committed B. `next_batch(B)` confirms the pages of B.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Final

from ots_tunnel.errors import InvalidTransition
from ots_tunnel.model import ChannelId, Token
from ots_tunnel.protocol.possible_gap import Gap
from ots_tunnel.protocol.record import Record
from ots_tunnel.spark.stream.batch_plan import WaitingPage, plan_batch
from ots_tunnel.spark.stream.channel_pages import ChannelPages, GivenPage
from ots_tunnel.spark.stream.offsets import Offset

#: Share of the time after which an idle channel needs a batch; from it on, a batch that is made anyway has it as well.
SOON: Final = 0.5


class Ledger:
    """Holds pages until Spark has committed them.

    Args:
        committed: the end of the last batch that Spark has committed.
        clock: monotonic seconds.
        over: see `Offset.carried`.
        read_until: Unix seconds until which a channel was read to its end and confirmed; None is unknown.
        gap_of: what the worker has last found missing of a channel, and has passed; None is nothing.
    """

    def __init__(
        self,
        committed: Offset,
        clock: Callable[[], float],
        over: frozenset[ChannelId] = frozenset(),
        *,
        read_until: Callable[[ChannelId], float | None] = lambda _: None,
        gap_of: Callable[[ChannelId], Gap | None] = lambda _: None,
    ) -> None:
        self._committed = committed
        self._under_way: Offset | None = None
        self._clock = clock
        self._arrivals = count(1)
        self._over = set(over)
        self._read_until = read_until
        self._gap_of = gap_of
        #: Of each channel the last gap before it was opened.
        self._gaps: dict[ChannelId, Gap | None] = {}
        self._channels = {
            channel_id: ChannelPages(channel_id, found.position, clock())
            for channel_id, found in committed.channels.items()
        }

    def __repr__(self) -> str:
        return f"Ledger({len(self._channels)} channels, {self.size_bytes} bytes)"

    @property
    def size_bytes(self) -> int:
        """Bytes of the records that are held."""
        return sum(pages.size_bytes for pages in self._channels.values())

    def begin(self, channel_id: ChannelId, start: Token) -> None:
        """A channel is opened at a checkpoint."""
        self._gaps[channel_id] = self._gap_of(channel_id)
        if channel_id not in self._channels:
            self._channels[channel_id] = ChannelPages(channel_id, None, self._clock())
        self._channels[channel_id].begin(start)

    def take(self, channel_id: ChannelId, page: GivenPage) -> bool:
        """Hold a page; False for one that is confirmed at once.

        Raises:
            CodecError: a record is malformed. SinkRejected: the records are not in order, or another client has moved
                the channel.
        """
        pages = self._channels[channel_id]
        gap = self._gap_of(channel_id)
        # the same times may be found anew, where nobody has confirmed what is behind them
        pages.check(None if gap is self._gaps.get(channel_id) else gap)
        return pages.take(page, next(self._arrivals))

    def abandon(self, channel_id: ChannelId) -> None:
        """A channel is closed before its pages were committed."""
        if channel_id in self._channels:
            self._channels[channel_id].abandon()

    def stored(self, channel_id: ChannelId, number: int) -> None:
        """The service has stored a checkpoint behind a page."""
        pages = self._channels.get(channel_id)
        if pages is None:
            return
        pages.stored(number)
        if pages.is_over:
            self._over.add(channel_id)
            del self._channels[channel_id]

    def is_empty(self, channel_id: ChannelId) -> bool:
        """Whether nothing of a channel is held."""
        return channel_id not in self._channels or self._channels[channel_id].is_empty

    @property
    def has_waiting(self) -> bool:
        """Whether there is something for a batch."""
        return any(self._waiting(self._clock()).values())

    def next_batch(self, start: Offset, limit_bytes: int) -> Offset:
        """The end of the next batch; `start` itself where nothing waits.

        Args:
            start: see the module.
            limit_bytes: of the records of the batch.

        Raises:
            InvalidTransition: `start` is neither the last batch nor the one before it.
        """
        if self._under_way is not None and start == self._under_way:
            self._committed, self._under_way = start, None
            for channel_id, pages in self._channels.items():
                pages.committed(is_logged=channel_id in start.channels)
        elif start != self._committed:
            raise InvalidTransition("a batch under way", "an offset that is not of this query's last batches")
        if self._under_way is not None:
            return self._under_way
        now = self._clock()
        plan = plan_batch(start, self._waiting(now), limit_bytes, frozenset(self._over))
        if plan is None:
            return start
        for channel_id, taken in plan.pages.items():
            self._channels[channel_id].planned(taken, plan.offset.channels[channel_id].position, now)
        self._under_way = plan.offset
        return plan.offset

    def records_of(self, end: Offset) -> dict[ChannelId, list[Record]] | None:
        """The records of the batch under way by their channels; None if `end` is not its end."""
        if self._under_way != end:
            return None
        return {channel_id: self._channels[channel_id].in_batch() for channel_id in end.spans}

    def _waiting(self, now: float) -> dict[ChannelId, list[WaitingPage]]:
        read = {channel_id: self._read_until(channel_id) for channel_id in self._channels}
        # a batch that is made anyway takes along what is due soon: each idle channel would make batches of its own
        is_made = any(pages.has_waiting or pages.is_due(now, read[name]) for name, pages in self._channels.items())
        share = SOON if is_made else 1.0
        return {
            channel_id: pages.waiting(now, next(self._arrivals), read[channel_id], share)
            for channel_id, pages in self._channels.items()
        }
