"""The PodMonitor of an object's workers, by which the Prometheus operator has them scraped. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from ots_tunnel_operator import names
from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.kube.kinds import POD_MONITOR, Manifest
from ots_tunnel_operator.manifests.children import child

#: The label of a worker's pod with its object's name, as Prometheus writes it: no dots, slashes and dashes.
_NAME_LABEL = "__meta_kubernetes_pod_label_" + names.LABEL_NAME.translate(str.maketrans("./-", "___"))


def pod_monitor(obj: TablestoreTunnel, interval: str = "30s", labels: Mapping[str, str] | None = None) -> Manifest:
    """Build PodMonitor `<name>-workers`: the workers' metrics get the label `name` of their object.

    Args:
        obj: the object.
        interval: time between two scrapes, as Prometheus writes it.
        labels: further labels, by which Prometheus selects it; those that every child has stay.
    """
    manifest = child(obj, POD_MONITOR.api_version, POD_MONITOR.kind, names.workers_name(obj.name), names.ROLE_WORKER)
    metadata = manifest["metadata"]
    return manifest | {
        "metadata": metadata | {"labels": dict(labels or {}) | metadata["labels"]},
        "spec": {
            "selector": {"matchLabels": names.worker_selector(obj.name)},
            "podMetricsEndpoints": [
                {
                    "port": "http",
                    "path": "/metrics",
                    "interval": interval,
                    "relabelings": [{"sourceLabels": [_NAME_LABEL], "targetLabel": "name"}],
                }
            ],
        },
    }
