"""What the status says of single workers. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from ots_tunnel_operator.assess.lag import round_lag
from ots_tunnel_operator.assess.reported import HELD
from ots_tunnel_operator.report import Status
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world.pod import Pod
from ots_tunnel_operator.world.report import RefusedCount


def held_channels(pod: Pod) -> int:
    """Number of channels that a worker has now, without finished ones and ones that it handed back."""
    report = pod.report
    return sum(channel.state in HELD for channel in report.channels) if report is not None else 0


def workers_status(pods: tuple[Pod, ...], refused: Mapping[str, RefusedCount]) -> list[Status]:
    """The pods that have a place in the status, by name."""
    listed = (pod for pod in pods if pod.name in refused)
    return [_worker(pod, refused) for pod in sorted(listed, key=lambda pod: pod.name)]


def _worker(pod: Pod, refused: Mapping[str, RefusedCount]) -> Status:
    status: Status = {"name": pod.name, "ready": pod.ready}
    if (count := refused.get(pod.name)) is not None and count.records:
        status |= {"refusedRecords": count.records, "refusedKeys": count.keys}
        if count.since is not None:
            status["refusedSince"] = timestamp(count.since)
    report = pod.report
    if report is None:
        return status
    lags = [
        0 if channel.caught_up else channel.lag_seconds
        for channel in report.channels
        if channel.state in HELD and (channel.caught_up or channel.lag_seconds is not None)
    ]
    if report.client_id:
        status["clientId"] = report.client_id
    status["channels"] = held_channels(pod)
    if report.busy_percent is not None:
        status["busyPercent"] = min(100, round(report.busy_percent, -1))
    if lags:
        status["lagSeconds"] = round_lag(max(seconds or 0 for seconds in lags))
    return status
