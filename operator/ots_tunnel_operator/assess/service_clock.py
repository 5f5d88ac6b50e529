"""The service's clock at the time of a world. Pure.

Consume points, commit times and the creation of a tunnel are by the service's clock. The operator's may be fifteen
minutes from it before the service refuses its requests: a lag by that one would call an idle object late, or a late one
caught up. So ages are taken by the time that came with the description. A kept description has grown older since, which
the operator's clock tells well enough.

An answer with a time further away does not tell the service's, because a proxy may have written it; then, and without
one, the operator's own counts.

Example: the operator's clock is 120 s ahead. At 12:02:00 by it the description says 12:00:00, with a consume point of
11:59:50: the lag is 10 s. At 12:02:05 the description is still kept, and it is 15 s.
"""

from __future__ import annotations

from ots_tunnel.protocol.http.rpc import MOST_APART
from ots_tunnel_operator.world.service import Tunnel
from ots_tunnel_operator.world.world import World


def service_now(world: World) -> float:
    """Seconds since 1970 by the service's clock, as the last description has told it."""
    if not isinstance(world.tunnel, Tunnel) or world.tunnel.description.service_time is None:
        return world.now
    seen = world.now if world.tunnel.seen is None else world.tunnel.seen
    ahead = world.tunnel.description.service_time - seen
    return world.now + ahead if abs(ahead) <= MOST_APART else world.now
