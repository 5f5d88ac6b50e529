"""A pod that waits for its volumes, as one does whose ConfigMap or Secret is missing. Pure.

The kubelet tells why in events alone, which the operator may not read: the pod says only ContainerCreating, as in any
start. From one whose image is being fetched it is told by kubelets from 1.36 on, which say before they fetch it that
network and volumes are there; earlier ones say so when they have the image. What its volumes need is named.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ots_tunnel_operator.times import parse_time
from ots_tunnel_operator.world.pod import Mounting

#: Source of a volume, or of a part of a projected one -> the kind that it names and the fields that may have the name.
_SOURCES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "configMap": ("ConfigMap", ("name",)),
    "secret": ("Secret", ("secretName", "name")),
    "persistentVolumeClaim": ("PersistentVolumeClaim", ("claimName",)),
}


def mounting(item: Mapping[str, Any]) -> Mounting | None:
    """What a pod waits for before its containers can be made, by the pod's document; None where it does not wait."""
    status = item.get("status") or {}
    states = {entry.get("type"): entry for entry in status.get("conditions") or ()}
    bound = states.get("PodScheduled") or {}
    since = parse_time(bound.get("lastTransitionTime")) if bound.get("status") == "True" else None
    if since is None or status.get("phase") != "Pending" or _has_begun(status, states.get("PodReadyToStartContainers")):
        return None
    volumes = (item.get("spec") or {}).get("volumes") or ()
    return Mounting(since, tuple(name for volume in volumes for name in _needs(volume)))


def _has_begun(status: Mapping[str, Any], ready: Mapping[str, Any] | None) -> bool:
    """Whether volumes and network are there; kubelets before 1.29 tell by the pod's address alone."""
    return bool(status.get("podIP")) if ready is None else ready.get("status") == "True"


def _needs(volume: Mapping[str, Any]) -> Iterator[str]:
    for part in (volume, *((volume.get("projected") or {}).get("sources") or ())):
        for source, (kind, fields) in _SOURCES.items():
            found = part.get(source) or {}
            name = next((found[field] for field in fields if found.get(field)), None)
            if name is not None and not found.get("optional"):
                yield f"{kind} {name!r}"
