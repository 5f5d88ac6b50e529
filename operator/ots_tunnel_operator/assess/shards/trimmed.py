"""Shards of a stream whose next records are gone before any worker has read them. Pure.

The operator reads a record at the checkpoint of each lease that no worker reports (`observe.shards.checkpoints`). Where
the service has dropped that record, changes are missing: from the time on until which everything was delivered, as an
earlier look has seen it, or else from where the recorded gap begins, or else from the beginning of the stream.

Example: retention 24 hours, suspended since Friday noon. From Saturday noon on changes from then to (now - 24 hours)
are missing. An operator that starts on Sunday has not seen until when they were delivered: it goes by the gap in the
status, and names the whole time where there is none. What was committed after the end time is wanted by nobody.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from ots_tunnel_operator.assess.completion import end_time
from ots_tunnel_operator.assess.service_clock import service_now
from ots_tunnel_operator.world.service import Table, Tunnel
from ots_tunnel_operator.world.world import World


def trimmed(world: World, told: Collection[str], recorded: Mapping[str, float]) -> Iterator[tuple[str, float, float]]:
    """Shard, and the Unix seconds between which changes were committed that are gone.

    Args:
        told: shards of which a worker has found that: it has looked more closely.
        recorded: shard -> where its gap begins in the status, if an operator has found that.
    """
    if not isinstance(world.tunnel, Tunnel) or not isinstance(world.source, Table):
        return
    retention = world.source.stream_retention_seconds or 0
    # a retention that was raised since brings nothing back
    kept_since = service_now(world) - min(
        retention, world.resource.recorded_tunnel.get("streamRetentionSeconds") or retention
    )
    for shard, peek in world.peeks.items():
        if peek.is_trimmed and shard not in told:
            known = recorded.get(shard) if peek.empty is None else peek.empty
            start = world.source.stream_start or 0.0 if known is None else known
            # the start is by the service's clock, and names the gap: it must not follow this one's
            if start < end_time(world):
                yield shard, start, min(max(start, kept_since), end_time(world))
