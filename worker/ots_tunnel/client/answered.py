"""Whether an answer is the service's."""

from __future__ import annotations

from ots_tunnel.errors import ConnectionLost
from ots_tunnel.protocol.http.message import HttpResponse


def check_answered(name: str, response: HttpResponse) -> None:
    """Refuse an empty success that is not the service's, such as that of a load balancer.

    It would end channels and shards, pass for a stored checkpoint, for a deleted tunnel, or for a table without
    tunnels.

    Every answer of the service has a request id; the vendor's SDK for Java insists on it (docs/protocol.md 1.9).

    Raises:
        ConnectionLost: the answer has none, so the call may not have been executed.
    """
    if not response.headers.get("x-ots-requestid"):
        raise ConnectionLost(f"answer to {name} without x-ots-requestid: it is not the service's")
