"""Whether a tunnel has delivered everything (docs/architecture.md 3.4). Pure.

Theory of operation
-------------------
Completed takes the workers to 0, so it needs a proof that everything was read. Whether something is missing,
because a reset gave it up or the stream had dropped it, `report.missing` knows. Only a reset takes completion back, or
existing rows that a later look lists. `is_completed` takes the first case that applies:

    1. neither BaseData nor an end time                 no
    2. the tunnel is unknown, or lists no channel yet   as recorded: what was completed stays so
    3. BaseData                                         every channel is TERMINATED, and the workers were asked
    4. completion is recorded                           yes, whatever the tunnel looks like now
    5. the end time has not passed, by service time;    no
       or a stage before ProcessStream;
       or no Stream channel is listed
    6. every channel is TERMINATED                      the workers were asked
    7. otherwise                                        the workers are settled and every channel is proven

The end time is compared with the service's clock in the answer that brought the description. The operator's own clock
decides nothing.

Completion removes the workers, and with them their counts of refused records. So where onPermanentError is not Fail,
each living worker answers once more after the look that found the end. One that does not for `ASKING_SECONDS` is not
waited for, and what it has refused counts as unknown (`report.refusals`).

A stream with an end time stays open on the service: its workers stop reading and keep their channels. Case 7 therefore
compares one description with the reports of the workers.

The workers are settled when no pod is missing, new or leaving:

    - The Deployment wants as many pods as spec.replicas or Auto does, its controller has seen that, and counts as
      many pods and as many current ones.
    - As many pods are alive, none of them is being deleted, and each worker reports `completed`.

Pods that have ended (Succeeded, Failed, evicted) count neither way. A worker reports `completed` when its own channels
are done and each remaining channel belongs to another client or waits. This flag decides nothing alone: the worker may
have looked before a channel moved.

A channel is proven in one of three ways:

    - It is TERMINATED.
    - It has an owner, and that worker holds the channel and reports it with `endReached`. No figure of this report
      contradicts it: its consume point is at the end time or later, its lag is 0, where they are known. The consume
      point of the description is not compared: the page with the boundary is never checkpointed, so that one may stay
      before the end time.
    - It is WAIT without an owner, at least one channel has been proven by its owner, and all looks of the last two
      heartbeat intervals found the same channels with the same states and owners (`Tunnel.same_since`). In that time
      the owner has looked as well, and read the first page of each channel that waits: it reports `completed` only
      where they hold nothing from before the end time. Such a channel is the child of one that stopped. How soon the
      service gives out the child of a TERMINATED channel is not known, so waiting alone proves nothing.

Every other channel without an owner is moving, and refutes completion.

The description is taken after the reports (`awaits_proof` keeps the observer from reusing an older one), so that no
channel moves to a new owner unnoticed. If one did, the new owner's report does not list it as done.

Example: pod-1 and pod-2 have both reached the end time. pod-2 is replaced by pod-3, which connects as a new client.
The description lists c1 (pod-1) and c2 (pod-2): pod-2 reports no more, so the answer is no. A minute later the service
gives c2 to pod-3, which reads from the checkpoint to the end time. Until its report has c2 with `endReached` the answer
is no; then it is yes.
"""

from __future__ import annotations

import math

from ots_tunnel.model import ChannelInfo, ChannelStatus, ChannelType, Stage, TunnelDescription
from ots_tunnel_operator.assess.lag import is_initialised
from ots_tunnel_operator.assess.reported import HELD
from ots_tunnel_operator.assess.scaling.record import wanted_workers
from ots_tunnel_operator.world.pod import PENDING, Pod
from ots_tunnel_operator.world.report import WorkerChannel
from ots_tunnel_operator.world.service import Tunnel
from ots_tunnel_operator.world.world import World

#: Seconds by which a time in a report may be early: workers cut their times to milliseconds.
REPORT_PRECISION = 0.001
#: Heartbeat intervals within which a worker that has channels looks at the tunnel again.
SETTLING_HEARTBEATS = 2
#: Seconds for which workers are asked, after the end was found, what they have refused.
ASKING_SECONDS = 60.0


def is_completed(world: World) -> bool:
    """Whether a tunnel with an end has delivered everything; the cases are those of the module's description."""
    if not _can_end(world):
        return False
    if not isinstance(world.tunnel, Tunnel) or not is_initialised(world.tunnel.description):
        return was_completed(world)
    description = world.tunnel.description
    ended = all(channel.status is ChannelStatus.TERMINATED for channel in description.channels)
    if world.resource.wire_type == "BaseData":
        return ended and (was_completed(world) or _are_asked(world, world.tunnel))
    if was_completed(world):
        return True
    if not _end_has_passed(world, description) or not _is_streaming(description):
        return False
    return _are_asked(world, world.tunnel) if ended else (_is_settled(world) and _is_proven(world, world.tunnel))


def unasked(world: World) -> int:
    """Workers that have not answered in this look, so that it is not known what they have refused."""
    return sum(pod.report is None or pod.kept is not None for pod in _that_refuse(world))


def _that_refuse(world: World) -> tuple[Pod, ...]:
    """Workers that run, or may, and may have left out records; a pod that is pending has begun none."""
    may_refuse = world.resource.spec.delivery.on_permanent_error != "Fail"
    return tuple(pod for pod in _alive(world) if may_refuse and pod.phase != PENDING)


def _are_asked(world: World, tunnel: Tunnel) -> bool:
    """Whether each worker has answered after a look that found the end, or has had its time for that."""
    if not _that_refuse(world):
        return True
    found = world.now if tunnel.same_since is None else tunnel.same_since
    return world.now - found >= ASKING_SECONDS or (world.now > found and not unasked(world))


def awaits_proof(world: World) -> bool:
    """Whether a description taken now could prove completion: there is an end, and every worker reports completed."""
    return _has_end(world) and not was_completed(world) and _all_report_completed(world)


def was_completed(world: World) -> bool:
    """Whether the status records completion, with a loss or without one."""
    conditions = world.resource.status.get("conditions") or ()
    return any(item.get("type") == "Completed" and item.get("status") == "True" for item in conditions)


#: What messages say of a source that is gone after it was read to its end.
NOTHING_LOST = "everything was read to its end before, so nothing is lost by that, and nothing is to be done"


def end_time(world: World) -> float:
    """The end time, seconds since 1970; infinite without one."""
    end = world.resource.spec.source.end_time
    return math.inf if end is None else end.timestamp()


def end_has_passed(world: World) -> bool:
    """Whether the end time has passed by the service's clock or the operator's, so that the end has to be proven."""
    described = world.tunnel.description.service_time if isinstance(world.tunnel, Tunnel) else None
    return end_time(world) < max(world.now, described or 0.0)


def _can_end(world: World) -> bool:
    """Whether there is an end at all: that of the existing rows, or a time."""
    return world.resource.wire_type in (None, "BaseData") or _has_end(world)


def _has_end(world: World) -> bool:
    return math.isfinite(end_time(world))


def _end_has_passed(world: World, description: TunnelDescription) -> bool:
    return description.service_time is not None and description.service_time > end_time(world)


def _is_streaming(description: TunnelDescription) -> bool:
    """Whether the base phase is over and the channels of the stream are listed."""
    found = any(channel.channel_type == ChannelType.STREAM for channel in description.channels)
    return found and description.tunnel.stage == Stage.STREAM


def _all_report_completed(world: World) -> bool:
    """Whether there are workers and each of them reports completed."""
    pods = _alive(world)
    return bool(pods) and all(pod.report is not None and pod.report.completed for pod in pods)


def _alive(world: World) -> tuple[Pod, ...]:
    return tuple(pod for pod in world.pods if pod.is_alive)


def _is_settled(world: World) -> bool:
    """Whether exactly the wanted workers exist, and each reports completed."""
    pods, found = _alive(world), world.deployment
    if found is None or any(pod.deleting for pod in pods) or not _all_report_completed(world):
        return False
    spec, status = found.get("spec") or {}, found.get("status") or {}
    if int(status.get("observedGeneration") or 0) < int(found["metadata"].get("generation") or 0):
        return False
    counts = {int(spec.get("replicas", 1)), *(int(status.get(key) or 0) for key in ("replicas", "updatedReplicas"))}
    return counts == {wanted_workers(world.resource)} == {len(pods)}


def _is_proven(world: World, tunnel: Tunnel) -> bool:
    """Whether every channel is TERMINATED, done by its owner, or the child of one that stopped."""
    reports = {pod.report.client_id: pod.report for pod in _alive(world) if pod.report is not None}
    done, children = 0, 0
    for channel in tunnel.description.channels:
        if channel.status is ChannelStatus.TERMINATED:
            continue
        if channel.status is ChannelStatus.WAIT and not channel.client_id:
            children += 1
            continue
        report = reports.get(str(channel.client_id)) if channel.client_id else None
        if report is None or not _is_done(channel, report.channels, end_time(world)):
            return False
        done += 1
    return done > 0 and (not children or _has_settled(world, tunnel))


def _has_settled(world: World, tunnel: Tunnel) -> bool:
    interval = world.resource.spec.worker_settings.heartbeat_interval_seconds
    return tunnel.same_since is not None and world.now - tunnel.same_since >= SETTLING_HEARTBEATS * interval


def _is_done(channel: ChannelInfo, reported: tuple[WorkerChannel, ...], end: float) -> bool:
    for found in reported:
        if found.channel_id == channel.channel_id:
            point = found.consumed_up_to
            is_late = (point is not None and point < end - REPORT_PRECISION) or bool(found.lag_seconds)
            return found.end_reached and found.state in HELD and not is_late
    return False
