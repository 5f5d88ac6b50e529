"""A worker that was killed because of its memory: the limit that was found, and what to set. Pure."""

from __future__ import annotations

import re

from ots_tunnel_operator import names
from ots_tunnel_operator.api.engine import Workers
from ots_tunnel_operator.memory_limit import sets_memory_limit
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.world.pod import Pod

#: The kubelet's word for an end by the kernel at a memory limit.
OOM = "OOMKilled"
_QUANTITY = re.compile(r"(\d+)([A-Za-z]*)")


def out_of_memory(pod: Pod, workers: Workers) -> Problem:
    """The problem of a pod whose worker was killed at its memory limit.

    Args:
        workers: spec.workers; a limit that its template does not set follows from its budget, so that a lower budget
            would lower both.
    """
    limit = pod.container.memory_limit
    field = f"resources.limits.memory of container {names.WORKER_CONTAINER!r} in spec.workers.podTemplate"
    if limit:
        found = (
            f"needed more than the {limit} that its container may have, and was killed: set {field} to {more(limit)}"
        )
    else:
        found = f"was killed because its node was out of memory, and has no limit of its own: set {field}"
    budget = f", or spec.workers.memoryBudgetBytes to less than {workers.memory_budget_bytes}"
    less = budget if sets_memory_limit(workers.pod_template) else ""
    return Problem(Reason.OOM_KILLED, f"pod {pod.name}: its worker {found}{less}")


def more(limit: str) -> str:
    """Twice a quantity of Kubernetes, such as 1280Mi for 640Mi; in words where it is no whole number."""
    found = _QUANTITY.fullmatch(limit)
    return f"{2 * int(found[1])}{found[2]}" if found is not None else "twice as much"
