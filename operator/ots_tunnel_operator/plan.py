"""What to do next: pure, world -> ordered actions. Killing the operator between any two of them must be harmless.

That holds because each creating call has its intent in the status before it, is idempotent or adoptable, and because
a pass derives everything from what is there, never from what the last pass did.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ots_tunnel.errors import ConfigError
from ots_tunnel.model import ChannelStatus, Stage, StreamConfig, TunnelType
from ots_tunnel.snapshot import PROGRESS_LABEL
from ots_tunnel_operator import manifests, names, spark
from ots_tunnel_operator.api import StreamWindow, TablestoreTunnel
from ots_tunnel_operator.conditions import Problem, Reason, timestamp
from ots_tunnel_operator.lag import NANOSECONDS, is_initialised
from ots_tunnel_operator.preflight import find_problem, start_of
from ots_tunnel_operator.settings import Settings
from ots_tunnel_operator.snapshot import COMPLETED, Snapshot, Step, application_of, assess, label_of
from ots_tunnel_operator.spark_state import AppState
from ots_tunnel_operator.world import Missing, Table, Tunnel, World


@dataclass(frozen=True, slots=True)
class RecordStatus:
    """Merge this into the status before anything that follows."""

    change: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class EnsureDestination:
    """Create the destination table after the source's schema, or find it made."""


@dataclass(frozen=True, slots=True)
class CreateTunnel:
    """Create the tunnel."""

    type: TunnelType
    stream: StreamConfig | None


@dataclass(frozen=True, slots=True)
class ApplyObject:
    """Server-side apply; skipped where it would change nothing."""

    manifest: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ScaleDown:
    """Take the workers to 0 without touching anything else of their Deployment."""


@dataclass(frozen=True, slots=True)
class DeleteObject:
    """Delete one of our children."""

    kind: str
    name: str


Action = RecordStatus | EnsureDestination | CreateTunnel | ApplyObject | ScaleDown | DeleteObject


#: What may become of a tunnel that has delivered everything, and is then no concern of its object any more.
TUNNEL_GONE = frozenset({Reason.TUNNEL_NOT_FOUND, Reason.TUNNEL_EXPIRED})

#: Where existing rows are not Spark's business.
NO_SNAPSHOT = Snapshot(Step.NOT_NEEDED)


@dataclass(frozen=True, slots=True)
class Wait:
    """What has to happen before the object is where it should be."""

    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class Plan:
    """Actions in order; what is waited for; what is wrong.

    `again` asks for the next pass at once, because these actions change what it will see.
    """

    actions: tuple[Action, ...] = ()
    wait: Wait | None = None
    problem: Problem | None = None
    again: bool = False
    completed: bool = False
    replicas: int = 0
    """Workers that should exist now."""
    snapshot: Snapshot = NO_SNAPSHOT


def plan(world: World, settings: Settings) -> Plan:
    """The next steps for one object."""
    spec = world.resource.spec
    if world.resource.deleted is not None:
        return Plan(wait=Wait(Reason.DELETING, "the object is being deleted"))
    snapshot = assess(world, missing_seconds=settings.spark_missing_seconds)
    problem = find_problem(world)
    if spec.suspend:
        return _suspended(world, problem, snapshot, settings)
    if problem is not None and problem.reason in TUNNEL_GONE and _was_completed(world):
        return Plan((ScaleDown(),) if _deployed_replicas(world) else (), completed=True, snapshot=snapshot)
    if problem is not None:
        if problem.stops_workers:
            return Plan((ScaleDown(),) if _deployed_replicas(world) else (), problem=problem, snapshot=snapshot)
        if not _may_consume(world, snapshot):
            return Plan(problem=problem, snapshot=snapshot)
        return _consume(world, snapshot, settings, problem)
    missing = _destination_step(world, snapshot) or _tunnel_step(world, snapshot, settings)
    if missing is not None:
        return missing
    if snapshot.step is not Step.NOT_NEEDED:
        return _snapshot_step(world, snapshot, settings)
    if not spec.uses_workers:
        return Plan(completed=True, snapshot=snapshot)
    return _consume(world, snapshot, settings, None)


def _may_consume(world: World, snapshot: Snapshot) -> bool:
    """Whether consumption was started once and nothing speaks against going on with what is recorded."""
    recorded = bool(world.resource.recorded_tunnel.get("id"))
    return recorded and snapshot.step is Step.NOT_NEEDED and _deployment(world) is not None


def _destination_step(world: World, snapshot: Snapshot) -> Plan | None:
    """Make the destination, or record that it is as it should be; None when that is done."""
    sink = world.resource.spec.sink.tablestore
    recorded = world.resource.recorded_destination
    if sink is None:
        return None
    now = timestamp(world.now)
    if isinstance(world.destination, Missing):
        wait = Wait(Reason.CREATING_DESTINATION, f"table {sink.table!r} is being created in {sink.instance!r}")
        intent = RecordStatus({"destination": {"createIntentTime": now, "createdByOperator": True}})
        actions: tuple[Action, ...] = (EnsureDestination(),)
        if not recorded.get("createIntentTime"):
            actions = (intent, *actions)
        return Plan(actions, wait, again=True, snapshot=snapshot)
    if isinstance(world.destination, Table) and not recorded.get("ensuredTime"):
        wait = Wait(Reason.CREATING_DESTINATION, f"table {sink.table!r} in {sink.instance!r} is there")
        created = bool(recorded.get("createIntentTime"))
        change = {"destination": {"ensuredTime": now, "createdByOperator": created}}
        # ensured once more: the table may be there without answering row calls yet
        return Plan((EnsureDestination(), RecordStatus(change)), wait, again=True, snapshot=snapshot)
    return None


def _tunnel_step(world: World, snapshot: Snapshot, settings: Settings) -> Plan | None:
    """Create or adopt the tunnel and wait until it says what its channels are; None when that is done."""
    spec = world.resource.spec
    recorded = world.resource.recorded_tunnel
    if spec.wire_type is None:
        return None
    name = spec.source.tunnel.name
    if isinstance(world.tunnel, Missing):
        intent = RecordStatus({"tunnel": {"createIntentTime": timestamp(world.now)}})
        create = CreateTunnel(TunnelType[spec.wire_type], _stream_config(world))
        actions: tuple[Action, ...] = (create,) if recorded.get("createIntentTime") else (intent, create)
        wait = Wait(Reason.CREATING_TUNNEL, f"tunnel {name!r} is being created")
        return Plan(actions, wait, again=True, snapshot=snapshot)
    if not isinstance(world.tunnel, Tunnel):
        return Plan(wait=Wait(Reason.CREATING_TUNNEL, "the tunnel could not be asked"), snapshot=snapshot)
    description = world.tunnel.description
    if not recorded.get("id"):
        wait = Wait(Reason.CREATING_TUNNEL, f"tunnel {name!r} is being adopted")
        return Plan((RecordStatus({"tunnel": tunnel_record(world)}),), wait, again=True, snapshot=snapshot)
    if is_initialised(description):
        return None
    wait = Wait(Reason.TUNNEL_INITIALISING, f"tunnel {name!r} is in stage {description.tunnel.stage}")
    age = world.now - description.tunnel.create_time_ns / NANOSECONDS
    problem = None
    if age > settings.initialising_seconds:
        problem = Problem(
            Reason.TUNNEL_INITIALISING,
            f"spec.source.tunnel.name {name!r}: no channel after {int(age)} s: ask the service why the tunnel stays in "
            f"its first stage, or delete it and this object and apply it again",
            ("TunnelReady",),
        )
    return Plan(wait=wait, problem=problem, snapshot=snapshot)


def tunnel_record(world: World) -> dict[str, Any]:
    """status.tunnel of the tunnel that is there.

    It counts as created by us only where the intent was recorded before, which happens only when there was none.
    """
    assert isinstance(world.tunnel, Tunnel)
    info = world.tunnel.description.tunnel
    recorded = world.resource.recorded_tunnel
    intended = bool(recorded.get("createIntentTime"))
    return {
        "id": str(info.tunnel_id),
        "type": info.tunnel_type.name,
        "stage": info.stage,
        "createdByOperator": recorded.get("createdByOperator", intended),
        "createdTime": timestamp(info.create_time_ns / NANOSECONDS),
        "expired": info.expired,
    }


def _stream_config(world: World) -> StreamConfig | None:
    """Where the new tunnel starts; the end is the workers' business unless it lies in the past (design 3)."""
    spec = world.resource.spec
    if spec.wire_type != "Stream":
        return None
    earliest, start_ns, end_ns = start_of(spec.source.tunnel.stream or StreamWindow())
    in_the_past = end_ns and end_ns / NANOSECONDS < world.now
    return StreamConfig(earliest=earliest, start_offset_ns=start_ns, end_offset_ns=end_ns if in_the_past else 0)


def _snapshot_step(world: World, snapshot: Snapshot, settings: Settings) -> Plan:
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
        spark.service_account(obj),
        spark.role(obj),
        spark.role_binding(obj),
        spark.snapshot_config_map(obj, label=label),
        spark.snapshot_progress_map(obj, label=label),
        spark.snapshot_application(obj, image=settings.spark_image, pull_policy=settings.image_pull_policy),
    )


def _consume(world: World, snapshot: Snapshot, settings: Settings, problem: Problem | None) -> Plan:
    """Workers as many as wanted, none when everything is read."""
    completed = is_completed(world)
    replicas = 0 if completed else world.resource.spec.replicas
    actions, invalid = _workers(world, replicas, settings)
    wait = None if completed or problem else _workers_wait(world, replicas)
    return Plan(actions, wait, problem or invalid, completed=completed, replicas=replicas, snapshot=snapshot)


def _workers(world: World, replicas: int, settings: Settings) -> tuple[tuple[Action, ...], Problem | None]:
    tunnel_id = str(world.resource.recorded_tunnel["id"])
    try:
        config = manifests.worker_config(world.resource.object, tunnel_id)
        config_map = manifests.config_map(world.resource.object, config)
        deployment = manifests.deployment(
            world.resource.object, config, settings.worker_image, replicas, pull_policy=settings.image_pull_policy
        )
    except ConfigError as error:
        return (), Problem(Reason.INVALID_SPEC, str(error))
    return (ApplyObject(config_map), ApplyObject(deployment)), None


def _workers_wait(world: World, replicas: int) -> Wait | None:
    deployment = _deployment(world)
    status = (deployment or {}).get("status") or {}
    spec = (deployment or {}).get("spec") or {}
    if deployment is None:
        return Wait(Reason.STARTING_WORKERS, f"{replicas} workers are being started")
    ready, updated = int(status.get("readyReplicas") or 0), int(status.get("updatedReplicas") or 0)
    exists = int(status.get("replicas") or 0)
    observed = int(status.get("observedGeneration") or 0) >= int(deployment["metadata"].get("generation") or 0)
    if int(spec.get("replicas", 1)) != replicas or exists > max(replicas, updated) or (exists < replicas and observed):
        return Wait(Reason.SCALING, f"from {exists} to {replicas} workers")
    if not observed or updated < exists:
        return Wait(Reason.ROLLING_WORKERS, f"{updated} of {exists} workers run what is wanted now")
    if ready < replicas:
        return Wait(Reason.STARTING_WORKERS, f"{ready} of {replicas} workers are ready")
    return None


def is_completed(world: World) -> bool:
    """Whether everything a tunnel with an end has to deliver was delivered (design 3).

    No statement about all channels before the first stage is over and a channel is listed.
    """
    spec = world.resource.spec
    if not isinstance(world.tunnel, Tunnel) or not is_initialised(world.tunnel.description):
        # once completed stays completed while the tunnel cannot be asked
        return _was_completed(world)
    description = world.tunnel.description
    ended = all(channel.status is ChannelStatus.TERMINATED for channel in description.channels)
    if spec.wire_type == "BaseData":
        return ended
    window = spec.source.tunnel.stream
    if window is None or window.end_time is None or description.tunnel.stage != Stage.STREAM:
        return False
    if ended or _was_completed(world):
        return True
    return world.now > window.end_time.timestamp() and bool(world.pods) and _all_reports_completed(world)


def _all_reports_completed(world: World) -> bool:
    return all(pod.report is not None and pod.report.completed for pod in world.pods)


def _was_completed(world: World) -> bool:
    conditions = world.resource.status.get("conditions") or ()
    return any(item.get("type") == "Completed" and item.get("status") == "True" for item in conditions)


def _suspended(world: World, problem: Problem | None, snapshot: Snapshot, settings: Settings) -> Plan:
    """No consumer; works from any state."""
    actions: list[Action] = [ScaleDown()] if _deployed_replicas(world) else []
    application = application_of(world)
    running = application is not None and not (application.state.terminal or application.state is AppState.SUSPENDED)
    if running:
        name = names.snapshot_name(world.resource.name)
        found = world.child("SparkApplication", name) or {}
        if not (found.get("spec") or {}).get("suspend"):
            manifest = spark.snapshot_application(
                world.resource.object, image=settings.spark_image, pull_policy=settings.image_pull_policy
            )
            actions.append(ApplyObject(_suspended_application(manifest)))
    left = len([pod for pod in world.pods if pod.phase in ("Pending", "Running", "Unknown")])
    wait = Wait(Reason.SUSPENDING, f"{left} workers are draining") if left or running else None
    return Plan(tuple(actions), wait, problem, snapshot=snapshot, completed=_was_completed(world))


def _suspended_application(manifest: dict[str, Any]) -> dict[str, Any]:
    metadata = manifest["metadata"] | {"annotations": {names.ANNOTATION_RENDERED_HASH: "suspended"}}
    return manifest | {"metadata": metadata, "spec": manifest["spec"] | {"suspend": True}}


def _deployment(world: World) -> Mapping[str, Any] | None:
    return world.child("Deployment", names.deployment_name(world.resource.name))


def _deployed_replicas(world: World) -> int:
    deployment = _deployment(world)
    return int(deployment["spec"].get("replicas", 1)) if deployment is not None else 0
