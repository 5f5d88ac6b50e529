"""Workers that cannot be asked, and a data path that moves nothing, whatever the heartbeat says. Pure.

Theory of operation
-------------------
The service shows owners and consume points, and a worker whose heartbeat is answered keeps its channels, even if it
reads nothing. So movement itself is looked at: rows and consume points of service and workers (`observe.stillness`).
A channel that is to be read in the present stage and on which nothing has moved for PROGRESS_SECONDS is judged by what
is known about it, first match first. Files are confirmed when they appear, so there the age of a file comes on top
(`Sink.holds_seconds`):

    owner                          its report                     verdict
    a worker that does not answer  -                              left to WorkersUnreachable
    any                            finished, or end reached       as it should be
    any                            caught up                      no record waits
    any, base channel              anything else                  rows wait, or the channel would be TERMINATED
    any, stream channel            not caught up                  records wait, or cannot be asked for: an idle channel
                                                                  is read at least every 7 s, and is then caught up
    a client of this object        the channel is not in it       the worker holds the channel and does not read it
    a client whose pod is gone     -                              the same; the service would have freed it by then
    a client of something else     -                              left to ForeignClient
    none                           -                              counts only where no channel of the tunnel moves: a
                                                                  child waits for its parent without an owner

Nothing is judged while no worker is wanted, everything is delivered, or pods are missing or starting: then the workers
are the finding. A page is confirmed as a whole: a sink that takes longer than PROGRESS_SECONDS for one page (4 MiB at
most in one read) is reported, too.

Copies and queries by Spark have cases of their own (`assess.spark.standstill`).

Example: a worker's read hangs behind a firewall that drops packets, its heartbeats still pass. After 15 s it no longer
claims to be caught up; after 120 s the object is Degraded, NotProgressing, and names the channel and the pod.
"""

from __future__ import annotations

from ots_tunnel.model import ChannelInfo, ChannelType
from ots_tunnel_operator import names
from ots_tunnel_operator.assess.lag import consumable, is_initialised
from ots_tunnel_operator.assess.reported import Reported, reported_channels
from ots_tunnel_operator.assess.scaling.record import wanted_workers
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.world.pod import Pod
from ots_tunnel_operator.world.service import Tunnel
from ots_tunnel_operator.world.world import World

#: Seconds without movement from which on a channel is judged; more than a heartbeat timeout of the default settings.
PROGRESS_SECONDS = 120.0
#: Seconds for which a ready worker may not answer.
SILENT_SECONDS = 30.0


def find_unreachable(world: World) -> Problem | None:
    """Ready workers that the operator cannot ask; None without one."""
    silent = sorted(name for name, since in world.silent_since.items() if world.now - since >= SILENT_SECONDS)
    if not silent:
        return None
    return Problem(
        Reason.WORKERS_UNREACHABLE,
        f"pod {silent[0]} is ready but does not answer http://<pod>:{names.WORKER_PORT}/channels, so its lag is "
        f"unknown: let the operator reach the workers (NetworkPolicy, service mesh), or see the pod's log",
    )


def find_standstill(world: World) -> Problem | None:
    """A data path that moves nothing; the cases are those of the module's description."""
    if not isinstance(world.tunnel, Tunnel) or not is_initialised(world.tunnel.description):
        return None
    if world.resource.spec.suspend or not _is_staffed(world):
        return None
    channels, part = consumable(world.tunnel.description), world.resource.spec.source.part
    patience = PROGRESS_SECONDS + world.resource.spec.sink.holds_seconds
    reports = reported_channels(world.pods, world.tunnel.description)
    still = [channel for channel in channels if is_still(channel, world, patience)]
    for channel in sorted(still, key=lambda channel: channel.channel_id):
        why = _standstill(channel, world, reports.get(channel.channel_id), none_moves=len(still) == len(channels))
        if why:
            return Problem(
                Reason.NOT_PROGRESSING,
                f"{part} {channel.channel_id}: nothing has moved for {patience:.0f} s, and {why}: see the log "
                f"of the worker, and whether worker, source and sink reach each other; deleting the pod moves the "
                f"{part} to another worker",
            )
    return None


def _is_staffed(world: World) -> bool:
    alive = [pod for pod in world.pods if pod.is_alive]
    return 0 < wanted_workers(world.resource) <= sum(pod.ready for pod in alive)


def is_still(channel: ChannelInfo, world: World, patience: float) -> bool:
    """Whether nothing has moved on a channel for so many seconds."""
    since = world.unmoved_since.get(channel.channel_id)
    return since is not None and world.now - since >= patience


def _standstill(channel: ChannelInfo, world: World, told: Reported | None, *, none_moves: bool) -> str:
    """Why a channel that does not move ought to; empty where it need not, or where another finding covers it."""
    owner = _owner(channel, world.pods)
    if owner is not None and owner.report is None:
        return ""
    if told is not None and told.is_owner:
        report = told.channel
        if report.finished or report.end_reached or report.caught_up:
            return ""
        if channel.channel_type == ChannelType.BASE:
            return f"rows of it wait for pod {told.pod}"
        return f"pod {told.pod} is not caught up"
    if not channel.client_id:
        return "no worker reads it" if none_moves else ""
    if not str(channel.client_id).startswith(names.client_tag_prefix(world.resource.uid)):
        return ""
    return f"its client {channel.client_id} does not read it"


def _owner(channel: ChannelInfo, pods: tuple[Pod, ...]) -> Pod | None:
    """The pod whose client holds a channel: a client id contains the tag, which ends with the pod's name."""
    return next((pod for pod in pods if channel.client_id and pod.name in str(channel.client_id)), None)
