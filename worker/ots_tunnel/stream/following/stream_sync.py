"""Brings shards and leases together: at the start of a worker, and in rounds while it follows.

A call that fails is reported, and made again: at the start after a pause, later in the next round. What no later call
repairs ends the worker. These are a stream that was switched off, or switched off and on again, since its shards are
other ones; a table of leases that was deleted, also where another worker has created it again before this one could
miss it, since the checkpoints are gone; and a gap, if gaps are errors.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine, Iterable
from datetime import UTC, datetime
from functools import partial
from typing import Any

from ots_tunnel.errors import (
    AuthFailed,
    LeaseTableNotFound,
    ObjectNotExist,
    PossibleGap,
    StreamReplaced,
    TunnelError,
    WrongLeaseTable,
)
from ots_tunnel.log_actions import LogAction
from ots_tunnel.protocol.possible_gap import Gap
from ots_tunnel.stream.calls.client import StreamClient
from ots_tunnel.stream.calls.foreign_rows import look_for_foreign_rows
from ots_tunnel.stream.calls.former_streams import former_streams, mark, marked_ms
from ots_tunnel.stream.calls.lease_table import LeaseTable
from ots_tunnel.stream.calls.lease_table_creation import create_lease_table
from ots_tunnel.stream.calls.older_records import keeps_older
from ots_tunnel.stream.calls.passing import may_pass
from ots_tunnel.stream.decide.sync import Listed
from ots_tunnel.stream.following.owner import Owner
from ots_tunnel.stream.following.settings import FollowSettings
from ots_tunnel.stream.holding.known_leases import KnownLeases
from ots_tunnel.stream.holding.syncing import AtStart, sync_shards
from ots_tunnel.stream.holding.waiting import until_set
from ots_tunnel.stream.lease.lease import Lease
from ots_tunnel.stream.shards import ShardId, StreamInfo, StreamShards

logger = logging.getLogger(__name__)


class StreamSync:
    """The syncs of one worker.

    Args:
        source: name of the table whose changes are read.
        end: called with an error that ends the worker.
        wall: Unix seconds.
    """

    def __init__(
        self,
        client: StreamClient,
        table: LeaseTable,
        source: str,
        owner: Owner,
        settings: FollowSettings,
        end: Callable[[TunnelError], None],
        wall: Callable[[], float],
    ) -> None:
        self._client = client
        self._table = table
        self._source = source
        self._owner = owner
        self._settings = settings
        self._end = end
        self._wall = wall
        #: Set when the next sync is to come at once.
        self.soon = asyncio.Event()
        #: What the last sync has seen that came to its end.
        self.listed = Listed()
        #: When the stream was marked in the table of leases, which another table of the same name cannot have.
        self._marked_ms: int | None = None
        #: Shards of which records may be missing, and that were told.
        self._told: set[ShardId] = set()
        #: Shards of which a start leaves out what is dropped, and that were told.
        self._told_starts: set[tuple[ShardId, int]] = set()

    def __repr__(self) -> str:
        return f"StreamSync({self._source}, {self._table.name})"

    async def begin(self) -> StreamInfo:
        """Find the stream, create the table of leases if there is none, and give every shard a lease.

        Raises:
            NoStream: the stream is switched off.
            WrongLeaseTable: the table of leases is another kind of table, one of its rows is no lease, or another
                program has written rows of the stream.
            PossibleGap: the table had another stream before, which was followed, or the start lies before what the
                stream keeps, and gaps are errors.
            TunnelError: a call cannot succeed later.
        """
        while True:
            try:
                stream = await self._client.stream_of(self._source)
                await create_lease_table(self._table, ready_seconds=self._settings.ready_seconds)
                await look_for_foreign_rows(self._table, stream.stream_id)
                unreadable = (await self._table.list(stream.stream_id)).unreadable
                if not unreadable:
                    await self._look_for_former(stream)
                    await self._sync(stream)
                    return stream
            except TunnelError as error:
                if not may_pass(error) or isinstance(error, AuthFailed):
                    raise
                self._owner.call_failed(error)
            else:
                raise WrongLeaseTable(f"table of leases {self._table.name!r}: {unreadable[0]}")
            await asyncio.sleep(self._settings.retry.delay(0, random.random()))

    async def run(self, stream: StreamInfo, known: KnownLeases) -> None:
        """Sync in rounds, without end."""
        while True:
            await until_set(self.soon, self._settings.sync_interval)
            self.soon.clear()
            try:
                await self.check_table(stream)
                # a stream that is off may still be described, with its shards, and nothing comes of it
                await self._try(self._check_stream(stream))
                await self._sync(stream, known)
            except LeaseTableNotFound as error:
                self._end(error)
            except ObjectNotExist as error:
                # the stream, one of its shards, or the table; a dropped shard is no longer listed next time
                self._owner.call_failed(error)
                await self._try(self._check_stream(stream))
            except TunnelError as error:
                self._end_or_report(error)

    async def _look_for_former(self, stream: StreamInfo) -> None:
        """Report what may be missing between a stream that was followed before and this one, once."""
        table = self._table
        self._marked_ms = await marked_ms(table, stream.stream_id)
        if self._marked_ms is not None:
            return
        former = await former_streams(self._client, table, stream.stream_id, self._source)
        if former:
            end = stream.created_us / 1e6
            gap = Gap(min(end, *(end if each.since is None else each.since for each in former)), end)
            shards = {shard.shard_id: shard for shard in await self._client.shards(stream.stream_id)}
            for shard in shards.values():
                if not shard.parents & shards.keys():
                    self._owner.gaps.found(shard.shard_id, gap)
        await mark(table, stream.stream_id, self._source)
        self._marked_ms = await marked_ms(table, stream.stream_id)

    async def check_table(self, stream: StreamInfo) -> None:
        """Find out whether the table of leases is still the one of the start.

        Raises:
            LeaseTableNotFound: it is not.
        """
        if await marked_ms(self._table, stream.stream_id) != self._marked_ms:
            raise LeaseTableNotFound(
                "OTSObjectNotExist",
                f"table of leases {self._table.name!r}: the one with which this worker has begun was deleted, and "
                "another one was created",
            )

    async def _sync(self, stream: StreamInfo, known: KnownLeases | None = None) -> None:
        plan = await sync_shards(
            self._client,
            self._table,
            stream.stream_id,
            start_us=self._settings.start_us,
            known=known,
            keep_unread=self._settings.stops_at_gaps,
            tell_missing=lambda lease: self._tell_missing(stream, lease),
            at_start=AtStart(partial(self._tell_start, stream), partial(self._judge_start, stream)),
        )
        self.listed = plan.listed

    def _judge_start(self, stream: StreamInfo, start_us: int, found: StreamShards, created: Iterable[Lease]) -> None:
        """Report what is wanted and dropped already, where a start lies before what the stream keeps, once.

        Raises:
            PossibleGap: gaps are errors.
        """
        start = max(start_us, stream.created_us) / 1e6
        kept_since = start if found.service_time is None else found.service_time - found.retention
        if start >= kept_since:
            return
        listed = {shard.shard_id for shard in found.shards}
        for lease in created:
            if lease.parents & listed or (lease.shard_id, start_us) in self._told_starts:
                continue
            self._told_starts.add((lease.shard_id, start_us))
            self._owner.gaps.found(lease.shard_id, Gap(start, kept_since))

    async def _tell_start(self, stream: StreamInfo, start_us: int) -> None:
        """A warning where changes are left out that a table of leases, which was deleted, may not have delivered.

        Nothing tells a first start from one behind such a table. A time that the settings name leaves out the same
        changes whenever it is used, and before the first change of a stream there is nothing to leave out.
        """
        start = datetime.fromtimestamp(start_us / 1e6, UTC).isoformat(timespec="seconds")
        fields = {"action": LogAction.FIRST_LEASES, "tunnel_id": self._table.name}
        if self._settings.starts_anew and await keeps_older(self._client, stream.stream_id, start_us):
            text = "the stream has no lease yet, and it has changes before %s: they are left out, read before or not"
            logger.warning(text, start, extra=fields)
        else:
            logger.info("the stream has no lease yet: reading begins at %s", start, extra=fields)

    def _tell_missing(self, stream: StreamInfo, lease: Lease) -> None:
        if lease.shard_id in self._told:
            return
        self._told.add(lease.shard_id)
        # Nothing tells how far it was read.
        gap = Gap(stream.created_us / 1e6, max(self._wall(), stream.created_us / 1e6))
        try:
            self._owner.gaps.found(lease.shard_id, gap)
        except PossibleGap as error:
            self._end(error)

    async def _check_stream(self, stream: StreamInfo) -> None:
        """Find out whether the table still has this stream.

        Raises:
            NoStream: it was switched off. StreamReplaced: it was switched off and on again.
        """
        found = await self._client.stream_of(self._source)
        if found.stream_id != stream.stream_id:
            raise StreamReplaced(self._source, stream.stream_id, found.stream_id)

    async def _try(self, step: Coroutine[Any, Any, None]) -> None:
        try:
            await step
        except TunnelError as error:
            self._end_or_report(error)

    def _end_or_report(self, error: TunnelError) -> None:
        if may_pass(error):
            self._owner.call_failed(error)
        else:
            self._end(error)
