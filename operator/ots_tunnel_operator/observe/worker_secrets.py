"""Look at the Secrets that only workers use: whether they are there, with the keys that the workers read."""

from __future__ import annotations

from ots_tunnel_operator.api.secrets import secret_uses
from ots_tunnel_operator.kube.cluster import Reader
from ots_tunnel_operator.kube.kinds import SECRET
from ots_tunnel_operator.observe.secret_keys import read_keys
from ots_tunnel_operator.world.absence import Failure
from ots_tunnel_operator.world.resource import Resource


async def observe_worker_secrets(kube: Reader, resource: Resource) -> tuple[Failure, ...]:
    """What is missing of the Secrets of an object, apart from those with which the operator itself calls a service.

    Raises:
        KubeError: the API server does not answer.
    """
    found: list[Failure] = []
    for use in secret_uses(resource.spec):
        if not use.by_operator:
            read = read_keys(await kube.get(SECRET, resource.namespace, use.name), use)
            if isinstance(read, Failure):
                found.append(read)
    return tuple(found)
