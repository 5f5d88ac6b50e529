"""The figures of one look for the autoscaler: from this look alone, never from a kept report. Pure."""

from __future__ import annotations

from ots_tunnel.model import ChannelInfo, ChannelStatus, Stage, TunnelDescription
from ots_tunnel_operator import names
from ots_tunnel_operator.assess.completion import end_has_passed
from ots_tunnel_operator.assess.lag import Lag, consumable, is_initialised, is_unread, orphaned, readable
from ots_tunnel_operator.assess.reported import HELD
from ots_tunnel_operator.assess.scaling.busy import busy_share
from ots_tunnel_operator.assess.scaling.peeking import peeked
from ots_tunnel_operator.autoscale.figures import Figures
from ots_tunnel_operator.times import parse_time
from ots_tunnel_operator.world.pod import Pod
from ots_tunnel_operator.world.service import Table, Tunnel
from ots_tunnel_operator.world.world import World

#: Heartbeats after a change for which a ready worker without a channel is waited for. The service may leave one without
#: any, so that the wait has an end.
PATIENCE_HEARTBEATS = 10
#: Age in seconds from which a pod that is not ready is not waited for any more, and of a refusal to make pods.
READY_SECONDS = 600.0


def figures(world: World, lag: Lag | None, wanted: int, scaled: float | None) -> Figures:
    """What the autoscaler is given.

    Args:
        world: what was observed.
        lag: from the answers of this look; None before the stream phase, or while the tunnel is unknown.
        wanted: number of workers that should exist now.
        scaled: time of the last change, seconds since 1970.
    """
    found = world.tunnel.description if isinstance(world.tunnel, Tunnel) else None
    if found is None or not is_initialised(found):
        return Figures(world.now, None, None, None, None, retention=_retention(world), is_over=end_has_passed(world))
    reports = [pod.report for pod in world.pods if pod.ready]
    missing = _missing(world, wanted)
    rates = [None if report is None else report.rows_per_second for report in reports]
    return Figures(
        time=world.now,
        channels=len(readable(found)),
        lag=None if lag is None or lag.seconds is None or _has_stranger(world, found) else float(lag.seconds),
        busy=_mean([_busy(world, pod) for pod in world.pods if pod.ready and _holds(pod)]),
        rate=None if None in rates or not rates else sum(rate for rate in rates if rate is not None),
        copies_base=found.tunnel.stage == Stage.BASE,
        unsettled=_pods_change(world, wanted - missing) or _channels_move(world, found, scaled),
        missing=missing,
        slowest="" if lag is None else _slowest(lag),
        rows=_rows(world, found),
        retention=_retention(world),
        is_over=end_has_passed(world),
        peeked=peeked(world),
    )


def _rows(world: World, found: TunnelDescription) -> int | None:
    """Rows counted so far, whose standing still means that nothing is read; None is unknown."""
    if world.resource.spec.source.stream is None:
        return sum(channel.rows for channel in found.channels)
    # no call tells how many rows of a shard were read
    reports = [pod.report for pod in world.pods if pod.is_alive]
    counts = [None if report is None else sum(channel.rows for channel in report.channels) for report in reports]
    return None if None in counts else sum(count for count in counts if count is not None)


def _retention(world: World) -> float | None:
    """Seconds for which the table keeps its stream; None is unknown."""
    seconds = world.source.stream_retention_seconds if isinstance(world.source, Table) else None
    return seconds or world.resource.recorded_tunnel.get("streamRetentionSeconds") or None


def _holds(pod: Pod) -> bool:
    """Whether a worker has a channel, or may have one that it did not tell of."""
    return pod.report is None or any(channel.state in HELD for channel in pod.report.channels)


def _busy(world: World, pod: Pod) -> float | None:
    return None if pod.report is None else busy_share(world.resource.spec, pod.report)


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None


def _has_stranger(world: World, found: TunnelDescription) -> bool:
    """Whether something else than a worker of this object reads a channel: no worker confirms how late it is."""
    prefix = names.client_tag_prefix(world.resource.uid)
    return any(channel.client_id and not str(channel.client_id).startswith(prefix) for channel in consumable(found))


def _missing(world: World, wanted: int) -> int:
    """Pods that are not waited for any more; 0 where the others are not as many as they should be."""
    living = [pod for pod in world.pods if pod.is_alive and not pod.deleting]
    ready = sum(pod.ready for pod in living)
    stuck = sum(not pod.ready and world.now - pod.created >= READY_SECONDS for pod in living)
    refused = max(0, wanted - len(living)) if _are_refused(world) else 0
    return stuck + refused if ready and ready + stuck + refused == wanted else 0


def _are_refused(world: World) -> bool:
    """Whether the API server has refused pods for so long that they are not waited for, such as by a quota."""
    for entry in ((world.deployment or {}).get("status") or {}).get("conditions") or ():
        if (entry.get("type"), entry.get("status")) == ("ReplicaFailure", "True"):
            since = parse_time(entry.get("lastTransitionTime"))
            return since is not None and world.now - since >= READY_SECONDS
    return False


def _pods_change(world: World, wanted: int) -> str:
    """Why the pods are not as they should be; empty where they are.

    Args:
        wanted: those that should be ready.
    """
    deployment = world.deployment
    if deployment is None:
        return "the workers are being started"
    status, generation = deployment.get("status") or {}, int(deployment["metadata"].get("generation") or 0)
    exists, updated = int(status.get("replicas") or 0), int(status.get("updatedReplicas") or 0)
    if int(status.get("observedGeneration") or 0) < generation or updated < exists:
        return "the workers are being replaced"
    ready, leaving = sum(pod.ready for pod in world.pods), sum(pod.deleting and pod.is_alive for pod in world.pods)
    return "" if ready == wanted and not leaving else f"{ready} of {wanted} workers are ready"


def _channels_move(world: World, found: TunnelDescription, scaled: float | None) -> str:
    """Which channels are on their way to another worker; empty where none is."""
    moving = [channel for channel in consumable(found) if _is_moving(channel)]
    if moving or orphaned(found, world.pods, names.client_tag_prefix(world.resource.uid)):
        return f"{world.resource.spec.source.part}s are moving to another worker"
    patience = PATIENCE_HEARTBEATS * world.resource.spec.worker_settings.heartbeat_interval_seconds
    is_recent = scaled is not None and 0 <= world.now - scaled < patience
    without = sum(pod.ready and not _holds(pod) for pod in world.pods)
    if is_recent and without and len(readable(found)) >= len(world.pods):
        return f"a worker waits for its first {world.resource.spec.source.part}"
    return ""


def _is_moving(channel: ChannelInfo) -> bool:
    """Whether a channel is between two workers. One that was never consumed waits for its parents, maybe for long."""
    if channel.status is ChannelStatus.WAIT and is_unread(channel):
        return False
    return channel.status is not ChannelStatus.OPEN or not channel.client_id


def _slowest(lag: Lag) -> str:
    known = [channel for channel in lag.channels if channel.seconds]
    if not known:
        return ""
    last = max(known, key=lambda channel: (channel.seconds or 0, channel.channel.channel_id))
    return f"{last.channel.channel_id} of {last.worker or 'no worker'}"
