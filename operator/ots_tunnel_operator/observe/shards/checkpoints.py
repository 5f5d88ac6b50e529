"""How late shards are that no worker reports: one record is read at the checkpoint of each lease, and thrown away.

So are all shards of an object that runs no worker because nothing is to be read, or might soon: at its intervals.

Nothing is changed at the service: every caller may read a shard. Where a record is found, everything that was committed
before it was delivered; where none is, everything was until the service's answer. So it is a bound for the lag that
holds whoever reads the shard, also a worker that does not answer or one of another program.

A checkpoint that the service refuses because its records were trimmed is a possible gap (`assess.shards.trimmed`). What
was found before stays: everything that was committed before it was delivered, and so the lag is at least as long. A
shard that the stream lists no more, and that was not read to its end, is lost in the same way.

A shard that cannot be read keeps none from being looked at: the look goes on with the others, and the next one begins
with those. A few failures end a look, because then it is the service that does not answer. What was found before tells
the lag for a while longer (`assess.lag`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Set
from dataclasses import replace
from functools import partial

from ots_tunnel.errors import ObjectNotExist, ParameterInvalid, TunnelExpired
from ots_tunnel.protocol.page import reached_log_end
from ots_tunnel.stream.lease.lease import TRIM_HORIZON, Lease
from ots_tunnel.stream.shards import ShardId, ShardIterator
from ots_tunnel_operator.assess.reported import HELD, reported_channels
from ots_tunnel_operator.assess.scaling.peeking import interval_of, may_sleep
from ots_tunnel_operator.instance import CALL_ERRORS, Instance
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.settings import Settings
from ots_tunnel_operator.turns.queue import Patience
from ots_tunnel_operator.world.service import Peek
from ots_tunnel_operator.world.world import World

#: Most shards of one look; those that are left are the first ones of the next look.
MOST = 20
#: Shards of one look that could not be read, after which no further one is.
MOST_FAILURES = 3
#: Seconds of one look after which no further shard is read.
PASS_SECONDS = 5.0


async def look_at_checkpoints(
    instance: Instance,
    leases: Iterable[Lease],
    listed: Set[ShardId],
    world: World,
    cache: LoopCache,
    settings: Settings,
    patience: Patience,
) -> None:
    """Read a record of each shard that no worker reports; the ones that were read least lately come first.

    Args:
        listed: the shards that the stream lists.
        cache: its `peeks` are those of this stream; shards that are not to be read lose theirs.

    Raises:
        TunnelError, TimeoutError, OSError: a call failed; the first one's.
    """
    sleeps = may_sleep(world)
    held = (shard for shard, found in reported_channels(world.pods).items() if found.channel.state in HELD)
    reported = set() if sleeps else set(held)
    due = {str(each.shard_id): each for each in leases if not each.is_finished and each.shard_id not in reported}
    cache.peeks = {shard: peek for shard, peek in cache.peeks.items() if shard in due}
    looks = {shard: cache.peeks[shard].time if shard in cache.peeks else 0.0 for shard in due}
    since = world.now - interval_of(world.resource) if sleeps else world.now
    cache.unread_shards = {shard: time for shard, time in cache.unread_shards.items() if shard in due}
    tried = {shard: max(time, cache.unread_shards.get(shard, 0.0)) for shard, time in looks.items() if time <= since}
    loop = asyncio.get_running_loop()
    began, failures = loop.time(), list[Exception]()
    for shard in sorted(tried, key=lambda shard: (tried[shard], shard))[:MOST]:
        if loop.time() - began > PASS_SECONDS or len(failures) == MOST_FAILURES:
            break
        before = cache.peeks.get(shard, Peek(world.now, waits=True, is_of_lease=True))
        call = partial(_read, instance, due[shard], world.now, before, is_listed=due[shard].shard_id in listed)
        about = f"shards of {due[shard].stream_id}"
        try:
            cache.peeks[shard] = await instance.calls.make(settings.call_seconds, call, patience, about=about)
        except CALL_ERRORS as error:
            failures.append(error)
            cache.unread_shards[shard] = world.now
            if shard in cache.peeks:
                cache.peeks[shard] = replace(before, has_failed=True)
        else:
            cache.unread_shards.pop(shard, None)
    if failures:
        raise failures[0]


async def _read(instance: Instance, lease: Lease, now: float, before: Peek, *, is_listed: bool) -> Peek:
    """What a read at a checkpoint finds; `before` is what the last one has found."""
    has_begun = lease.checkpoint not in (TRIM_HORIZON, "")
    try:
        iterator = ShardIterator(lease.checkpoint)
        if not has_begun:
            iterator = await instance.streams.iterator(lease.stream_id, lease.shard_id)
        page = await instance.streams.read(iterator, limit=1)
    except (TunnelExpired, ObjectNotExist):
        # the oldest record of all may be trimmed between the two calls: then nothing that was consumed ends before it
        return replace(before, time=now, waits=True, has_failed=False, is_trimmed=has_begun or not is_listed)
    except ParameterInvalid:
        # a program may store any text as a checkpoint: how late the shard is, only a worker can tell
        return Peek(now, waits=True, is_of_lease=True)
    sequence = page.records[0].sequence if page.records else None
    if sequence is not None:
        return Peek(now, waits=True, empty=sequence.timestamp_us / 1e6, is_of_lease=True)
    is_end = page.is_last or reached_log_end(page.may_more, len(page.records))
    known = page.service_time if is_end and not page.records else None
    # a worker has to store that the shard is at its end, before its children are read
    return Peek(now, waits=page.is_last or not is_end, empty=known, is_of_lease=True)
