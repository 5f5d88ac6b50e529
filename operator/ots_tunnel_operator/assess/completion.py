"""Whether a tunnel has delivered everything (docs/architecture.md 3.4). Pure.

Theory of operation
-------------------
Completed is final: it takes the workers to 0, so it needs a proof. `is_completed` takes the first case that applies:

    1. the tunnel is unknown, or lists no channel yet   as recorded: what was completed stays so
    2. BaseData                                         every channel is TERMINATED
    3. no end time, or a stage before ProcessStream     no
    4. every channel is TERMINATED, or it is recorded   yes
    5. the end time has passed                          the workers are settled and every channel is proven

A stream with an end time stays open on the service: its workers stop reading and keep their channels. Case 5 therefore
compares one description with the reports of the workers.

The workers are settled when no pod is missing, new or leaving:

    - The Deployment wants spec.replicas pods, its controller has seen that, and counts as many pods and as many
      current ones.
    - As many pods are alive, none of them is being deleted, and each worker reports `completed`.

Pods that have ended (Succeeded, Failed, evicted) count neither way. A worker reports `completed` when its own channels
are done and each remaining channel belongs to another client or waits. This flag decides nothing alone: the worker may
have looked before a channel moved.

A channel is proven in one of three ways:

    - It is TERMINATED.
    - It has an owner, and that worker reports the channel with `endReached`. A consume point in this report is at the
      end time or later. The consume point of the description is not compared: the page with the boundary is never
      checkpointed, so that one may stay before the end time.
    - It is WAIT without an owner, and at least one channel has been proven by its owner: it is the child of a channel
      that stopped at the end time. The workers' `completed` includes that it still waits two heartbeats after their own
      channels were done, so that the child of a TERMINATED channel, which the service opens, is not taken for one.

Every other channel without an owner is moving, and refutes completion.

The description is taken after the reports (`reports_completion` keeps the observer from reusing an older one), so
that no channel moves to a new owner unnoticed. If one did, the new owner's report does not list it as done.

Example: pod-1 and pod-2 have both reached the end time. pod-2 is replaced by pod-3, which connects as a new client.
The description lists c1 (pod-1) and c2 (pod-2): pod-2 reports no more, so the answer is no. A minute later the service
gives c2 to pod-3, which reads from the checkpoint to the end time. Until its report has c2 with `endReached` the answer
is no; then it is yes.
"""

from __future__ import annotations

import math

from ots_tunnel.model import ChannelInfo, ChannelStatus, Stage, TunnelDescription
from ots_tunnel_operator.assess.lag import is_initialised
from ots_tunnel_operator.world import Pod, Tunnel, WorkerChannel, World

#: Seconds by which a time in a report may be early: workers cut their times to milliseconds.
REPORT_PRECISION = 0.001


def is_completed(world: World) -> bool:
    """Whether a tunnel with an end has delivered everything; the cases are those of the module's description."""
    spec = world.resource.spec
    if not isinstance(world.tunnel, Tunnel) or not is_initialised(world.tunnel.description):
        return was_completed(world)
    description = world.tunnel.description
    ended = all(channel.status is ChannelStatus.TERMINATED for channel in description.channels)
    if spec.wire_type == "BaseData":
        return ended
    if math.isinf(_end_time(world)) or description.tunnel.stage != Stage.STREAM:
        return False
    if ended or was_completed(world):
        return True
    return end_has_passed(world) and _is_settled(world) and _is_proven(world, description)


def end_has_passed(world: World) -> bool:
    """Whether the object has an end time, and it has passed."""
    return world.now > _end_time(world)


def _end_time(world: World) -> float:
    """The end time, seconds since 1970; infinite without one."""
    window = world.resource.spec.source.tunnel.stream
    return math.inf if window is None or window.end_time is None else window.end_time.timestamp()


def was_completed(world: World) -> bool:
    """Whether the status records completion."""
    conditions = world.resource.status.get("conditions") or ()
    return any(item.get("type") == "Completed" and item.get("status") == "True" for item in conditions)


def reports_completion(world: World) -> bool:
    """Whether there are workers and each of them reports completed."""
    pods = _alive(world)
    return bool(pods) and all(pod.report is not None and pod.report.completed for pod in pods)


def _alive(world: World) -> tuple[Pod, ...]:
    return tuple(pod for pod in world.pods if pod.is_alive)


def _is_settled(world: World) -> bool:
    """Whether exactly the wanted workers exist, and each reports completed."""
    pods, found = _alive(world), world.deployment
    if found is None or any(pod.deleting for pod in pods) or not reports_completion(world):
        return False
    spec, status = found.get("spec") or {}, found.get("status") or {}
    if int(status.get("observedGeneration") or 0) < int(found["metadata"].get("generation") or 0):
        return False
    counts = {int(spec.get("replicas", 1)), *(int(status.get(key) or 0) for key in ("replicas", "updatedReplicas"))}
    return counts == {world.resource.spec.replicas} == {len(pods)}


def _is_proven(world: World, description: TunnelDescription) -> bool:
    """Whether every channel is TERMINATED, done by its owner, or the child of one that is."""
    reports = {pod.report.client_id: pod.report for pod in _alive(world) if pod.report is not None}
    done, children = 0, 0
    for channel in description.channels:
        if channel.status is ChannelStatus.TERMINATED:
            continue
        if channel.status is ChannelStatus.WAIT and not channel.client_id:
            children += 1
            continue
        report = reports.get(str(channel.client_id)) if channel.client_id else None
        if report is None or not _is_done(channel, report.channels, _end_time(world)):
            return False
        done += 1
    return done > 0 or not children


def _is_done(channel: ChannelInfo, reported: tuple[WorkerChannel, ...], end: float) -> bool:
    for found in reported:
        if found.channel_id == channel.channel_id:
            point = found.consumed_up_to
            return found.end_reached and (point is None or point >= end - REPORT_PRECISION)
    return False
