"""Wait for the Lease, and hold it for as long as the process works."""

from __future__ import annotations

import contextlib
import logging
import socket
import uuid
from collections.abc import Iterator, Sequence

from ots_tunnel.errors import ConfigError
from ots_tunnel_operator import names
from ots_tunnel_operator.kube.lease import Lease
from ots_tunnel_operator.log_actions import LogAction
from ots_tunnel_operator.server import Health

logger = logging.getLogger(__name__)


@contextlib.contextmanager
def leadership(namespace: str, name: str, served: Sequence[str], health: Health) -> Iterator[Lease | None]:
    """Wait for the lease and hold it; yields None where no namespace is given.

    Args:
        served: namespaces that the process is to serve; empty means all.

    Raises:
        ConfigError: nobody can compete for it, as without a cluster.
    """
    if not namespace:
        logger.warning("no leader election: run one replica only", extra={"action": LogAction.NO_ELECTION})
        yield None
        return
    identity = f"{socket.gethostname()}_{uuid.uuid4()}"
    serves = ", ".join(sorted(served)) or names.EVERY_NAMESPACE
    lease = Lease(namespace, name, identity, tick=health.tick, still=health.still, serves=serves)
    lease.start()
    health.ready = True
    try:
        while not lease.leading.wait(1.0):
            health.waits_for = lease.waits_for
            if lease.lost.is_set():
                raise ConfigError("leader election failed, see the log")
        yield lease
    finally:
        lease.stop()
