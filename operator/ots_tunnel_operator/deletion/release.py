"""The release of a deleted object: our finalizer is taken away, and those of others stay.

kopf does so, too, after its handler, but a release whose attempts fail for about a minute is lost there: kopf waits for
another event of the object, and none comes.
"""

from __future__ import annotations

from ots_tunnel_operator import names
from ots_tunnel_operator.deletion.remains import Remains
from ots_tunnel_operator.kube.cluster import Cluster
from ots_tunnel_operator.kube.errors import KindMissing, KubeError
from ots_tunnel_operator.kube.kinds import TUNNEL


async def release(kube: Cluster, remains: Remains) -> None:
    """Take our finalizer away from the object as it was read; one that is gone is no error.

    Raises:
        KubeError: the API server refuses it; with status 409 the object has changed since it was read.
    """
    if names.FINALIZER not in remains.finalizers:
        return
    others = [each for each in remains.finalizers if each != names.FINALIZER]
    change = {"resourceVersion": remains.version, "finalizers": others}
    try:
        await kube.patch(TUNNEL, remains.namespace, remains.name, {"metadata": change})
    except KubeError as error:
        if error.status != 404 or isinstance(error, KindMissing):
            raise
