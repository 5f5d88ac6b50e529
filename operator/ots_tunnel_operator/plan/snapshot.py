"""The part of a plan that copies existing rows with Spark: pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ots_tunnel.errors import ConfigError
from ots_tunnel.snapshot.record import PROGRESS_LABEL
from ots_tunnel_operator import names
from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.assess.snapshot import COMPLETED, Snapshot, Step, application_of, label_of
from ots_tunnel_operator.assess.spark_state import AppState
from ots_tunnel_operator.manifests.snapshot_document import snapshot_config_map, snapshot_progress_map
from ots_tunnel_operator.manifests.spark_application import snapshot_application
from ots_tunnel_operator.manifests.spark_rights import role, role_binding, service_account
from ots_tunnel_operator.plan.actions import Action, ApplyObject, DeleteObject, Plan, RecordStatus, Wait
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.settings import Settings
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world import World


def snapshot_step(world: World, snapshot: Snapshot, settings: Settings) -> Plan:
    """Run the snapshot, wait for its end, record it; consumers only in a later pass."""
    name = names.snapshot_name(world.resource.name)
    if snapshot.step is Step.DONE:
        ended = timestamp(snapshot.finished or world.now)
        finished = {"state": COMPLETED, "finishedTime": ended, "tunnelId": label_of(world)}
        return Plan(
            (RecordStatus({"snapshot": finished}),),
            Wait(Reason.SNAPSHOT_RUNNING, "every existing row is copied"),
            again=True,
            snapshot=snapshot,
        )
    wait = Wait(Reason.SNAPSHOT_RUNNING, snapshot.message)
    if snapshot.step is not Step.RUN:
        return Plan(wait=wait, problem=snapshot.problem, snapshot=snapshot)
    actions: list[Action] = []
    label = label_of(world)
    if world.resource.recorded_snapshot.get("tunnelId") != label:
        start = {"application": name, "tunnelId": label, "startedTime": timestamp(world.now), "finishedTime": None}
        actions.append(RecordStatus({"snapshot": start}))
    record = world.child("ConfigMap", name)
    if record is not None and snapshot.progress is None and parse_label(record) != label:
        # our label on the old record's items would make them look like this copy's
        actions.append(DeleteObject("ConfigMap", name))
    try:
        actions += [ApplyObject(item) for item in snapshot_objects(world.resource.object, label, settings)]
    except ConfigError as error:
        return Plan(problem=Problem(Reason.INVALID_SPEC, str(error)), wait=wait, snapshot=snapshot)
    return Plan(tuple(actions), wait, snapshot.problem, snapshot=snapshot)


def parse_label(record: Mapping[str, Any]) -> str:
    """The copy a progress record belongs to, empty where it says none."""
    return str((record["metadata"].get("labels") or {}).get(PROGRESS_LABEL, ""))


def snapshot_objects(obj: TablestoreTunnel, label: str, settings: Settings) -> tuple[dict[str, Any], ...]:
    """Everything a snapshot needs, in the order in which it is needed; the application is last.

    Raises:
        ConfigError: the sink cannot be written by a snapshot.
    """
    return (
        service_account(obj),
        role(obj),
        role_binding(obj),
        snapshot_config_map(obj, label=label),
        snapshot_progress_map(obj, label=label),
        snapshot_application(obj, image=settings.spark_image, pull_policy=settings.image_pull_policy),
    )


def suspension(world: World, settings: Settings) -> tuple[Action, ...] | None:
    """Suspend an application that runs: what is to be done for that, None where none runs."""
    application = application_of(world)
    if application is None or application.state.terminal or application.state is AppState.SUSPENDED:
        return None
    found = world.child("SparkApplication", names.snapshot_name(world.resource.name)) or {}
    if (found.get("spec") or {}).get("suspend"):
        return ()
    manifest = snapshot_application(
        world.resource.object, image=settings.spark_image, pull_policy=settings.image_pull_policy
    )
    return (ApplyObject(_suspended(manifest)),)


def _suspended(manifest: dict[str, Any]) -> dict[str, Any]:
    metadata = manifest["metadata"] | {"annotations": {names.ANNOTATION_RENDERED_HASH: "suspended"}}
    return manifest | {"metadata": metadata, "spec": manifest["spec"] | {"suspend": True}}
