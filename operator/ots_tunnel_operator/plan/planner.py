"""What to do next: pure, world -> ordered actions. Killing the operator between any two of them must be harmless.

That holds because each creating call has its intent in the status before it, is idempotent or adoptable, and because
a pass derives everything from what is there, never from what the last pass did.
"""

from __future__ import annotations

from ots_tunnel.model import StreamConfig, TunnelType
from ots_tunnel_operator.api.object import StreamWindow
from ots_tunnel_operator.assess.completion import was_completed
from ots_tunnel_operator.assess.lag import NANOSECONDS, is_initialised
from ots_tunnel_operator.assess.preflight import find_problem, start_of
from ots_tunnel_operator.assess.snapshot import Snapshot, Step, assess
from ots_tunnel_operator.assess.tunnel_record import tunnel_record
from ots_tunnel_operator.plan.actions import (
    Action,
    CreateTunnel,
    EnsureDestination,
    Plan,
    RecordStatus,
    ScaleDown,
    Wait,
)
from ots_tunnel_operator.plan.snapshot import snapshot_step, suspension
from ots_tunnel_operator.plan.workers import consume, deployed_replicas, may_consume
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.settings import Settings
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world import Missing, Table, Tunnel, World

#: What may become of a tunnel that has delivered everything, and is then no concern of its object any more.
TUNNEL_GONE = frozenset({Reason.TUNNEL_NOT_FOUND, Reason.TUNNEL_EXPIRED})


def plan(world: World, settings: Settings) -> Plan:
    """The next steps for one object."""
    spec = world.resource.spec
    if world.resource.deleted is not None:
        return Plan(wait=Wait(Reason.DELETING, "the object is being deleted"))
    snapshot = assess(world, missing_seconds=settings.spark_missing_seconds)
    problem = find_problem(world)
    if spec.suspend:
        return _suspended(world, problem, snapshot, settings)
    if problem is not None and problem.reason in TUNNEL_GONE and was_completed(world):
        return Plan((ScaleDown(),) if deployed_replicas(world) else (), completed=True, snapshot=snapshot)
    if problem is not None:
        if problem.stops_workers:
            return Plan((ScaleDown(),) if deployed_replicas(world) else (), problem=problem, snapshot=snapshot)
        if not may_consume(world, snapshot):
            return Plan(problem=problem, snapshot=snapshot)
        return consume(world, snapshot, settings, problem)
    missing = _destination_step(world, snapshot) or _tunnel_step(world, snapshot, settings)
    if missing is not None:
        return missing
    if snapshot.step is not Step.NOT_NEEDED:
        return snapshot_step(world, snapshot, settings)
    if not spec.uses_workers:
        return Plan(completed=True, snapshot=snapshot)
    return consume(world, snapshot, settings, None)


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
        change = {"tunnel": tunnel_record(description.tunnel, recorded)}
        return Plan((RecordStatus(change),), wait, again=True, snapshot=snapshot)
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


def _stream_config(world: World) -> StreamConfig | None:
    """Where the new tunnel starts; workers stop at the end unless it lies in the past (docs/architecture.md 3)."""
    spec = world.resource.spec
    if spec.wire_type != "Stream":
        return None
    earliest, start_ns, end_ns = start_of(spec.source.tunnel.stream or StreamWindow())
    in_the_past = end_ns and end_ns / NANOSECONDS < world.now
    return StreamConfig(earliest=earliest, start_offset_ns=start_ns, end_offset_ns=end_ns if in_the_past else 0)


def _suspended(world: World, problem: Problem | None, snapshot: Snapshot, settings: Settings) -> Plan:
    """No consumer; works from any state."""
    suspended = suspension(world, settings)
    actions: tuple[Action, ...] = (ScaleDown(),) if deployed_replicas(world) else ()
    left = len([pod for pod in world.pods if pod.phase in ("Pending", "Running", "Unknown")])
    running = suspended is not None
    wait = Wait(Reason.SUSPENDING, f"{left} workers are draining") if left or running else None
    return Plan(actions + (suspended or ()), wait, problem, snapshot=snapshot, completed=was_completed(world))
