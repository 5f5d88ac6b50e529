"""Lag, progress and ownership of channels, from a description and the workers' reports. Pure.

Unknown stays None. A consume point of 0 means "never consumed", not 1970 (docs/architecture.md rule 11). Only Stream
channels have a lag: base channels always have consume point 0 (docs/protocol.md 4.2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ots_tunnel.model import ChannelInfo, ChannelStatus, ChannelType, Stage, TunnelDescription
from ots_tunnel_operator.assess.reported import HELD, Reported, reported_channels
from ots_tunnel_operator.world.pod import Pod
from ots_tunnel_operator.world.service import Peek

NANOSECONDS = 1_000_000_000

#: Seconds for which a look at a shard tells its lag although each later one has failed.
STALE_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class ChannelLag:
    """Lag of one Stream channel in seconds; None is unknown."""

    channel: ChannelInfo
    worker: str | None
    seconds: int | None
    consumed_up_to: float | None
    caught_up: bool | None


@dataclass(frozen=True, slots=True)
class Lag:
    """Lag of a tunnel: that of its slowest channel; None while one of them is unknown."""

    seconds: int | None
    consumed_up_to: float | None
    caught_up: bool | None
    channels: tuple[ChannelLag, ...]

    @property
    def known_seconds(self) -> int | None:
        """The lag, or the largest known one of a channel where that of another is unknown; None where every one is."""
        if self.seconds is not None:
            return self.seconds
        return max((channel.seconds for channel in self.channels if channel.seconds is not None), default=None)


@dataclass(frozen=True, slots=True)
class ChannelCounts:
    """How many channels are in which state."""

    total: int
    base: int
    stream: int
    open: int
    closing: int
    terminated: int
    unowned: int


def is_initialised(description: TunnelDescription) -> bool:
    """Whether statements about all channels may be made: the stage has left Init and a channel is listed."""
    return description.tunnel.stage != Stage.INIT and bool(description.channels)


def consumable(description: TunnelDescription) -> tuple[ChannelInfo, ...]:
    """Channels to be read in the present stage: base before stream, without terminated ones."""
    wanted = ChannelType.BASE if description.tunnel.stage == Stage.BASE else ChannelType.STREAM
    return tuple(
        channel
        for channel in description.channels
        if channel.channel_type == wanted and channel.status is not ChannelStatus.TERMINATED
    )


def readable(description: TunnelDescription) -> tuple[ChannelInfo, ...]:
    """Those of `consumable` that can be read at the same time: a child comes after its parents.

    A Stream channel in WAIT that was never consumed is a child, or new where no other one has begun either.
    """
    found = consumable(description)
    is_begun = _is_begun(found)
    return tuple(channel for channel in found if not (is_begun and _is_child(channel)))


def is_unread(channel: ChannelInfo) -> bool:
    """Whether a channel was never consumed."""
    return not channel.consume_point_ns and not channel.rows


def count_channels(description: TunnelDescription) -> ChannelCounts:
    """Channels by type and state; `unowned` counts those without a worker that one could read.

    A Stream channel in WAIT that was never consumed is the child of a partition that has split or merged, which cannot
    be read before its parents have ended, or a new one. It counts as a child while another one has begun and has not
    ended.
    """
    channels = description.channels
    left = consumable(description)
    is_begun = _is_begun(left)
    base = sum(channel.channel_type == ChannelType.BASE for channel in channels)
    by_status = {status: sum(channel.status is status for channel in channels) for status in ChannelStatus}
    return ChannelCounts(
        total=len(channels),
        base=base,
        stream=len(channels) - base,
        open=by_status[ChannelStatus.OPEN],
        closing=by_status[ChannelStatus.CLOSING],
        terminated=by_status[ChannelStatus.TERMINATED],
        unowned=sum(not _is_owned(channel) and not (is_begun and _is_child(channel)) for channel in left),
    )


def _is_begun(channels: Sequence[ChannelInfo]) -> bool:
    """Whether one of the channels that have not ended has left WAIT, or waits on its way to another worker."""
    return any(channel.status is not ChannelStatus.WAIT or not is_unread(channel) for channel in channels)


def _is_child(channel: ChannelInfo) -> bool:
    return channel.channel_type == ChannelType.STREAM and channel.status is ChannelStatus.WAIT and is_unread(channel)


def _is_owned(channel: ChannelInfo) -> bool:
    return bool(channel.client_id) and channel.status in (ChannelStatus.OPEN, ChannelStatus.CLOSING)


def orphaned(description: TunnelDescription, pods: Sequence[Pod], tag: str) -> tuple[ChannelInfo, ...]:
    """Readable channels of a worker that is certainly gone: the service frees them once its heartbeat has timed out.

    A container that was killed comes back as another client. While a living worker has not told which client it is,
    each client with the name of its pod may be that worker. Clients of something else are left to ForeignClient.

    Args:
        description: of the tunnel.
        pods: of the object.
        tag: what the clients of the object's workers begin with.
    """
    alive = [pod for pod in pods if pod.is_alive]
    clients = {pod.report.client_id for pod in alive if pod.report is not None}
    silent = [pod.name for pod in alive if pod.report is None or pod.kept is not None or not pod.report.client_id]
    return tuple(
        channel
        for channel in consumable(description)
        for client in [str(channel.client_id or "")]
        if client.startswith(tag) and client not in clients and not any(name in client for name in silent)
    )


def base_progress(description: TunnelDescription) -> tuple[int, int, int] | None:
    """(done, total, rows) of the base channels; None while their number is unknown."""
    if not is_initialised(description):
        return None
    base = [channel for channel in description.channels if channel.channel_type == ChannelType.BASE]
    if not base:
        return None
    done = sum(channel.status is ChannelStatus.TERMINATED for channel in base)
    return done, len(base), sum(channel.rows for channel in base)


def percent(done: int, total: int) -> int:
    """Whole percent, rounded down, so that 100 means all."""
    return 100 * done // total if total else 0


def measure(
    description: TunnelDescription, pods: Sequence[Pod], now: float, peeks: Mapping[str, Peek] | None = None
) -> Lag | None:
    """Lag of the tunnel, None before its stream phase.

    `caught_up` is True when the worker of every Stream channel that has not ended reports it, False when one worker
    denies it, else None: what a worker says that is not the owner proves nothing. It never comes from consume points
    alone (docs/architecture.md 3.5). While the worker of a channel cannot be asked, the lag is unknown: the others may
    be far ahead of it.

    Args:
        description: of the tunnel.
        pods: of the object, with their reports.
        now: seconds since 1970, by the service's clock (`assess.service_clock`).
        peeks: looks without a client: what no worker reports was consumed until the last one that found nothing, by the
            service's clock.
    """
    if not is_initialised(description) or description.tunnel.stage != Stage.STREAM:
        return None
    reports = reported_channels(pods, description)
    silent = tuple(pod.name for pod in pods if pod.is_alive and (pod.report is None or pod.kept is not None))
    hidden = frozenset(
        channel.channel_id
        for channel in consumable(description)
        if _is_held_by(channel, silent, reports) and not _is_bounded(channel, peeks)
    )
    channels = tuple(
        ChannelLag(channel, None, None, None, None)
        if channel.channel_id in hidden
        else _measure_channel(channel, reports, now, (peeks or {}).get(channel.channel_id))
        for channel in consumable(description)
    )
    if not channels:
        return None
    points = [channel.consumed_up_to for channel in channels]
    answers = [channel.caught_up for channel in channels]
    caught_up = False if False in answers else (None if None in answers else True)
    return Lag(
        seconds=None if hidden else 0 if caught_up else _slowest(channels),
        consumed_up_to=None if None in points else min(point for point in points if point is not None),
        caught_up=caught_up,
        channels=channels,
    )


def without_stale(peeks: Mapping[str, Peek], now: float) -> Mapping[str, Peek]:
    """The looks that still tell a lag: a shard that cannot be looked at may have been read on.

    Args:
        peeks: the last look at each channel.
        now: seconds since 1970.
    """
    return {key: peek for key, peek in peeks.items() if not peek.has_failed or now - peek.time <= STALE_SECONDS}


def _slowest(channels: Sequence[ChannelLag]) -> int | None:
    """Lag of the slowest channel; None where one is unknown.

    A channel that was never consumed and has no owner waits for its parents, and what it holds is newer than what they
    still hold. Only where nothing else is late are its parents at their end, and its own lag is unknown.
    """
    known = [channel.seconds for channel in channels if channel.seconds is not None]
    unknown = [channel.channel for channel in channels if channel.seconds is None]
    slowest = max(known, default=0)
    waiting = all(channel.status is ChannelStatus.WAIT and not channel.client_id for channel in unknown)
    return slowest if not unknown or (waiting and slowest) else None


def _is_held_by(channel: ChannelInfo, silent: Sequence[str], reports: Mapping[str, Reported]) -> bool:
    """Whether a channel belongs to a pod that cannot be asked: a client id contains the name of its pod."""
    return channel.channel_id not in reports and any(name in str(channel.client_id or "") for name in silent)


def _is_bounded(channel: ChannelInfo, peeks: Mapping[str, Peek] | None) -> bool:
    """Whether a read at the checkpoint of its lease tells how late a shard is, whoever reads it."""
    peek = (peeks or {}).get(channel.channel_id)
    return peek is not None and peek.is_of_lease and peek.empty is not None


def _measure_channel(
    channel: ChannelInfo, reports: Mapping[str, Reported], now: float, peek: Peek | None
) -> ChannelLag:
    found = reports.get(channel.channel_id)
    report = None if found is None else found.channel
    point = channel.consume_point_ns / NANOSECONDS or None
    if peek is not None and peek.empty is not None and report is None:
        point = max(point or 0.0, peek.empty)
    seconds = None if point is None else max(0, int(now - point))
    # after a hand-over the former worker's report is older than the description
    if report is not None and report.state in HELD:
        point = max(point or 0.0, report.consumed_up_to or 0.0) or None
        if report.lag_seconds is not None:
            seconds = max(0, report.lag_seconds)
    if found is None or found.rank != (True, True):
        return ChannelLag(channel, None, seconds, point, None)
    caught_up = found.channel.caught_up
    return ChannelLag(channel, found.pod, 0 if caught_up else seconds, point, caught_up)


def round_lag(seconds: int) -> int:
    """Round down to 1 s below 60, to 5 s below 600, else to 60 s: noise causes no write (docs/architecture.md 6.3)."""
    step = 1 if seconds < 60 else 5 if seconds < 600 else 60
    return seconds // step * step


def round_figure(value: float) -> int:
    """Round to two significant digits."""
    whole = int(value)
    return whole if whole < 100 else int(float(f"{whole:.1e}"))
