"""The end of a worker that no restart can help: a verdict that stops the workers until a next attempt may differ. Pure.

Theory of operation
-------------------
A worker that a record makes end reads the same record at its next start, and so does each worker that gets its channel
afterwards. So the first such end stops all of them, and is recorded (`status.verdict`), because the pods that tell of
it go. What a person may change is the attempt:

    the generation of the spec    any edit, also of `replicas` or `suspend`
    the tunnel                    another id, after starting over
    a restart                     `kubectl ott restart`, or `kubectl rollout restart` of the Deployment

The verdict stands while the attempt is the recorded one. It is no lasting state of the service, so no look refutes it.

An end counts if it belongs to the present attempt: the operator has acted on this generation before, the controller of
the Deployment has seen what was applied then, and the pod has the present template (`present_template`). Pods that are
leaving and those of a former object of this name tell nothing, nor does a worker that runs again.

Example: a row is too large for the destination. The worker ends with code 4 at 12:00:00; at 12:00:01 the operator sets
the Deployment to 0, and the object is Stalled with SinkRejected. At 12:10 a user sets onPermanentError to DeadLetter:
the generation is another one, and the workers start.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ots_tunnel_operator import names
from ots_tunnel_operator.assess.worker_pods.exits import end_problem, is_overcome, meaning
from ots_tunnel_operator.assess.worker_pods.present_template import of_present_template
from ots_tunnel_operator.reasons import Problem
from ots_tunnel_operator.world.pod import Pod
from ots_tunnel_operator.world.world import World


def find_final_end(world: World) -> Problem | None:
    """The end of a worker of the present attempt that no restart can help; None without one."""
    for pod in sorted(_of_this_attempt(world), key=lambda pod: pod.name):
        end = pod.container.end
        found = meaning(end) if end is not None else None
        if end is not None and found is not None and found.is_final and not is_overcome(pod, world.now):
            return replace(end_problem(pod, end, found, world.resource), attempt=attempt(world))
    return None


def attempt(world: World) -> str:
    """What names the present attempt: a hash of all that a person may change before the next one."""
    template = ((world.deployment or {}).get("spec") or {}).get("template") or {}
    restarted = (((template.get("metadata") or {}).get("annotations")) or {}).get(names.ANNOTATION_RESTARTED_AT)
    parts = world.resource.generation, world.resource.recorded_tunnel.get("id"), restarted
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def _of_this_attempt(world: World) -> list[Pod]:
    """The pods whose ends tell about the present attempt."""
    found, resource = world.deployment, world.resource
    if found is None or not _is_seen(found) or resource.status.get("observedGeneration") != resource.generation:
        return []
    alive = [pod for pod in world.pods if not pod.deleting and _is_own(pod, resource.created)]
    return of_present_template(alive, found)


def _is_seen(deployment: Mapping[str, Any]) -> bool:
    """Whether its controller has seen the Deployment, and made a pod of the present template."""
    status, metadata = deployment.get("status") or {}, deployment["metadata"]
    is_observed = int(status.get("observedGeneration") or 0) >= int(metadata.get("generation") or 0)
    return is_observed and int(status.get("updatedReplicas") or 0) > 0


def _is_own(pod: Pod, created: float) -> bool:
    """Whether a pod is not one of a former object; both times are whole seconds, 0 is unknown."""
    return not pod.created or pod.created >= created
