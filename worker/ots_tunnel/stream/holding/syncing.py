"""Shards and leases are brought together: every shard has a lease, and no other one has."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Set
from dataclasses import dataclass, replace

from ots_tunnel.stream.calls.client import StreamClient
from ots_tunnel.stream.calls.lease_table import LeaseTable, Listing
from ots_tunnel.stream.calls.start_mark import end_start, forget_start, set_start, unfinished_start
from ots_tunnel.stream.decide.sync import SyncPlan, plan_sync
from ots_tunnel.stream.holding.known_leases import KnownLeases
from ots_tunnel.stream.lease.lease import Lease, Position
from ots_tunnel.stream.shards import ShardId, StreamShards


async def _untold(start_us: int) -> None:
    pass


def _unjudged(start_us: int, found: StreamShards, created: Iterable[Lease]) -> None:
    pass


@dataclass(frozen=True, slots=True)
class AtStart:
    """Who has to know of the start of reading.

    Args:
        tell: called with the start that counts before it is used; another worker may have named it. Where a call fails
            before the first lease exists, it is called again.
        judge: called with a start before it is written, and before leases are created at it, with what the stream keeps
            and these leases; it may raise. An earlier worker may have named another start long ago.
    """

    tell: Callable[[int], Awaitable[None]] = _untold
    judge: Callable[[int, StreamShards, Iterable[Lease]], None] = _unjudged


async def sync_shards(
    client: StreamClient,
    table: LeaseTable,
    stream_id: str,
    *,
    start_us: int | None = None,
    known: KnownLeases | None = None,
    keep_unread: bool = False,
    tell_missing: Callable[[Lease], None] = lambda lease: None,
    at_start: AtStart | None = None,
) -> SyncPlan:
    """Create and delete leases as the stream lists its shards; returns what was done.

    `lost` and `late` name the shards of which records may be missing, which is worth an alarm (`decide.sync`). A lease
    that its owner has just renewed is left for the next sync.

    Args:
        start_us: Unix microseconds at which reading begins, if the stream has no lease yet. It becomes the checkpoint
            of every lease of then, so it holds for all workers and for good (`calls.start_mark`). Shards that come
            later follow their parents, and are read from their first record.
        known: what this worker remembers of leases that it has listed before.
        keep_unread: leave the leases in `lost` where they are, and create none for those in `late`: children wait, and
            each sync finds them again.
        tell_missing: called for each of them, and for each lease that is gone unread together with its shard, before
            anything is changed: a call that fails afterwards must not hide it. It may be called again for one that
            stays.
        at_start: who has to know of a start.

    Raises:
        ObjectNotExist: stream or table do not exist.
        CodecError: the stream lists no shard, or the answer with the leases cannot be read.
        TunnelError: a call failed; the next sync does the rest.
    """
    at_start = at_start or AtStart()
    listing = await table.list(stream_id)  # before the shards: see `decide.sync`
    if known is not None:
        known.look(listing.leases)
    # the keeper lists on while the answer is under way: leases of shards that come meanwhile are in neither
    before = frozenset() if known is None else known.unread
    found = await client.describe(stream_id)
    plan = plan_sync(stream_id, listing.leases, listing.half, found.shards, _kept_since(found, listing))
    vanished: tuple[Lease, ...] = ()
    if known is not None:
        vanished = _vanished(known, listing, found, before)
        plan = replace(plan, lost=tuple(lease for lease in plan.lost if not known.was_read(lease)))
    for lease in (*plan.lost, *plan.late, *vanished):
        tell_missing(lease)
    done = plan.without_loss if keep_unread else plan
    is_first, created = listing.is_empty, [lease for lease, _ in done.create]
    if is_first and start_us is not None:
        if await unfinished_start(table, stream_id) is None:  # otherwise that one counts, and is judged below
            at_start.judge(start_us, found, created)  # before it is written: it may be another one next time
        start = await _first_start(table, stream_id, start_us)
        is_first = start is not None
        if start is not None:
            start_us = start
            await at_start.tell(start_us)
    parents = frozenset() if is_first else frozenset(shard.shard_id for shard in found.shards)
    if done.create:
        at = start_us if is_first and start_us is not None else await unfinished_start(table, stream_id)
        if at is not None:
            at_start.judge(at, found, created)
        await _create(client, table, stream_id, done, at, parents)
    deleted = tuple([lease for lease in done.delete if await table.delete(lease)])
    lost = plan.lost if keep_unread else tuple(lease for lease in plan.lost if lease in deleted)
    return replace(done, delete=deleted, lost=lost)


def _vanished(known: KnownLeases, listing: Listing, found: StreamShards, before: Set[ShardId]) -> tuple[Lease, ...]:
    """The leases that another program has deleted, together with their shards, before they were read."""
    shards = {shard.shard_id for shard in found.shards}
    known.look_at_stream(shards)
    rows = {lease.shard_id for lease in listing.leases} | {half.shard_id for half in listing.half}
    gone = tuple(each for each in known.vanished(rows | shards) if each.shard_id in before)
    known.forget(gone)
    return gone


def _kept_since(found: StreamShards, listing: Listing) -> float | None:
    """Unix seconds since which the stream has every record; None where nothing can be said about missing leases."""
    if found.service_time is None or listing.unreadable:  # a row that is no lease stands for a shard, too
        return None
    return found.service_time - found.retention


async def _first_start(table: LeaseTable, stream_id: str, start_us: int) -> int | None:
    """Where the first leases begin, Unix microseconds; None where another worker has made them in between."""
    start = await set_start(table, stream_id, start_us)
    if start.is_over and (await table.list(stream_id)).is_empty:
        await forget_start(table, stream_id, start)
        start = await set_start(table, stream_id, start_us)
    return None if start.is_over else start.start_us


async def _create(
    client: StreamClient,
    table: LeaseTable,
    stream_id: str,
    plan: SyncPlan,
    start_us: int | None,
    parents: Set[ShardId],
) -> None:
    """Create the leases of a plan.

    Args:
        start_us: where reading begins while the first ones are created.
        parents: shards that the stream keeps, and with them the first record of their children. A child that has come
            while the stream was followed gets the position of that record: a lease that no worker uses before the
            record is dropped then tells so, where TRIM_HORIZON would go on behind it.
    """
    for lease, half in plan.create:
        has_position = half is None and (start_us is not None or bool(lease.parents & parents))
        await table.create(await _positioned(client, lease, start_us) if has_position else lease, half)
    if start_us is not None:
        await end_start(table, stream_id, start_us)


async def _positioned(client: StreamClient, lease: Lease, start_us: int | None) -> Lease:
    iterator = await client.iterator(lease.stream_id, lease.shard_id, timestamp_us=start_us)
    return replace(lease, checkpoint=Position(iterator))
