"""What the next batch has: some of the pages that wait, up to a limit in bytes. Pure.

A batch has whole pages, because tokens exist per page. Pages are taken by turns, one of each channel, beginning with
the channel whose next page waits longest: a busy channel does not keep a quiet one waiting. The first page is taken
whatever its size, since it could never be read otherwise; a channel whose next page does not fit gives the rest of the
room to the others.

Example: the limit is 10 bytes, a has pages of 4, 4 and 4, b has one of 3. The batch has 4 of a, 3 of b, and nothing
more, because the next page of a would make 11.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ots_tunnel.model import ChannelId, Token
from ots_tunnel.protocol.possible_gap import Gap
from ots_tunnel.spark.stream.marks import Mark
from ots_tunnel.spark.stream.offsets import ChannelOffset, Offset, Position, Span


@dataclass(frozen=True, slots=True)
class WaitingPage:
    """A page that no batch has yet.

    Args:
        number: grows with each page of any channel, in the order in which they were read.
        start, following: its token, and that of the page after it.
        rows: records that are new to the query.
        size_bytes: of these.
        last: mark of the last of them; None without any.
        until: see `Position`; of a page without records.
        gap: see `Position`.
    """

    number: int
    start: Token = field(repr=False)
    following: Token = field(repr=False)
    rows: int
    size_bytes: int
    last: Mark | None
    until: int | None = None
    gap: Gap | None = None


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """The end of a batch, and how many of the waiting pages of each channel it has."""

    offset: Offset
    pages: Mapping[ChannelId, int]


def plan_batch(
    start: Offset,
    waiting: Mapping[ChannelId, Sequence[WaitingPage]],
    limit_bytes: int,
    over: frozenset[ChannelId] = frozenset(),
) -> BatchPlan | None:
    """The next batch; None where no page waits.

    Args:
        start: the end of the batch before.
        waiting: pages of each channel in the order of their records.
        limit_bytes: of the records of a batch.
        over: see `Offset.carried`.
    """
    taken = _turns(waiting, limit_bytes)
    if not taken:
        return None
    carried = start.carried(over)
    channels = dict(carried.channels)
    for channel_id, count in taken.items():
        before = start.channels.get(channel_id)
        pages = waiting[channel_id][:count]
        after = None if before is None else before.position.last
        with_rows = [page for page in pages if page.rows]
        last = with_rows[-1].last if with_rows else after
        span = Span(with_rows[0].start, after, sum(page.rows for page in pages)) if with_rows else None
        channels[channel_id] = ChannelOffset(Position(pages[-1].following, last, pages[-1].until, pages[-1].gap), span)
    return BatchPlan(carried.with_channels(channels), taken)


def _turns(waiting: Mapping[ChannelId, Sequence[WaitingPage]], limit_bytes: int) -> dict[ChannelId, int]:
    """Pages to take of each channel."""
    turn = sorted((channel_id for channel_id, pages in waiting.items() if pages), key=lambda c: waiting[c][0].number)
    taken: dict[ChannelId, int] = {}
    size = 0
    while turn:
        again = []
        for channel_id in turn:
            pages, count = waiting[channel_id], taken.get(channel_id, 0)
            if taken and size + pages[count].size_bytes > limit_bytes:
                continue
            size += pages[count].size_bytes
            taken[channel_id] = count + 1
            if count + 1 < len(pages):
                again.append(channel_id)
        turn = again
    return taken
