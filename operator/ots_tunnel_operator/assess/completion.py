"""Whether a tunnel has delivered everything (docs/architecture.md 3.4). Pure.

Theory of operation
-------------------
Completed is final: it takes the workers to 0, so it needs a proof. `is_completed` takes the first case that applies:

    1. the tunnel is unknown, or lists no channel yet   as recorded: what was completed stays so
    2. BaseData                                         every channel is TERMINATED
    3. no end time, or a stage before ProcessStream     no
    4. every channel is TERMINATED, or it is recorded   yes
    5. the end time has passed                          every worker reports it, and every owner is one of them

A stream with an end time stays open on the service: its workers stop reading and keep their channels. A worker reports
`completed` when its own channels have reached the end time and each remaining channel belongs to another client. Case 5
therefore asks two questions. Does every pod that exists report completed? And does every owner in the description
report at all? The second one matters after a restart: for one heartbeat timeout (60 s by default) the channels still
belong to the former client, and the new one, which has no channel, reports completed.
A channel without an owner is the child of a channel that stopped at the end time (WAIT): the workers check that.

The description is taken after the reports (`reports_completion` keeps the observer from reusing an older one), so
that no channel moves to a new owner unnoticed.

Example: pod-1 and pod-2 have both reached the end time. pod-2 is replaced by pod-3, which connects as a new client.
The description lists c1 (pod-1) and c2 (pod-2): pod-2 reports no more, so the answer is no. A minute later the service
gives c2 to pod-3, which reads from the checkpoint to the end time and reports completed: the answer is yes.
"""

from __future__ import annotations

from ots_tunnel.model import ChannelStatus, Stage, TunnelDescription
from ots_tunnel_operator.assess.lag import is_initialised
from ots_tunnel_operator.world import Tunnel, World


def is_completed(world: World) -> bool:
    """Whether a tunnel with an end has delivered everything; the cases are those of the module's description."""
    spec = world.resource.spec
    if not isinstance(world.tunnel, Tunnel) or not is_initialised(world.tunnel.description):
        return was_completed(world)
    description = world.tunnel.description
    ended = all(channel.status is ChannelStatus.TERMINATED for channel in description.channels)
    if spec.wire_type == "BaseData":
        return ended
    window = spec.source.tunnel.stream
    if window is None or window.end_time is None or description.tunnel.stage != Stage.STREAM:
        return False
    if ended or was_completed(world):
        return True
    return end_has_passed(world) and reports_completion(world) and _all_owners_report(world, description)


def end_has_passed(world: World) -> bool:
    """Whether the object has an end time, and it has passed."""
    window = world.resource.spec.source.tunnel.stream
    return window is not None and window.end_time is not None and world.now > window.end_time.timestamp()


def was_completed(world: World) -> bool:
    """Whether the status records completion."""
    conditions = world.resource.status.get("conditions") or ()
    return any(item.get("type") == "Completed" and item.get("status") == "True" for item in conditions)


def reports_completion(world: World) -> bool:
    """Whether there are workers and each of them reports completed."""
    return bool(world.pods) and all(pod.report is not None and pod.report.completed for pod in world.pods)


def _all_owners_report(world: World, description: TunnelDescription) -> bool:
    clients = {pod.report.client_id for pod in world.pods if pod.report is not None}
    owners = {
        str(channel.client_id)
        for channel in description.channels
        if channel.client_id and channel.status is not ChannelStatus.TERMINATED
    }
    return owners <= clients
