"""Shards and leases as a tunnel with its channels, so that everything behind it is decided alike. Pure.

Theory of operation
-------------------
A shard has the state of a channel by its lease; the first case applies:

    its lease is at SHARD_END                       TERMINATED, without a client
    a parent that is listed is not at SHARD_END     WAIT, without a client: no worker reads it yet
    no lease, no owner, or the owner has expired    CLOSE, without a client: a worker may take it
    another worker was asked for it, or given it    CLOSING, with the owner
    otherwise                                       OPEN, with the owner

An owner has expired when the counter of its lease has stood still for the lease's duration, as this operator saw it
(`ots_tunnel.stream.decide.sightings`): right after a start every owner counts as living.

Listed are the shards of the stream, and those that it has dropped before they were read to the end: their leases stay
until a worker goes on behind the possible gap.

The id of the tunnel is that of the stream. One that is switched off and on again has another id, so that the object
finds a replaced tunnel. Rows and consume points are unknown: no call tells them, and a checkpoint is opaque.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ots_tunnel.model import (
    ChannelId,
    ChannelInfo,
    ChannelStatus,
    ChannelType,
    Checkpoint,
    ClientId,
    Stage,
    Token,
    TunnelDescription,
    TunnelId,
    TunnelInfo,
    TunnelType,
)
from ots_tunnel.stream.decide.sightings import Sightings
from ots_tunnel.stream.lease.lease import NO_WORKER, TRIM_HORIZON, Lease, WorkerId
from ots_tunnel.stream.shards import Shard, ShardId, StreamInfo


def described(
    stream: StreamInfo,
    shards: Iterable[Shard],
    sightings: Sightings,
    *,
    now: float,
    duration: float,
    service_time: float | None = None,
) -> TunnelDescription:
    """The stream as the description of a tunnel.

    Args:
        shards: all that the stream lists.
        sightings: its leases as seen so far; those of a list that came before the shards.
        now: seconds of the clock of the sightings.
        duration: of a lease, seconds.
        service_time: the service's clock, Unix seconds; None if unknown.
    """
    parents = {shard.shard_id: shard.parents for shard in shards}
    leases = {shard: sighting.lease for shard, sighting in sightings.items()}
    dropped = [shard for shard, lease in leases.items() if shard not in parents and not lease.is_finished]
    channels = []
    for shard in (*parents, *dropped):
        sighting = sightings.get(shard)
        waits = _waits(parents[shard] if sighting is None else sighting.lease.parents, parents, leases)
        is_expired = sighting is not None and sighting.is_expired(now, duration)
        channels.append(
            _channel(shard, None if sighting is None else sighting.lease, waits=waits, is_expired=is_expired)
        )
    info = TunnelInfo(
        TunnelId(stream.stream_id),
        tunnel_name="",
        tunnel_type=TunnelType.Stream,
        table_name=stream.table,
        instance_name="",
        stream_id=stream.stream_id,
        stage=Stage.STREAM,
        expired=False,
        create_time_ns=0,
        stream_config=None,
    )
    return TunnelDescription(info, tuple(channels), 0, service_time)


def checkpoints(leases: Iterable[Lease]) -> dict[ChannelId, Checkpoint]:
    """What tells whether a shard was read: the number 1 once its lease has a position, 0 at the oldest record."""
    return {ChannelId(lease.shard_id): Checkpoint(Token(""), int(_has_moved(lease))) for lease in leases}


def _has_moved(lease: Lease) -> bool:
    return lease.checkpoint not in (TRIM_HORIZON, "")


def _waits(of: Iterable[ShardId], listed: Mapping[ShardId, object], leases: Mapping[ShardId, Lease]) -> bool:
    """Whether a parent is not read to its end; one that is neither listed nor has a lease was dropped."""
    return any(not leases[parent].is_finished if parent in leases else parent in listed for parent in of)


def _channel(shard: ShardId, lease: Lease | None, *, waits: bool, is_expired: bool) -> ChannelInfo:
    owner = NO_WORKER if lease is None or is_expired else lease.owner
    if lease is not None and lease.is_finished:
        return _info(shard, ChannelStatus.TERMINATED, NO_WORKER)
    if waits:
        return _info(shard, ChannelStatus.WAIT, NO_WORKER)
    if lease is None or owner == NO_WORKER:
        return _info(shard, ChannelStatus.CLOSE, NO_WORKER)
    return _info(shard, ChannelStatus.OPEN if lease.stealer == NO_WORKER else ChannelStatus.CLOSING, owner)


def _info(shard: ShardId, status: ChannelStatus, owner: WorkerId) -> ChannelInfo:
    return ChannelInfo(ChannelId(shard), ChannelType.STREAM, status, ClientId(owner), 0, 0)
