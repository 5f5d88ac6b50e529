"""The part of a plan that consumes the tunnel with workers: pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ots_tunnel.errors import ConfigError
from ots_tunnel_operator import names
from ots_tunnel_operator.assess.completion import is_completed
from ots_tunnel_operator.assess.snapshot import Snapshot, Step
from ots_tunnel_operator.manifests.worker_deployment import deployment
from ots_tunnel_operator.manifests.worker_document import config_map, worker_config
from ots_tunnel_operator.plan.actions import Action, ApplyObject, Plan, Wait
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.settings import Settings
from ots_tunnel_operator.world import World


def may_consume(world: World, snapshot: Snapshot) -> bool:
    """Whether consumption was started once and nothing speaks against going on with what is recorded."""
    recorded = bool(world.resource.recorded_tunnel.get("id"))
    return recorded and snapshot.step is Step.NOT_NEEDED and _deployment(world) is not None


def consume(world: World, snapshot: Snapshot, settings: Settings, problem: Problem | None) -> Plan:
    """Workers as many as wanted, none when everything is read."""
    completed = is_completed(world)
    replicas = 0 if completed else world.resource.spec.replicas
    actions, invalid = _workers(world, replicas, settings)
    wait = None if completed or problem else _workers_wait(world, replicas)
    return Plan(actions, wait, problem or invalid, completed=completed, replicas=replicas, snapshot=snapshot)


def deployed_replicas(world: World) -> int:
    """Workers that the Deployment asks for; 0 where there is none."""
    found = _deployment(world)
    return int(found["spec"].get("replicas", 1)) if found is not None else 0


def _workers(world: World, replicas: int, settings: Settings) -> tuple[tuple[Action, ...], Problem | None]:
    obj, tunnel_id = world.resource.object, str(world.resource.recorded_tunnel["id"])
    try:
        config = worker_config(obj, tunnel_id)
        document = config_map(obj, config)
        workers = deployment(obj, config, settings.worker_image, replicas, pull_policy=settings.image_pull_policy)
    except ConfigError as error:
        return (), Problem(Reason.INVALID_SPEC, str(error))
    return (ApplyObject(document), ApplyObject(workers)), None


def _workers_wait(world: World, replicas: int) -> Wait | None:
    found = _deployment(world)
    status = (found or {}).get("status") or {}
    spec = (found or {}).get("spec") or {}
    if found is None:
        return Wait(Reason.STARTING_WORKERS, f"{replicas} workers are being started")
    ready, updated = int(status.get("readyReplicas") or 0), int(status.get("updatedReplicas") or 0)
    exists = int(status.get("replicas") or 0)
    observed = int(status.get("observedGeneration") or 0) >= int(found["metadata"].get("generation") or 0)
    if int(spec.get("replicas", 1)) != replicas or exists > max(replicas, updated) or (exists < replicas and observed):
        return Wait(Reason.SCALING, f"from {exists} to {replicas} workers")
    if not observed or updated < exists:
        return Wait(Reason.ROLLING_WORKERS, f"{updated} of {exists} workers run what is wanted now")
    if ready < replicas:
        return Wait(Reason.STARTING_WORKERS, f"{ready} of {replicas} workers are ready")
    return None


def _deployment(world: World) -> Mapping[str, Any] | None:
    return world.child("Deployment", names.deployment_name(world.resource.name))
