"""The part of a plan that copies existing rows with Spark. Pure; the choreography is in `assess.spark.snapshot`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ots_tunnel.errors import ConfigError
from ots_tunnel.snapshot.record import PROGRESS_LABEL
from ots_tunnel_operator import names
from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.assess.adoption import is_to_copy_again
from ots_tunnel_operator.assess.spark.application_state import Application
from ots_tunnel_operator.assess.spark.snapshot import COMPLETED, Snapshot
from ots_tunnel_operator.assess.spark.snapshot_state import SnapshotState
from ots_tunnel_operator.kube.kinds import CONFIG_MAP
from ots_tunnel_operator.manifests.children import is_owned
from ots_tunnel_operator.manifests.spark.rights import executors_account, role, role_binding, service_account
from ots_tunnel_operator.manifests.spark.snapshot_application import snapshot_application
from ots_tunnel_operator.manifests.spark.snapshot_document import snapshot_config_map, snapshot_progress_map
from ots_tunnel_operator.plan.actions import (
    Action,
    ApplyObject,
    DeleteObject,
    Plan,
    RecordStatus,
    Wait,
)
from ots_tunnel_operator.plan.stopping import suspend_application
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.settings import Settings
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world.world import World

#: Fields of status.snapshot that a copy gets in its course.
_RESULTS = ("state", "finishedTime", "consistent", "omittedCells")


def plan_snapshot(world: World, snapshot: Snapshot, settings: Settings) -> Plan:
    """Run the snapshot, wait for its end, record it; consumers start in a later pass."""
    if snapshot.state is SnapshotState.DONE:
        ended = timestamp(snapshot.finished or world.now)
        finished = {"state": COMPLETED, "finishedTime": ended, "tunnelId": snapshot.label}
        wait = Wait(Reason.SNAPSHOT_RUNNING, "every existing row is copied")
        return Plan((RecordStatus({"snapshot": finished}),), wait, again=True)
    wait = Wait(Reason.SNAPSHOT_RUNNING, snapshot.message)
    if snapshot.state is SnapshotState.SETTLING and _rests(snapshot.application):
        # nothing is left to copy, but consumers wait for the application's end
        return Plan((ApplyObject(_application(world, settings)),), wait, snapshot.problem)
    if not snapshot.state.runs_application:
        return Plan(wait=wait, problem=snapshot.problem)
    try:
        objects = snapshot_objects(world.resource.object, snapshot.label, settings)
    except ConfigError as error:
        return Plan(wait=wait, problem=Problem(Reason.INVALID_SPEC, str(error)))
    actions = (*_preparation(world, snapshot.label), *(ApplyObject(item) for item in objects))
    return Plan(actions, wait, snapshot.problem)


def _rests(application: Application | None) -> bool:
    """Whether an application does not go on, because it was suspended."""
    return application is not None and application.suspend and not application.state.terminal


def copy_again(world: World, snapshot: Snapshot) -> Plan | None:
    """Begin a copy anew whose table has no row; None where that need not be.

    What the status has of its start outlasts the record: tasks of the former application may still write.
    """
    if not is_to_copy_again(world, snapshot):
        return None
    name = names.snapshot_name(world.resource.name)
    actions: tuple[Action, ...] = ()
    began = timestamp(snapshot.began if snapshot.began is not None else world.now)
    start = {"application": name, "tunnelId": snapshot.label, "startedTime": began, "finishedTime": None}
    if world.resource.recorded_snapshot.get("tunnelId") != snapshot.label:
        actions = (RecordStatus({"snapshot": start}),)
    wait = Wait(Reason.SNAPSHOT_RUNNING, "the destination is empty: every row is copied again")
    return Plan((*actions, DeleteObject(CONFIG_MAP, name)), wait, again=True)


def _preparation(world: World, label: str) -> tuple[Action, ...]:
    """What precedes the objects of a copy: its start in the status, and no record of another copy."""
    name = names.snapshot_name(world.resource.name)
    actions: tuple[Action, ...] = ()
    if world.resource.recorded_snapshot.get("tunnelId") != label:
        start = {"application": name, "tunnelId": label, "startedTime": timestamp(world.now)}
        # nothing of an earlier copy holds for this one
        actions = (RecordStatus({"snapshot": dict.fromkeys(_RESULTS) | start}),)
    record = world.child("ConfigMap", name)
    if record is not None and record_label(record) != label:
        # applying this copy's label to the old record would make the old items count as this copy's
        actions = (*actions, DeleteObject(CONFIG_MAP, name))
    return actions


def record_actions(world: World) -> tuple[Action, ...]:
    """What an edit of deletionPolicy after the copy changes: whether the record outlives the object."""
    resource = world.resource
    record = world.child("ConfigMap", names.snapshot_name(resource.name))
    mine = names.identity_labels(resource.name, names.ROLE_SNAPSHOT)
    if record is None or not resource.spec.uses_spark or not is_owned(record, resource.uid, mine):
        return ()
    is_kept, label = not is_owned(record, resource.uid, {}), record_label(record)
    if not label or is_kept == (resource.spec.deletion_policy == "Retain"):
        return ()
    return (ApplyObject(snapshot_progress_map(resource.object, label=label)),)


def record_label(record: Mapping[str, Any]) -> str:
    """The copy that a progress record belongs to; empty without a label."""
    return str((record["metadata"].get("labels") or {}).get(PROGRESS_LABEL, ""))


def snapshot_objects(obj: TablestoreTunnel, label: str, settings: Settings) -> tuple[dict[str, Any], ...]:
    """Every object of a snapshot in the order of need; the application is last.

    Raises:
        ConfigError: a snapshot cannot write the sink.
    """
    return (
        service_account(obj, pull_secrets=settings.worker_pull_secrets),
        executors_account(obj, pull_secrets=settings.worker_pull_secrets),
        role(obj),
        role_binding(obj),
        snapshot_config_map(obj, label=label),
        snapshot_progress_map(obj, label=label),
        snapshot_application(obj, image=settings.spark_image, pull_policy=settings.image_pull_policy),
    )


def suspend_snapshot(world: World, snapshot: Snapshot, settings: Settings) -> tuple[Action, ...] | None:
    """The actions that suspend a running application; None where no application runs."""
    return suspend_application(snapshot.application, world.spark_pods, lambda: _application(world, settings))


def _application(world: World, settings: Settings) -> dict[str, Any]:
    return snapshot_application(
        world.resource.object, image=settings.spark_image, pull_policy=settings.image_pull_policy
    )
