"""How worker pods are spread over nodes and zones, and how many of them may be evicted at once. Pure."""

from __future__ import annotations

from typing import Any, Final

from ots_tunnel_operator import names
from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.kube.kinds import Manifest
from ots_tunnel_operator.manifests.children import child

#: Labels of nodes whose values are places that fail together.
_DOMAINS: Final = ("kubernetes.io/hostname", "topology.kubernetes.io/zone")


def spread_constraints(name: str) -> list[dict[str, Any]]:
    """The spread of the workers of object `name`: even where possible, and no reason to leave a worker unscheduled.

    A podTemplate replaces the entry of a label, or with null all of them.
    """
    return [
        {
            "maxSkew": 1,
            "topologyKey": domain,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": names.worker_selector(name)},
            # otherwise the pods of before a rollout, which are about to go, would count
            "matchLabelKeys": ["pod-template-hash"],
        }
        for domain in _DOMAINS
    ]


def disruption_budget(obj: TablestoreTunnel) -> Manifest:
    """Build PodDisruptionBudget `<name>-workers`: nodes are drained one worker at a time, and never held by one.

    Channels of an evicted worker move to the others within a few heartbeats; a worker that is not ready holds none.
    """
    manifest = child(obj, "policy/v1", "PodDisruptionBudget", names.workers_name(obj.name), names.ROLE_WORKER)
    return manifest | {
        "spec": {
            "maxUnavailable": 1,
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
            "selector": {"matchLabels": names.worker_selector(obj.name)},
        }
    }
