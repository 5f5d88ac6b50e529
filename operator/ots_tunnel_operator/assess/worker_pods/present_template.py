"""Which pods are made from the present template of the workers' Deployment. Pure.

Pods name their template by a hash that only the controller of the Deployment can compute, and the youngest pod need not
be a new one: one of the former template that its node has lost is made again in the middle of a rollout. So image and
document, one of which nearly every new template changes, sort the former ones out first. Where no pod has those of the
Deployment, as where a cluster rewrites images, they tell nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ots_tunnel_operator.world.pod import Origin, Pod


def of_present_template(pods: Iterable[Pod], deployment: Mapping[str, Any]) -> list[Pod]:
    """The pods that have the template of the youngest one that may be new; none of no pods."""
    found = list(pods)
    template = Origin.of(deployment["spec"].get("template") or {})
    new = [pod for pod in found if pod.origin == template] or found
    youngest = max(new, key=lambda pod: (pod.created, pod.name), default=None)
    return [pod for pod in new if youngest is not None and pod.template == youngest.template]
