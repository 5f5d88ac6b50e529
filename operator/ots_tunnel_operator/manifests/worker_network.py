"""The NetworkPolicy of an object's workers. Pure.

The operator makes one for each object, because a policy reaches the pods of its own namespace alone, and the chart does
not know the namespaces of objects. It is applied before the workers, so that none of them ever runs without it.
"""

from __future__ import annotations

from typing import Any

from ots_tunnel_operator import names
from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.kube.kinds import NETWORK_POLICY, Manifest
from ots_tunnel_operator.manifests.children import child
from ots_tunnel_operator.settings import WorkerNetwork


def network_policy(obj: TablestoreTunnel, network: WorkerNetwork) -> Manifest:
    """Build NetworkPolicy `<name>-workers`: only the peers reach the workers, and only their one port.

    Args:
        obj: the object.
        network: who may connect, and where workers may connect to.
    """
    name = names.workers_name(obj.name)
    manifest = child(obj, NETWORK_POLICY.api_version, NETWORK_POLICY.kind, name, names.ROLE_WORKER)
    # a rule without peers would admit everybody: without peers there is no rule, which admits none
    port = {"port": names.WORKER_PORT, "protocol": "TCP"}
    ingress = [{"from": list(network.peers), "ports": [port]}] if network.peers else []
    egress: dict[str, Any] = {} if network.egress is None else {"egress": list(network.egress)}
    return manifest | {
        "spec": {
            "podSelector": {"matchLabels": names.worker_selector(obj.name)},
            "policyTypes": ["Ingress", *(["Egress"] if egress else [])],
            "ingress": ingress,
            **egress,
        }
    }
