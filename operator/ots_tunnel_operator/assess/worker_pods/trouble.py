"""What keeps a worker's pod from running, or has ended its worker, as one problem. Pure.

Theory of operation
-------------------
It is said at the first sight of it, whatever the number of restarts, and beside workers that run. The first line that
some pod of the object fits decides, so that two pods in trouble do not take turns:

    OOMKilled             the kernel ended the worker at its memory limit
    by exit code          the worker named a cause (`exits`)
    ImagePullFailed       the kubelet cannot fetch an image, or its name is none
    ContainerConfigError  the kubelet cannot make or start a container, or has begun none for MOUNT_SECONDS
    PodsRefused           the API server refuses the pods, by the condition ReplicaFailure of the Deployment
    Unschedulable         no node takes a pod; the scheduler's own words
    Evicted               a node has ended or refused a pod in the last EVICTED_SECONDS, and a worker is missing
    WorkersFailing        a container has ended RESTARTS times with codes that name no cause

What stops the workers is told by `final_end`, and a Secret that a pod waits for by the operator's own look.

When is it over? A pod that waits, or is not scheduled: with that. A container that ended: once it is ready again and
has run for longer than its end needs to come back. A worker that is refused connects first, and is ready for a moment
in each of its lives: a minute tells more. Memory fills slowly: a kubelet forgets the restarts of a container that has
run for ten minutes, and so does this.

Messages hold no figure that moves by itself, and of several pods name the first one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from ots_tunnel_operator.assess.worker_pods.exits import end_problem, is_overcome, meaning
from ots_tunnel_operator.assess.worker_pods.memory import OOM, out_of_memory
from ots_tunnel_operator.diagnosis import shortened
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.world.pod import Pod
from ots_tunnel_operator.world.world import World

#: Ends of one container from which on they are reported although they name no cause; a single one heals by itself.
RESTARTS = 3
#: Seconds that a container runs, and is ready, until a lack of memory counts as overcome.
MEMORY_SECONDS = 600.0
#: Seconds for which the end of a pod by its node explains that a worker is missing.
EVICTED_SECONDS = 600.0
#: Seconds in which a node attaches volumes, makes a pod's network and fetches an image: kubelets before 1.36 tell of
#: the first two only when they have the image.
MOUNT_SECONDS = 300.0
#: The kubelet's words for an image that cannot be had.
_IMAGES = frozenset({"ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"})
#: A pod in a message of the API server, whose name is another one in each try.
_POD = re.compile(r'pods "[^"]*"')

Finding = Callable[[Pod, World], Problem | None]


def find_trouble(world: World) -> Problem | None:
    """What is wrong with the pods of an object; None where nothing is, or no worker is wanted."""
    wanted = 0 if world.deployment is None else int(world.deployment["spec"].get("replicas", 1))
    if not wanted or world.resource.spec.suspend:
        return None
    pods = sorted((pod for pod in world.pods if not pod.deleting), key=lambda pod: pod.name)
    alive = [pod for pod in pods if pod.is_alive]
    found = (
        _first(_lacks_memory, alive, world),
        _first(_named_a_cause, alive, world),
        _first(_lacks_its_image, alive, world),
        _first(_cannot_start, alive, world),
        _first(_lacks_a_volume, alive, world),
        _refused_pods(world),
        _first(_unschedulable, alive, world),
        _first(_evicted, pods, world) if sum(pod.ready for pod in alive) < wanted else None,
        _first(_keeps_ending, alive, world),
    )
    return next((problem for problem in found if problem is not None), None)


def _first(finding: Finding, pods: Iterable[Pod], world: World) -> Problem | None:
    problems = (finding(pod, world) for pod in pods)
    return next((problem for problem in problems if problem is not None), None)


def _lacks_memory(pod: Pod, world: World) -> Problem | None:
    end = pod.container.end
    if end is None or end.reason != OOM or is_overcome(pod, world.now, MEMORY_SECONDS):
        return None
    return out_of_memory(pod, world.resource.spec.worker_settings)


def _named_a_cause(pod: Pod, world: World) -> Problem | None:
    end = pod.container.end
    found = meaning(end) if end is not None else None
    if end is None or found is None or found.is_final or is_overcome(pod, world.now):
        return None
    return end_problem(pod, end, found, world.resource)


def _lacks_its_image(pod: Pod, world: World) -> Problem | None:
    if pod.container.waiting not in _IMAGES:
        return None
    field = "spec.workers.image" if world.resource.spec.worker_settings.image else "the image of the operator's release"
    return Problem(
        Reason.IMAGE_PULL_FAILED,
        f"pod {pod.name}: image {pod.container.image!r} cannot be fetched ({_cause(pod)}): correct {field} or the "
        f"images of spec.workers.podTemplate, give it imagePullSecrets, or let the nodes reach the registry",
    )


def _cannot_start(pod: Pod, world: World) -> Problem | None:
    if not pod.container.waiting or pod.container.waiting in _IMAGES:
        return None
    return Problem(
        Reason.CONTAINER_CONFIG_ERROR,
        f"pod {pod.name}: a container cannot be made or started ({pod.container.waiting}: {_cause(pod)}): create what "
        f"it names, or correct spec.workers.podTemplate",
    )


def _lacks_a_volume(pod: Pod, world: World) -> Problem | None:
    found = pod.mounting
    if found is None or world.now - found.since < MOUNT_SECONDS:
        return None
    needs = f", or one of what its volumes need is missing ({', '.join(found.needs)})" if found.needs else ""
    return Problem(
        Reason.CONTAINER_CONFIG_ERROR,
        f"pod {pod.name}: its node has had it for {MOUNT_SECONDS / 60:.0f} minutes, but has begun none of its "
        f"containers: its network is not there, a volume is not attached yet, its image is still being fetched{needs}: "
        f"`kubectl -n {world.resource.namespace} describe pod {pod.name}` has the node's words: create what is "
        f"missing, or correct spec.workers.podTemplate",
    )


def _cause(pod: Pod) -> str:
    return pod.container.cause or "the kubelet names no cause yet"


def _refused_pods(world: World) -> Problem | None:
    status = (world.deployment or {}).get("status") or {}
    for entry in status.get("conditions") or ():
        if (entry.get("type"), entry.get("status")) == ("ReplicaFailure", "True"):
            words = shortened(_POD.sub("pods", str(entry.get("message") or entry.get("reason") or "")))
            return Problem(
                Reason.PODS_REFUSED,
                f"the API server refuses pods of Deployment {world.resource.name!r} ({words}): correct the quota or "
                f"policy that it names, or spec.workers.podTemplate",
            )
    return None


def _unschedulable(pod: Pod, world: World) -> Problem | None:
    if not pod.unscheduled:
        return None
    return Problem(
        Reason.UNSCHEDULABLE,
        f"pod {pod.name}: no node takes it ({pod.unscheduled}): add nodes, use fewer spec.replicas, or correct "
        f"requests, nodeSelector, affinity and tolerations in spec.workers.podTemplate",
    )


def _evicted(pod: Pod, world: World) -> Problem | None:
    time = pod.removed_time
    if not pod.removed or time is None or world.now - time >= EVICTED_SECONDS:
        return None
    return Problem(
        Reason.EVICTED,
        f"pod {pod.name}: its node has ended or refused it ({pod.removed}): another pod replaces it; where that comes "
        f"back, set resources.requests of the container in spec.workers.podTemplate, or give the nodes more room",
    )


def _keeps_ending(pod: Pod, world: World) -> Problem | None:
    if pod.restarts < RESTARTS or is_overcome(pod, world.now):
        return None
    return Problem(
        Reason.WORKERS_FAILING,
        f"pod {pod.name} keeps restarting ({pod.message or 'no termination message'}): see its log and fix the cause",
    )
