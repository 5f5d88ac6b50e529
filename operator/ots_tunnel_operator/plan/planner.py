"""What to do next: world and assessment -> ordered actions. Pure.

Theory of operation
-------------------
`plan` takes the first case that applies:

    1. the object is being deleted          nothing: `deletion` handles it
    2. a reset is asked for or under way    refuse it, begin it, or go on with it (`plan.reset`)
    3. spec.suspend                         workers to 0, SparkApplications suspended; works in every state
    4. delivered earlier, tunnel now gone,  workers to 0, still Completed
       or the source where none is needed
    5. a problem that workers would worsen  workers to 0, SparkApplications suspended (`STOPS_WORKERS`)
    6. another problem                      workers that run keep running as wanted, or as they are where the spec is
                                            invalid or the destination is not the recorded one; nothing new is
                                            created; a possible gap that a worker may refute is shown beside what
                                            follows
    7. something was not seen               as 6: what creates takes what was seen (`plan.sight`)
    8. destination gone, elsewhere, or      workers to 0, until none is left
       created anew
    9. destination not ensured              create it, or record that it exists; the copy of an earlier object that
                                            left no row in it begins anew (`plan.snapshot`)
    10. tunnel not recorded or initialised  create or adopt it, wait for its channels
    11. snapshot needed                     run it, wait, record it (`plan.snapshot`)
    12. Spark follows the changes           keep its query as wanted (`plan.query`)
    13. no engine is Workers                Completed
    14. otherwise                           as many workers as wanted (`plan.workers`)

Of an object that is Completed already, 8 to 11 only take the workers to 0: what it needed may be gone.

In every case but the first two, `plan.monitoring` adds what is to do about the workers' PodMonitor.

Killing the operator between any two actions is harmless, for three reasons: each creating call has its intent in the
status before it; each call is idempotent, or finds what an earlier one created; and a pass derives everything from
the world, nothing from the pass before it.

Numbers: a tunnel that lists no channel 300 s after its creation is a problem (Settings.initialising_seconds,
docs/architecture.md 3.2). A plan with `again` makes the loop take its next step at once; a new object has four of them.

Example: a new BaseAndStream object with workers, one line a step.

    destination missing         RecordStatus(destination.createIntentTime), EnsureDestination, again
    destination there           EnsureDestination, RecordStatus(destination.ensuredTime), again
    tunnel missing              RecordStatus(tunnel.createIntentTime), CreateTunnel, again
    tunnel there, not recorded  RecordStatus(tunnel.id, createdByOperator), again
    stage Init                  wait TunnelInitialising
    channels listed             ApplyObject(ConfigMap), ApplyObject(Deployment), wait StartingWorkers

If the operator dies after CreateTunnel, the next step finds the tunnel and the intent: it adopts the tunnel and counts
it as its own, so that deletionPolicy Delete removes it. If the service refuses CreateTunnel, the intent is taken back:
a tunnel that appears later is another client's (`assess.creation`).
"""

from __future__ import annotations

from dataclasses import replace

from ots_tunnel_operator.assess.assessment import Assessment
from ots_tunnel_operator.assess.creation import (
    REPEAT_SECONDS,
    creation_text,
    is_created,
    is_recreated,
    is_standing,
    withdrawal,
)
from ots_tunnel_operator.assess.draining import client_without_pod, draining, gone, is_deployed
from ots_tunnel_operator.assess.spark.snapshot_state import SnapshotState
from ots_tunnel_operator.plan.actions import Action, EnsureDestination, Plan, RecordStatus, Wait
from ots_tunnel_operator.plan.monitoring import monitoring
from ots_tunnel_operator.plan.query import plan_query, suspend_query
from ots_tunnel_operator.plan.reset import plan_reset, refuse_reset
from ots_tunnel_operator.plan.sight import Sight, look
from ots_tunnel_operator.plan.snapshot import copy_again, plan_snapshot, record_actions, suspend_snapshot
from ots_tunnel_operator.plan.stopping import scale_down
from ots_tunnel_operator.plan.tunnel import tunnel_step
from ots_tunnel_operator.plan.workers import consume, leave, may_consume
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.settings import Settings
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world.absence import Missing
from ots_tunnel_operator.world.service import Table
from ots_tunnel_operator.world.world import World

#: Problems of a tunnel, or of a stream and its leases, that no longer matter once everything is delivered.
TUNNEL_GONE = frozenset(
    {
        Reason.TUNNEL_NOT_FOUND,
        Reason.TUNNEL_REPLACED,
        Reason.TUNNEL_EXPIRED,
        Reason.NO_STREAM,
        Reason.STREAM_REPLACED,
        Reason.LEASE_TABLE_UNUSABLE,
    }
)

#: Fields of status.destination that hold for one table only, not for another one of its name.
OF_TABLE = ("createIntentTime", "createdByOperator", "ensuredTime", "createdTime")


def plan(world: World, assessment: Assessment, settings: Settings) -> Plan:
    """The next steps for one object; the cases are those of the module's description.

    Args:
        world: what was observed.
        assessment: of this world.
        settings: of the process.
    """
    if world.resource.deleted is not None:
        return Plan(wait=Wait(Reason.DELETING, "the object is being deleted"))
    if (reset := plan_reset(world, assessment, settings)) is not None:
        return reset
    found = _without_reset(world, assessment, settings)
    # last: a failed action ends the others, and records flow without this one
    actions = (*refuse_reset(world, assessment), *found.actions, *monitoring(world, settings))
    return replace(found, actions=actions)


def _without_reset(world: World, assessment: Assessment, settings: Settings) -> Plan:
    spec, problem = world.resource.spec, assessment.problem
    if spec.suspend:
        return _suspended(world, assessment, settings)
    if problem is not None and not _refuted_by_reading(problem):
        return _with_problem(world, assessment, settings, problem)
    seen = look(world)
    if isinstance(seen, Wait):
        is_running = may_consume(world, assessment)
        return consume(world, assessment, settings, problem) if is_running else leave(assessment, problem, seen)
    if (step := _preparation(world, seen, assessment, settings)) is not None:
        # nothing is read any more, so nothing is made, or made anew, to read from or to write to
        return Plan(scale_down(world, assessment), completed=True) if _stays_completed(assessment) else step
    if spec.uses_query:
        return plan_query(world, assessment, settings, problem)
    found = consume(world, assessment, settings, problem) if spec.uses_workers else Plan(completed=True)
    return replace(found, actions=(*record_actions(world), *found.actions))


def _preparation(world: World, seen: Sight, assessment: Assessment, settings: Settings) -> Plan | None:
    """The next step before anything is consumed: destination, tunnel, snapshot; None once all of it is there."""
    unmade = (
        _another_table(world, seen, assessment)
        or copy_again(world, assessment.snapshot)
        or _destination_step(world, seen)
        or tunnel_step(world, seen, settings)
    )
    if unmade is None and assessment.snapshot.state is not SnapshotState.NOT_NEEDED:
        return plan_snapshot(world, assessment.snapshot, settings)
    return unmade


def _stays_completed(assessment: Assessment) -> bool:
    """Whether completion is recorded, of an object that has an end."""
    return assessment.was_completed and assessment.is_completed


def _refuted_by_reading(problem: Problem) -> bool:
    """Whether a problem ends when a worker reads on: a possible gap that only the operator has found."""
    return problem.reason is Reason.POSSIBLE_GAP and not problem.stops_workers


def _with_problem(world: World, assessment: Assessment, settings: Settings, problem: Problem) -> Plan:
    if assessment.was_completed and _is_read_no_more(world, problem):
        return Plan(scale_down(world, assessment), completed=True)
    if problem.stops_workers:
        # a task of Spark that goes on could write what makes a lost table look copied
        actions = (*scale_down(world, assessment), *_suspensions(world, assessment, settings))
        return Plan(actions, problem=problem, completed=assessment.was_completed)
    if problem.leaves_workers or not may_consume(world, assessment):
        return leave(assessment, problem)
    return consume(world, assessment, settings, problem)


def _is_read_no_more(world: World, problem: Problem) -> bool:
    """Whether what was read is gone: tunnel or stream, or the table where no tunnel is needed."""
    is_table_gone = problem.reason is Reason.TABLE_NOT_FOUND and world.resource.wire_type is None
    return problem.reason in TUNNEL_GONE or is_table_gone


def _another_table(world: World, seen: Sight, assessment: Assessment) -> Plan | None:
    """Stop the workers of a table that is gone, or was exchanged for another, before that takes its place.

    One that goes on could checkpoint rows that only the former table has, after the tunnel was found unmoved. What the
    last of them checkpoints decides: a tunnel that has moved is not read into a new table.
    """
    sink, recorded = world.resource.spec.sink.tablestore, world.resource.recorded_destination
    is_elsewhere = bool(recorded.get("endpoint")) and not world.resource.is_destination_recorded
    is_anew = is_recreated(world)
    if sink is None or not (isinstance(seen.destination, Missing) or is_elsewhere or is_anew):
        return None
    # nobody removes an evicted pod
    alive = sum(pod.is_alive for pod in world.pods)
    name = f"table {sink.table!r}"
    client = client_without_pod(world)
    if is_deployed(world) or alive or client:
        left = f"{name} is used when the workers of the former one have ended: {alive} pods are left"
        left += f", and client {client!r}: {gone(world)}" if client else ""
        return Plan(scale_down(world, assessment), Wait(Reason.CREATING_DESTINATION, left))
    if not is_anew:
        return None
    forgotten = RecordStatus({"destination": dict.fromkeys(OF_TABLE)})
    return Plan((forgotten,), Wait(Reason.CREATING_DESTINATION, f"{name} was created anew"), again=True)


def _destination_step(world: World, seen: Sight) -> Plan | None:
    """Create the destination, or record that it exists; None once it is recorded."""
    sink = world.resource.spec.sink.tablestore
    recorded = world.resource.recorded_destination
    if sink is None:
        return None
    now = timestamp(world.now)
    place = {"endpoint": sink.endpoint, "instance": sink.instance, "table": sink.table}
    if isinstance(seen.destination, Missing):
        wait = Wait(Reason.CREATING_DESTINATION, f"table {sink.table!r} is being created in {sink.instance!r}")
        # a new intent ends what was recorded of another place, or of a table that is gone
        is_found = bool(recorded.get("ensuredTime"))
        stale = {"ensuredTime": None, "createdTime": None} if is_found else {}
        intent = place | stale | {"createIntentTime": now, "createdByOperator": True}
        is_intended = world.resource.is_destination_intended and not is_found
        if is_intended and is_standing(recorded, world.now, REPEAT_SECONDS):
            return Plan((EnsureDestination(),), wait, again=True)
        ensure = EnsureDestination({"destination": withdrawal(recorded, intent, world.now)})
        return Plan((RecordStatus({"destination": intent}), ensure), wait, again=True)
    if isinstance(seen.destination, Table) and not world.resource.is_destination_recorded:
        wait = Wait(Reason.CREATING_DESTINATION, f"table {sink.table!r} exists in {sink.instance!r}")
        # one without a place is of an earlier release, which knew no other place
        is_intended = world.resource.is_destination_intended or not recorded.get("endpoint")
        created = is_intended and is_created(recorded, seen.destination, world.now)
        record = {"ensuredTime": now, "createdByOperator": created, "createdTime": creation_text(seen.destination)}
        change = {"destination": place | record}
        # ensured once more: a new table may exist before it answers row calls (docs/data-plane.md 2.4)
        return Plan((EnsureDestination(), RecordStatus(change)), wait, again=True)
    return None


def _suspended(world: World, assessment: Assessment, settings: Settings) -> Plan:
    """Stop every consumer; works in every state."""
    still = draining(world, assessment.snapshot, assessment.query)
    wait = Wait(Reason.SUSPENDING, still) if still else None
    actions = (*scale_down(world, assessment), *_suspensions(world, assessment, settings))
    return Plan(actions, wait, assessment.problem, completed=assessment.was_completed)


def _suspensions(world: World, assessment: Assessment, settings: Settings) -> tuple[Action, ...]:
    """What suspends the applications of Spark that run."""
    copy = suspend_snapshot(world, assessment.snapshot, settings) or ()
    return (*copy, *(suspend_query(world, assessment.query, settings) or ()))
