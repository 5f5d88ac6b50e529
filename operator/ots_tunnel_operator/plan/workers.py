"""The part of a plan that consumes the tunnel with workers. Pure."""

from __future__ import annotations

from dataclasses import replace

from ots_tunnel.errors import ConfigError
from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.assess.assessment import Assessment
from ots_tunnel_operator.assess.creation import is_recreated
from ots_tunnel_operator.assess.draining import draining
from ots_tunnel_operator.assess.spark.snapshot_state import SnapshotState
from ots_tunnel_operator.assess.worker_pods.present_template import of_present_template
from ots_tunnel_operator.manifests.worker_account import has_own_account, service_account
from ots_tunnel_operator.manifests.worker_deployment import deployment
from ots_tunnel_operator.manifests.worker_document import config_map, worker_document
from ots_tunnel_operator.manifests.worker_network import network_policy
from ots_tunnel_operator.manifests.worker_spread import disruption_budget
from ots_tunnel_operator.plan.actions import (
    Action,
    ApplyObject,
    CheckName,
    Plan,
    SetReplicas,
    TryObject,
    TryTemplate,
    Wait,
)
from ots_tunnel_operator.plan.ahead import before_scaling, number, with_place
from ots_tunnel_operator.plan.another_place import empty_former_place
from ots_tunnel_operator.plan.rollout import (
    asks_again,
    changes_template,
    find_stuck,
    is_rolling,
    replaces_workers,
    waits_for_its_turn,
)
from ots_tunnel_operator.plan.scaling import Course, course, rival
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.settings import Settings
from ots_tunnel_operator.world.world import World

#: Kinds that stay as they are while a rollout waits for its turn: the former workers read the former document.
HELD = frozenset({"ConfigMap", "Deployment"})


def may_consume(world: World, assessment: Assessment) -> bool:
    """Whether workers were started before, so that a problem elsewhere is no reason to stop them.

    None is sent to a table that no look has found in order: the rows that it writes there would pass for the copy.
    """
    if not world.resource.spec.uses_workers:
        # a query that runs goes on as it is
        return False
    recorded = bool(world.resource.recorded_tunnel.get("id"))
    recorded = recorded and world.resource.is_destination_recorded and not is_recreated(world)
    not_copying = assessment.snapshot.state is SnapshotState.NOT_NEEDED
    return recorded and not_copying and (world.deployment is not None or _had_workers(world))


def leave(assessment: Assessment, problem: Problem | None, wait: Wait | None = None) -> Plan:
    """Leave the workers that run as they are: what they are told now might be wrong."""
    # what was delivered stays delivered, whatever cannot be read now
    completed = assessment.was_completed
    return Plan(wait=wait, problem=problem, completed=completed, replicas=assessment.deployed_replicas)


def _had_workers(world: World) -> bool:
    """Whether the status says that workers were wanted: a Deployment that is gone was deleted by another client."""
    conditions = world.resource.status.get("conditions") or ()
    wanted = {Reason.MINIMUM_REPLICAS_AVAILABLE, Reason.WORKERS_UNAVAILABLE}
    return any(item.get("type") == "WorkersAvailable" and item.get("reason") in wanted for item in conditions)


def consume(world: World, assessment: Assessment, settings: Settings, problem: Problem | None) -> Plan:
    """Keep as many workers as wanted; none once everything is delivered.

    Args:
        world: what was observed; the tunnel's id is recorded.
        assessment: of this world.
        settings: of the process.
        problem: a problem that does not stop workers, for the report.
    """
    if (emptied := empty_former_place(world, assessment)) is not None:
        return replace(emptied, problem=problem, completed=assessment.is_completed)
    completed = assessment.is_completed
    wanted = 0 if completed else assessment.scaling.wanted
    step = course(world, wanted)
    actions, invalid = _worker_objects(world, assessment, step.replicas, settings)
    # a problem elsewhere does not end a rollout
    wait = None if completed else _wait_for_workers(world, wanted, step) or _wait_for_end(world, assessment, wanted)
    wait, held = _rollout(world, actions, step, settings, wait)
    told: tuple[Action, ...] = (*step.marks, *number(world, assessment, step), *_trial(world, actions), *actions)
    if held is not None:
        others = tuple(one for one in actions if one.manifest["kind"] not in HELD)
        is_scaled = assessment.deployed_replicas == step.replicas
        # a trial is a call, and many objects begin to wait at once; names are looked up in memory
        is_asked = asks_again(world)
        tried: tuple[Action, ...] = _trial(world, actions) if is_asked else ()
        documents = _documents(actions) if is_asked else ()
        scaled = () if is_scaled else (SetReplicas(step.replicas),)
        # the number first: what the next workers need may be refused
        told = (*step.marks, *tried, *_names(actions), *scaled, *others, *documents)
    told = with_place(world, told)
    if assessment.scaling.record is not None and not completed:
        # before it is carried out: an operator that dies in between carries it out after its restart
        told = (before_scaling(assessment), *told)
    warning = step.warning or rival(world, wanted)
    return Plan(told, wait, problem or invalid, completed=completed, replicas=wanted, warning=warning, held=held)


def _trial(world: World, actions: tuple[ApplyObject, ...]) -> tuple[TryTemplate, ...]:
    """The question whether the API server takes a template with a part of the user's, or another one than before.

    It comes first: the document of pods that cannot be made would reach those that run, at their next restart.
    """
    has_own_part = bool(world.resource.spec.worker_settings.pod_template)
    workers = (one.manifest for one in actions if one.manifest["kind"] == "Deployment")
    return tuple(TryTemplate(manifest) for manifest in workers if has_own_part or changes_template(world, manifest))


def _documents(actions: tuple[ApplyObject, ...]) -> tuple[TryObject, ...]:
    """The question whether the API server takes the next workers' document: its refusal may have cost the last turn."""
    return tuple(TryObject(one.manifest) for one in actions if one.manifest["kind"] == "ConfigMap")


def _names(actions: tuple[ApplyObject, ...]) -> tuple[CheckName, ...]:
    """Whether the names of what is held are taken: it is told meanwhile, and such an object has no use for a turn."""
    return tuple(CheckName(one.manifest) for one in actions if one.manifest["kind"] in HELD)


def _rollout(
    world: World, actions: tuple[ApplyObject, ...], step: Course, settings: Settings, wait: Wait | None
) -> tuple[Wait | None, Wait | None]:
    """What is waited for, a rollout that begins now included, and what holds one."""
    manifest = next((one.manifest for one in actions if one.manifest["kind"] == "Deployment"), None)
    if manifest is None or not replaces_workers(world, manifest, step.replicas):
        return wait, None
    if (held := waits_for_its_turn(world, manifest, settings.rollout_budget)) is not None:
        return wait, held
    # the Deployment is still as it was: the status says that it rolls before anything else is decided
    return Wait(Reason.ROLLING_WORKERS, f"rolling out 0 of {step.replicas}"), None


def _worker_objects(
    world: World, assessment: Assessment, replicas: int, settings: Settings
) -> tuple[tuple[ApplyObject, ...], Problem | None]:
    """The actions that apply what the workers are and need.

    They are rendered once for a generation, tunnel, read mark and number of workers.
    """
    mark = assessment.read_mark.time if assessment.read_mark is not None else None
    tunnel_id, rendered = str(world.resource.recorded_tunnel["id"]), world.resource.rendered
    key = tunnel_id, mark, replicas, settings.worker_image, settings.image_pull_policy
    if key not in rendered:
        # an older number of workers does not come back soon, an older mark never
        rendered.clear()
        rendered[key] = _render(world.resource.object, tunnel_id, mark, replicas, settings)
    found: tuple[tuple[ApplyObject, ...], Problem | None] = rendered[key]
    return found


def _render(
    obj: TablestoreTunnel, tunnel_id: str, mark: float | None, replicas: int, settings: Settings
) -> tuple[tuple[ApplyObject, ...], Problem | None]:
    try:
        config = worker_document(obj, tunnel_id, mark)
        document = config_map(obj, config)
        workers = deployment(
            obj,
            config,
            settings.worker_image,
            replicas,
            pull_policy=settings.image_pull_policy,
            cluster_assigns_user=settings.cluster_assigns_user,
        )
    except ConfigError as error:
        return (), Problem(Reason.INVALID_SPEC, str(error))
    account = (service_account(obj, settings.worker_pull_secrets),) if has_own_account(obj) else ()
    network = (network_policy(obj, settings.worker_network),) if settings.worker_network is not None else ()
    # last: workers run without it as well
    budget = (disruption_budget(obj),) if settings.worker_budgets else ()
    # the document right before the workers: where what they need is refused, those that run read it at their next start
    return tuple(ApplyObject(manifest) for manifest in (*account, *network, document, workers, *budget)), None


def _wait_for_workers(world: World, replicas: int, step: Course) -> Wait | None:
    """What the Deployment has not reached yet; None once it runs as wanted."""
    found = world.deployment
    if found is None:
        return Wait(Reason.STARTING_WORKERS, f"{replicas} workers are being started")
    if (why := find_stuck(world)) is not None:
        return Wait(Reason.ROLLOUT_STUCK, f"the former workers keep running{why or _why_new_pod_waits(world)}")
    status, spec = found.get("status") or {}, found.get("spec") or {}
    ready, updated = int(status.get("readyReplicas") or 0), int(status.get("updatedReplicas") or 0)
    exists = int(status.get("replicas") or 0)
    observed = int(status.get("observedGeneration") or 0) >= int(found["metadata"].get("generation") or 0)
    asked = int(spec.get("replicas", 1))
    if asked != replicas and not is_rolling(world):
        waits = f", one at a time: {step.waits}" if step.waits else ""
        return Wait(Reason.SCALING, f"from {exists} to {replicas} workers{waits}")
    # a rollout has more pods than wanted for a while: that is no scaling
    if not observed or updated < exists:
        then = f"; then from {asked} to {replicas} workers" if asked != replicas else ""
        why = _why_new_pod_waits(world)
        return Wait(Reason.ROLLING_WORKERS, f"rolling out {updated} of {max(asked, replicas)}{then}{why}")
    if exists != replicas:
        return Wait(Reason.SCALING, f"from {exists} to {replicas} workers")
    if ready < replicas:
        return Wait(Reason.STARTING_WORKERS, f"{ready} of {replicas} workers are ready{_why_new_pod_waits(world)}")
    return None


def _wait_for_end(world: World, assessment: Assessment, replicas: int) -> Wait | None:
    """What still consumes although no worker is wanted; None once nothing does.

    A Deployment counts neither a pod that is being deleted nor a process whose pod is gone. Of an object that
    falls asleep everything was read before.
    """
    if replicas or assessment.scaling.is_asleep:
        return None
    still = draining(world, assessment.snapshot, assessment.query)
    return Wait(Reason.SCALING, f"to 0 workers: {still}") if still else None


def _why_new_pod_waits(world: World) -> str:
    """Why the youngest pod that is not ready does not run, with a leading semicolon; empty where nothing is known."""
    alive = [pod for pod in world.pods if pod.is_alive and not pod.deleting]
    new = alive if world.deployment is None else of_present_template(alive, world.deployment)
    waiting = [pod for pod in new if not pod.ready and pod.message]
    youngest = max(waiting, key=lambda pod: (pod.created, pod.name), default=None)
    return "" if youngest is None else f"; new pod: {youngest.message}"
