"""Remaining time of the base phase, and the share of the stream's retention used by then. Pure.

The stream keeps changes for a limited time. While existing rows are copied, changes wait in it from the tunnel's
creation (T0) on, so the used share is (now - T0) / retention (docs/architecture.md 3.3, point 6). A tunnel for changes
from an earlier time on, such as that of a rewind, has them waiting since then.

Example: retention 100,000 s, T0 40,000 s ago, 50 % copied. The copy needs another 40,000 s, so 80 % will be used.
"""

from __future__ import annotations

from ots_tunnel.model import ChannelStatus, ChannelType
from ots_tunnel.protocol.possible_gap import promised_since
from ots_tunnel_operator.assess.lag import NANOSECONDS, Lag, base_progress, round_lag
from ots_tunnel_operator.assess.service_clock import service_now
from ots_tunnel_operator.assess.spark.snapshot import Snapshot
from ots_tunnel_operator.assess.spark.snapshot_state import SnapshotState
from ots_tunnel_operator.times import parse_time
from ots_tunnel_operator.world.pod import RUNNING
from ots_tunnel_operator.world.service import Table, Tunnel
from ots_tunnel_operator.world.world import World

#: Highest percentage shown; beyond 100 changes are lost, and the excess tells nothing more.
MAX_PERCENT = 1000


def base_eta(world: World, snapshot: Snapshot) -> int | None:
    """Seconds until every existing row is copied, at the mean rate so far; None while it is unknown.

    It is unknown before the first part is finished, and while nothing copies: then the mean rate says nothing.
    """
    if world.resource.uses_spark:
        progress, began = snapshot.progress, parse_time(world.resource.recorded_snapshot.get("startedTime"))
        counts = None if progress is None or progress.total is None else (progress.done, progress.total)
    else:
        found = base_progress(world.tunnel.description) if isinstance(world.tunnel, Tunnel) else None
        counts, began = (None if found is None else found[:2]), _workers_began(world)
    if counts is None:
        return None
    done, total = counts
    if done == total:
        return 0
    if not done or began is None or not _copies(world, snapshot):
        return None
    return max(0, int((world.now - began) * (total - done) / done))


def _copies(world: World, snapshot: Snapshot) -> bool:
    """Whether existing rows are being copied now: by a worker that is ready, by an attempt of Spark that runs, or by a
    query whose driver does."""
    if world.resource.spec.suspend:
        return False
    if world.resource.uses_spark:
        return snapshot.state is SnapshotState.COPYING
    if world.resource.spec.uses_query:
        return any(pod.phase == RUNNING and not pod.is_executor for pod in world.query_pods)
    return any(pod.ready for pod in world.pods)


def _workers_began(world: World) -> float | None:
    """Earliest start of reading: after the creation of both tunnel and Deployment."""
    if not isinstance(world.tunnel, Tunnel):
        return None
    created = world.tunnel.description.tunnel.create_time_ns / NANOSECONDS
    deployment = world.deployment or {}
    started = parse_time((deployment.get("metadata") or {}).get("creationTimestamp"))
    return max(created, started or 0.0)


def retention_used(world: World, lag: Lag | None) -> int | None:
    """Percent of the stream's retention in use now; None is unknown."""
    return _share(world, _behind(world, lag))


def retention_ahead(world: World, lag: Lag | None, snapshot: Snapshot, eta: int | None) -> int | None:
    """Percent in use for certain at the end of a running base phase whose end is known, else now; None is unknown.

    The changes of one channel are lost whatever is unknown of the others: what they use may be more.
    """
    copying = eta and (lag is None or snapshot.state is not SnapshotState.NOT_NEEDED)
    behind = _known_behind(world, lag)
    return _share(world, None if behind is None else behind + float(eta or 0) * bool(copying))


def _behind(world: World, lag: Lag | None) -> float | None:
    """Age of the oldest change not consumed: the lag where it is known, else what waits since T0."""
    return round_lag(lag.seconds) if lag is not None and lag.seconds is not None else _waiting(world)


def _known_behind(world: World, lag: Lag | None) -> float | None:
    """The least age that this change has: where the lag of some channels is unknown, that of the others."""
    behind = _behind(world, lag)
    if lag is None or lag.seconds is not None or lag.known_seconds is None:
        return behind
    return max(behind or 0.0, round_lag(lag.known_seconds))


def _share(world: World, behind: float | None) -> int | None:
    """Percent of the stream's retention that an age takes; None where either is unknown."""
    recorded = world.resource.recorded_tunnel.get("streamRetentionSeconds")
    retention = world.source.stream_retention_seconds if isinstance(world.source, Table) else recorded
    if not retention or behind is None:
        return None
    return min(MAX_PERCENT, int(100 * behind / retention))


def _waiting(world: World) -> float | None:
    """Seconds since T0, or since the start that the tunnel was made with, while nothing of the stream is consumed; None
    afterwards, or where it is unknown."""
    if world.resource.wire_type in (None, "BaseData") or not isinstance(world.tunnel, Tunnel):
        return None
    if world.resource.spec.source.stream is not None:
        # when the stream was enabled says nothing about what waits in it
        return None
    stream = [item for item in world.tunnel.description.channels if item.channel_type == ChannelType.STREAM]
    if any(item.consume_point_ns or item.rows or item.status is ChannelStatus.TERMINATED for item in stream):
        return None
    since = promised_since(world.tunnel.description.tunnel)
    return None if since is None else max(0.0, service_now(world) - since)
