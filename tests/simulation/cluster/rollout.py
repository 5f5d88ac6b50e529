"""What the Deployment controller does next. Pure.

It knows RollingUpdate with maxSurge 1 and maxUnavailable 0, as the operator renders it: at most one pod more than
wanted, and an old pod goes only when a new one has been ready for minReadySeconds. ReplicaSets are left out: a pod
carries the hash of its template, which is all that the operator could see of them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Manifest = Mapping[str, Any]
TEMPLATE_HASH = "pod-template-hash"


@dataclass(frozen=True, slots=True)
class PodState:
    """A pod of a Deployment as its controller sees it."""

    name: str
    template: str
    ready_since: float | None
    leaving: bool
    created: float
    deletion_cost: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """Number of pods to create from the current template, and the names of those to delete."""

    create: int = 0
    delete: tuple[str, ...] = ()


def template_hash(deployment: Manifest) -> str:
    """Hash of the pod template."""
    text = json.dumps(deployment["spec"]["template"], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def next_step(deployment: Manifest, pods: Sequence[PodState], now: float) -> Step:
    """Pods to create and delete at this moment."""
    wanted = int(deployment["spec"].get("replicas", 1))
    current = template_hash(deployment)
    living = [pod for pod in pods if not pod.leaving]
    new = [pod for pod in living if pod.template == current]
    old = [pod for pod in living if pod.template != current]
    if len(new) > wanted:
        return Step(delete=_victims(new, len(new) - wanted))
    if not wanted:
        return Step(delete=tuple(pod.name for pod in old))
    if len(new) < wanted:
        surge = wanted + 1 if old else wanted
        return Step(create=max(0, min(wanted - len(new), surge - len(living))), delete=_spare(deployment, living, now))
    return Step(delete=_spare(deployment, living, now))


def status_of(deployment: Manifest, pods: Sequence[PodState], now: float) -> dict[str, Any]:
    """The status that the controller writes."""
    current = template_hash(deployment)
    living = [pod for pod in pods if not pod.leaving]
    ready = [pod for pod in living if pod.ready_since is not None]
    available = [pod for pod in living if _is_available(deployment, pod, now)]
    status = {
        "observedGeneration": deployment["metadata"]["generation"],
        "replicas": len(living),
        "updatedReplicas": sum(pod.template == current for pod in living),
        "readyReplicas": len(ready),
        "availableReplicas": len(available),
        "unavailableReplicas": max(0, int(deployment["spec"].get("replicas", 1)) - len(available)),
    }
    return {key: value for key, value in status.items() if value or key == "observedGeneration"}


def _spare(deployment: Manifest, living: Sequence[PodState], now: float) -> tuple[str, ...]:
    """Old pods that may go without leaving fewer available pods than wanted; those that do not run go first."""
    wanted, current = int(deployment["spec"].get("replicas", 1)), template_hash(deployment)
    old = [pod for pod in living if pod.template != current]
    broken = [pod for pod in old if not _is_available(deployment, pod, now)]
    available = sum(_is_available(deployment, pod, now) for pod in living)
    healthy = _victims([pod for pod in old if pod not in broken], max(0, available - wanted))
    return tuple(pod.name for pod in broken) + healthy


def _victims(pods: Sequence[PodState], count: int) -> tuple[str, ...]:
    """Pods that are not ready first, then the lowest deletion cost, then the youngest."""
    order = sorted(pods, key=lambda pod: (pod.ready_since is not None, pod.deletion_cost, -pod.created, pod.name))
    return tuple(pod.name for pod in order[:count])


def _is_available(deployment: Manifest, pod: PodState, now: float) -> bool:
    settle = float(deployment["spec"].get("minReadySeconds", 0))
    return pod.ready_since is not None and now - pod.ready_since >= settle
