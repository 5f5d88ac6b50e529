"""Figures of workers that did not answer for a moment. Pure.

Theory of operation
-------------------
One lost answer of one worker says little: the request has 2 s, and the machine may be busy. For `SILENT_SECONDS` the
last report of a ready worker is kept (`observe.stillness`), and then the worker counts as unreachable
(`assess.progress`). Until then

    what is shown             lag, rates, channels a worker, degradations and the conditions use the kept report;
                              status.observedTime and status.lag.observedTime tell how old it is
    what is decided for good  completion, the read mark, possible gaps and whether a snapshot is consistent use only
                              what was answered in this look

A kept report counts only for channels that the service's description still gives to its worker and that no other worker
reports as its own. A channel that its worker took since is not in it; the lag is then unknown, as without any report.

Example: three workers are caught up, and the answer of one is lost at 12:00:15. Ready stays True and the lag 0, with
observedTime 12:00:00. At 12:00:30 it answers again, and nothing was written. If it does not, the object is Degraded
with WorkersUnreachable from 12:00:45 on, and Ready is Unknown.
"""

from __future__ import annotations

from dataclasses import replace

from ots_tunnel_operator.assess.reported import HELD
from ots_tunnel_operator.world.pod import Pod
from ots_tunnel_operator.world.service import Tunnel
from ots_tunnel_operator.world.world import World


def shown(world: World) -> World:
    """The world with kept reports in place of the answers that were lost."""
    if not any(pod.kept is not None for pod in world.pods):
        return world
    answered = {
        channel.channel_id
        for pod in world.pods
        for channel in (pod.report.channels if pod.report is not None else ())
        if channel.state in HELD
    }
    return replace(world, pods=tuple(_shown(pod, world, answered) for pod in world.pods))


def observed_time(world: World) -> float:
    """Time of the oldest observation that `shown` uses, Unix seconds."""
    return min((pod.kept.time for pod in world.pods if pod.kept is not None), default=world.now)


def _shown(pod: Pod, world: World, answered: set[str]) -> Pod:
    if pod.kept is None:
        return pod
    report = pod.kept.report
    if isinstance(world.tunnel, Tunnel):
        mine = {
            channel.channel_id
            for channel in world.tunnel.description.channels
            if channel.client_id and pod.name in str(channel.client_id)
        }
        left = tuple(found for found in report.channels if found.channel_id in mine - answered)
        report = replace(report, channels=left)
    return replace(pod, report=report)
