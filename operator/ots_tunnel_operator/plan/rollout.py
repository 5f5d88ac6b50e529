"""When an object replaces its workers by those of this release. Pure.

Theory of operation
-------------------
Two annotations of the Deployment tell what its template was made from: a hash of the template, and the generation of
the object with a hash of the part of its spec that makes the template. A template that is to change does so for one of
two reasons:

    an edit       the generation is another one, and so is that part of the spec: carried out at once
    the release   otherwise: another worker image, where the object names none, or another rendering

At most `Settings.rollout_budget` objects replace their workers at once because of the release. There is no queue. An
object that is to do so says in its status that it waits (RolloutWaiting), and says there that it rolls (RollingWorkers)
in the pass that applies the new template. From the statuses alone follows who is next: of the waiting objects, those
that have waited longest (`observe.rollouts`), as many as the budget has room for beside those that roll. So a crash
loses nothing, and two objects do not take the same place.

A rollout that does not go on for the Deployment's progress deadline, about ten minutes, or that somebody has paused, is
RolloutStuck: it keeps its old workers, and its place is free. An object that rolls anyway takes the new template with
it.

One whose new template the API server refuses, for `workers.podTemplate` or by a policy against the release's image,
cannot begin. Neither can one where it refuses a child that workers need, such as the NetworkPolicy, or somebody else
has the name of that child. It is RolloutStuck as well, until that has ended; then it waits for its turn.

While an object waits, its Deployment and its ConfigMap stay as they are: workers of the former release read the former
document. Only the number of workers follows the spec.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ots_tunnel_operator import names
from ots_tunnel_operator.assess.worker_pods.exits import is_overcome
from ots_tunnel_operator.assess.worker_pods.present_template import of_present_template
from ots_tunnel_operator.assess.worker_pods.trouble import MEMORY_SECONDS, RESTARTS
from ots_tunnel_operator.kube.kinds import Manifest
from ots_tunnel_operator.plan.actions import Action, ApplyObject, Plan, Wait
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.world.pod import Pod
from ots_tunnel_operator.world.world import World

#: Kinds that are applied after the Deployment: the rollout has begun by then, and workers run without them as well.
AFTERWARDS = frozenset({"PodDisruptionBudget"})


def replaces_workers(world: World, manifest: Manifest, replicas: int) -> bool:
    """Whether applying the Deployment replaces workers."""
    has_workers = bool(replicas) and bool(((world.deployment or {}).get("spec") or {}).get("replicas", 1))
    return has_workers and changes_template(world, manifest)


def changes_template(world: World, manifest: Manifest) -> bool:
    """Whether applying the Deployment gives the one that is there another template."""
    found = world.deployment
    if found is None or not found["spec"].get("template"):
        return False
    return _annotation(found, names.ANNOTATION_TEMPLATE_HASH) != _annotation(manifest, names.ANNOTATION_TEMPLATE_HASH)


def waits_for_its_turn(world: World, manifest: Manifest, budget: int) -> Wait | None:
    """The wait of an object whose workers this release replaces, until it is its turn; None where it need not wait.

    Args:
        manifest: the Deployment as rendered; applying it replaces workers.
        budget: objects that may replace their workers at once.
    """
    if is_edited(world, manifest) or is_rolling(world):
        return None
    said, turn = _progress(world), world.rollout_turn
    has_a_turn = said == Reason.ROLLOUT_WAITING and turn.rolling + turn.ahead < budget
    if has_a_turn or said == Reason.ROLLING_WORKERS:
        return None
    message = f"the workers of this release wait for their turn: operator.rolloutBudget lets {budget} objects roll"
    return Wait(Reason.ROLLOUT_WAITING, f"{message} at once")


def asks_again(world: World) -> bool:
    """Whether a template is tried before it is the object's turn: its refusal has cost it the last one."""
    return _progress(world) == Reason.ROLLOUT_STUCK


def refused(decided: Plan, world: World, problem: Problem, failed: Action, *, lasts: bool) -> Plan:
    """The plan with the problem of an action that failed; a rollout that cannot begin keeps no place from others.

    Args:
        lasts: whether the action fails again until a person acts, as one with a taken name does.
    """
    begins = decided.held or decided.wait
    is_needed = not (isinstance(failed, ApplyObject) and failed.manifest["kind"] in AFTERWARDS)
    is_refused = lasts and is_needed and not is_rolling(world)
    if is_refused and begins is not None and begins.reason in (Reason.ROLLING_WORKERS, Reason.ROLLOUT_WAITING):
        stuck = Wait(Reason.ROLLOUT_STUCK, "the former workers keep running: what the next ones need is refused")
        decided = replace(decided, wait=stuck, held=None)
    return replace(decided, problem=problem, again=False)


def is_edited(world: World, manifest: Manifest) -> bool:
    """Whether the part of the spec that makes the template was edited since it was applied."""
    before = _annotation(world.deployment or {}, names.ANNOTATION_MADE_FROM)
    after = _annotation(manifest, names.ANNOTATION_MADE_FROM)
    if not before:
        # applied by an earlier release, which had seen this generation, or had not
        return bool(world.resource.status.get("observedGeneration") != world.resource.generation)
    return all(old != new for old, new in zip(before.split("."), after.split("."), strict=False))


def is_rolling(world: World) -> bool:
    """Whether workers of another template are left."""
    status = (world.deployment or {}).get("status") or {}
    return int(status.get("updatedReplicas") or 0) < int(status.get("replicas") or 0)


def find_stuck(world: World) -> str | None:
    """Why a rollout does not go on, in words; empty where its pods tell, None where it goes on.

    The Deployment's controller gives one up, but not while it is paused, nor while a new worker is ready for a moment
    in each of its lives: each of these moments is progress to it.
    """
    found = world.deployment
    if found is None or not is_rolling(world):
        return None
    if found["spec"].get("paused"):
        return (
            f": the Deployment is paused; kubectl rollout resume deployment/{found['metadata']['name']} lets it go on"
        )
    if (pod := _ending_pod(world, found)) is not None:
        return f"; new pod: {pod.message or 'its container ends again and again'}"
    conditions = (found.get("status") or {}).get("conditions") or ()
    given_up = ("Progressing", "ProgressDeadlineExceeded")
    return "" if any((one.get("type"), one.get("reason")) == given_up for one in conditions) else None


def _ending_pod(world: World, deployment: Mapping[str, Any]) -> Pod | None:
    """A pod of the new template that is older than the progress deadline and keeps ending."""
    deadline = float(deployment["spec"].get("progressDeadlineSeconds") or 600)
    alive = [pod for pod in world.pods if pod.is_alive and not pod.deleting]
    for pod in sorted(of_present_template(alive, deployment), key=lambda pod: pod.name):
        is_old = world.now - pod.created >= deadline
        if is_old and pod.restarts >= RESTARTS and not is_overcome(pod, world.now, MEMORY_SECONDS):
            return pod
    return None


def _progress(world: World) -> str:
    """The reason of Progressing as the object's status says it."""
    conditions = world.resource.status.get("conditions") or ()
    return next((str(one.get("reason")) for one in conditions if one.get("type") == "Progressing"), "")


def _annotation(manifest: Any, name: str) -> str:
    return str(((manifest.get("metadata") or {}).get("annotations") or {}).get(name) or "")
