"""Whether a tunnel has delivered everything: pure (docs/architecture.md 3)."""

from __future__ import annotations

from ots_tunnel.model import ChannelStatus, Stage
from ots_tunnel_operator.assess.lag import is_initialised
from ots_tunnel_operator.world import Tunnel, World


def is_completed(world: World) -> bool:
    """Whether everything a tunnel with an end has to deliver was delivered (docs/architecture.md 3).

    No statement about all channels before the first stage is over and a channel is listed.
    """
    spec = world.resource.spec
    if not isinstance(world.tunnel, Tunnel) or not is_initialised(world.tunnel.description):
        # once completed stays completed while the tunnel cannot be asked
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
    return world.now > window.end_time.timestamp() and bool(world.pods) and _all_reports_completed(world)


def was_completed(world: World) -> bool:
    """Whether the status says so already."""
    conditions = world.resource.status.get("conditions") or ()
    return any(item.get("type") == "Completed" and item.get("status") == "True" for item in conditions)


def _all_reports_completed(world: World) -> bool:
    return all(pod.report is not None and pod.report.completed for pod in world.pods)
