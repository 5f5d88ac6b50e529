"""Reads the pages of one shard, and notices what was trimmed before it was read.

Theory of operation. A position is TRIM_HORIZON, the oldest record that the stream keeps, or an iterator. An iterator
whose records are past the retention is refused, and then changes may be missing between what was read before and the
oldest record that is kept. That is a possible gap: reported, and the reading goes on at the oldest record unless gaps
are errors. How far the shard was read before is known from the pages of this reader; where it has read none, nothing is
known, and the gap begins with the stream itself. Before the first page of a lease that is older than what the stream
keeps, changes may be missing as well (`following.unread`).

A shard that the stream has dropped as a whole has no oldest record. Then the call fails until the sync of the shards
deletes the lease.

Example. A worker starts after a week. The checkpoint of s1 is refused; the oldest record of s1 was committed on Monday.
Changes from the stream's creation to Monday may be missing, and reading goes on with that record.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from ots_tunnel.errors import ParameterInvalid, TunnelExpired
from ots_tunnel.protocol.page import reached_log_end
from ots_tunnel.protocol.possible_gap import Gap, read_on
from ots_tunnel.stream.calls.client import PAGE_RECORDS, StreamClient
from ots_tunnel.stream.following.gaps import ShardGaps
from ots_tunnel.stream.following.unread import dropped_unread
from ots_tunnel.stream.lease.lease import TRIM_HORIZON, Lease, Position
from ots_tunnel.stream.shards import ShardIterator, ShardPage, StreamInfo
from ots_tunnel.transport import BeforeAnswer

#: Tries to read a shard from its oldest record: that record may be trimmed between the two calls.
TRIES = 3


class ShardReader:
    """The pages of one shard.

    Args:
        lease: of the shard, as it was when the reading began.
        limit: most records of a page.
        wall: Unix seconds, where an answer has no time.
    """

    def __init__(
        self,
        client: StreamClient,
        stream: StreamInfo,
        lease: Lease,
        gaps: ShardGaps,
        *,
        limit: int = PAGE_RECORDS,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._client = client
        self._stream = stream
        self._lease = lease
        self._shard_id = lease.shard_id
        self._gaps = gaps
        self._limit = limit
        self._wall = wall
        self._read_until: float | None = None
        #: Whether what was dropped before the first page is known, and told.
        self._is_judged = False
        #: Where the last page began that was read as the oldest one; None where none was.
        self.oldest: ShardIterator | None = None

    def __repr__(self) -> str:
        return f"ShardReader({self._shard_id}, read until {self._read_until})"

    async def read(self, position: Position, before_answer: BeforeAnswer | None = None) -> ShardPage:
        """The page at a position.

        Args:
            before_answer: see `transport.Transport.send`.

        Raises:
            PossibleGap: changes may be missing before the page, and gaps are errors.
            ParameterInvalid: the position is no iterator of the service.
            ObjectNotExist: the stream keeps nothing of the shard. TunnelError: see `StreamClient.read`.
        """
        if position in (TRIM_HORIZON, ""):
            page = await self._read_oldest(before_answer)
            if not self._is_judged:
                await self._judge_first(page)
        else:
            try:
                page = await self._client.read(ShardIterator(position), limit=self._limit, before_answer=before_answer)
            except TunnelExpired:
                page = await self._read_oldest(before_answer)
                first, _ = _commit_times(page)
                start = self._stream.created_us / 1e6 if self._read_until is None else self._read_until
                end = self._answered(page) if first is None else first
                self._gaps.found(self._shard_id, Gap(min(start, end), end))
            except ParameterInvalid as error:
                # the checkpoint may hold a primary key, and the service's message the checkpoint
                raise ParameterInvalid(
                    error.code,
                    f"Checkpoint of the lease of shard {self._shard_id}: the service refuses it as an iterator; "
                    "allowed are TRIM_HORIZON, SHARD_END and an iterator of the shard",
                    error.request_id,
                    error.http_status,
                ) from None
        _, last = _commit_times(page)
        reached_end = reached_log_end(page.may_more, len(page.records))
        self._read_until = read_on(self._read_until, answered=self._answered(page), last=last, reached_end=reached_end)
        return page

    async def _judge_first(self, page: ShardPage) -> None:
        """Report what was dropped before the first page; a stream may keep more than it has to."""
        gap = await dropped_unread(self._client, self._lease, self._answered(page))
        self._is_judged = True  # not before: where the call fails, the page is read and judged again
        first, _ = _commit_times(page)
        if gap is not None and (first is None or first > gap.start):
            self._gaps.found(self._shard_id, gap if first is None else Gap(gap.start, first))

    async def _read_oldest(self, before_answer: BeforeAnswer | None) -> ShardPage:
        for _ in range(TRIES - 1):
            try:
                return await self._try_oldest(before_answer)
            except TunnelExpired:
                continue
        return await self._try_oldest(before_answer)

    async def _try_oldest(self, before_answer: BeforeAnswer | None) -> ShardPage:
        iterator = await self._client.iterator(self._stream.stream_id, self._shard_id)
        page = await self._client.read(iterator, limit=self._limit, before_answer=before_answer)
        self.oldest = iterator
        return page

    def _answered(self, page: ShardPage) -> float:
        return self._wall() if page.service_time is None else page.service_time


def _commit_times(page: ShardPage) -> tuple[float | None, float | None]:
    """Unix seconds at which the first and the last record of a page were committed; None without records."""
    if not page.records:
        return None, None
    first, last = page.records[0].sequence, page.records[-1].sequence
    return (None if first is None else first.timestamp_us / 1e6), (None if last is None else last.timestamp_us / 1e6)
