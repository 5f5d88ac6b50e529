"""Where a snapshot by Spark stands, and when the stream may be consumed (docs/architecture.md 3.3). Pure.

Theory of operation
-------------------
A snapshot reads a row and writes it a moment later. If a worker applied the row's delete in between, the late write
would bring the row back. Consumers of the stream therefore start after the last possible write of the snapshot.
A gap is excluded from the other side: the tunnel exists before the first row is read, so that changes made during the
copy wait in the stream. The result is an overlap, never a gap.

The parts, and what each of them tells:

    Stream tunnel                    whether every channel has its first token
    ConfigMap <name>-snapshot        a bitmap of finished splits, and why the driver has given up, written by the driver
    SparkApplication <name>-snapshot its state, the end of the last attempt, names of its pods
    pods of the application          whether each has ended, with a terminated container status
    status.snapshot                  what this operator recorded: started, completed

The *label* says which copy a record belongs to: the tunnel's id, or the object's uid where there is no tunnel.
A record with another label counts as absent.

`assess_snapshot` takes the first case that applies:

    1. no engine is Spark, or completion is recorded                     NOT_NEEDED
    2. an earlier object of this name copied everything and consumed     DONE
    3. not started, and a channel of the stream has no token yet         AWAITING_STREAM
    4. every split is recorded as done, but a gate is closed             SETTLING   (gates: `last_write`)
    5. every split is recorded as done and every gate is open            DONE
    6. otherwise the state of the application decides                    `snapshot_state.WHILE_COPYING`

Case 3 holds only before the start: a channel that splits later has no token for a moment, and that is no reason to
stop. The application's state alone proves nothing: an application that ended well with a split missing has FAILED.
The plan records DONE in the status; workers start in a later pass, when case 1 applies.

Numbers: 600 s split deadline (docs/architecture.md rule 4); 120 s for a driver that is cut off; D = (heartbeat timeout
- interval) / 3 when the driver started, which its record tells, 16.7 s by default; 60 s until an application without
any sign of life means that no Spark operator is installed (Settings).

Example, with defaults. The tunnel has its tokens at 12:00:00 and the application is applied. The driver records the
last of 8 splits at 12:10:00 and ends at 12:10:05. Every pod shows a terminated container: the last gate opens 16.7 s
later, the next pass records DONE and the one after it applies the Deployment. Had one executor's pod vanished, its
last write would be possible until 12:22:21.
"""

from __future__ import annotations

from dataclasses import dataclass

from ots_tunnel.errors import CodecError
from ots_tunnel.model import Stage
from ots_tunnel.protocol.movement import has_moved
from ots_tunnel.protocol.token import is_stream_token
from ots_tunnel.snapshot.document import SplitsConfig
from ots_tunnel.snapshot.record import SnapshotProgress, read_progress
from ots_tunnel_operator import names
from ots_tunnel_operator.assess.lag import is_initialised
from ots_tunnel_operator.assess.last_write import Deadlines, find_closed_gate
from ots_tunnel_operator.assess.spark.application_state import Application, AppState, read_application
from ots_tunnel_operator.assess.spark.snapshot_state import PROBLEMS, WHILE_COPYING, SnapshotState
from ots_tunnel_operator.reasons import Problem
from ots_tunnel_operator.times import parse_time
from ots_tunnel_operator.world.service import Tunnel
from ots_tunnel_operator.world.world import World

#: Value of status.snapshot.state once completion is recorded.
COMPLETED = "Completed"

#: Seconds after its start by which a task's last write is over (docs/architecture.md rule 4); the rendered
#: document sets no other.
SPLIT_DEADLINE = SplitsConfig().deadline_seconds

#: The longest D that a driver's document may have, seconds: for the record of a driver that did not write it.
LONGEST_WRITE_DEADLINE = SPLIT_DEADLINE / 2


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot as of one pass."""

    state: SnapshotState
    label: str = ""
    """The copy that is wanted."""
    application: Application | None = None
    progress: SnapshotProgress | None = None
    """The record of this copy; None where there is none, it is damaged or it belongs to another copy."""
    is_complete: bool = False
    """Whether the status or the record proves that every row of this copy is written."""
    message: str = ""
    finished: float | None = None
    """With DONE: time at which no write was possible any more, seconds since 1970."""
    problem: Problem | None = None
    began: float | None = None
    """When this copy was begun, perhaps by an earlier object of this name; None where it is not known."""


def assess_snapshot(world: World, *, missing_seconds: float) -> Snapshot:
    """Where the snapshot stands; the cases are those of the module's description.

    Args:
        world: what was observed.
        missing_seconds: an application that was not picked up for so long means that there is no Spark operator.
    """
    if not world.resource.uses_spark:
        return Snapshot(SnapshotState.NOT_NEEDED)
    label, recorded = _label(world), world.resource.recorded_snapshot
    application, found = _application(world), _record(world)
    progress = found if isinstance(found, SnapshotProgress) and found.label == label else None
    is_recorded = recorded.get("state") == COMPLETED and recorded.get("tunnelId") == label
    is_copied, began = progress is not None and progress.complete, _began(world)

    def snapshot(state: SnapshotState, message: str = "", finished: float | None = None) -> Snapshot:
        problem = _problem(world, state, message)
        is_complete = is_recorded or is_copied
        return Snapshot(state, label, application, progress, is_complete, message, finished, problem, began)

    if is_recorded:
        return snapshot(SnapshotState.NOT_NEEDED)
    if progress is not None and _is_inherited(world, progress, application):
        return snapshot(SnapshotState.DONE, finished=progress.updated)
    has_started = recorded.get("tunnelId") == label
    if world.resource.wire_type is not None and not has_started and not _stream_is_readable(world):
        return snapshot(SnapshotState.AWAITING_STREAM, "waiting for the first token of every channel of the stream")
    if progress is not None and progress.complete:
        gate = find_closed_gate(
            application, progress, world.spark_pods, now=world.now, deadlines=_deadlines(progress), began=began
        )
        if gate is None:
            return snapshot(SnapshotState.DONE, finished=_now(world))
        return snapshot(SnapshotState.SETTLING, f"all {progress.total} splits are done; {gate}")
    state = _state_while_copying(world, application, missing_seconds)
    share = _share(progress, found if isinstance(found, CodecError) else None)
    if progress is not None and progress.error and _has_given_up(application):
        share = f"{share}; {progress.error}"
    return snapshot(state, _message_while_copying(state, application, share))


def _now(world: World) -> float:
    """The later of both clocks: consume points, by the service's, are compared with it (docs/architecture.md 3.3)."""
    service = world.tunnel.description.service_time if isinstance(world.tunnel, Tunnel) else None
    return max(world.now, service or 0.0)


def _label(world: World) -> str:
    """The copy that a progress record has to belong to."""
    if world.resource.wire_type is None:
        return world.resource.uid
    if isinstance(world.tunnel, Tunnel):
        return str(world.tunnel.description.tunnel.tunnel_id)
    return str(world.resource.recorded_tunnel.get("id") or "")


def _application(world: World) -> Application | None:
    found = world.child("SparkApplication", names.snapshot_name(world.resource.name))
    return None if found is None else read_application(found)


def _record(world: World) -> SnapshotProgress | CodecError | None:
    """The progress record, of whichever copy; its damage, which proves no split as done; None where there is none."""
    record = world.child("ConfigMap", names.snapshot_name(world.resource.name))
    if record is None:
        return None
    try:
        return read_progress(record)
    except CodecError as damage:
        return damage


def _began(world: World) -> float | None:
    """When this copy was begun, perhaps by an earlier object of this name; None where it is not known.

    The record is created before the first application. It is younger than the copy only if somebody has deleted it.
    """
    record = world.child("ConfigMap", names.snapshot_name(world.resource.name)) or {}
    created = parse_time((record.get("metadata") or {}).get("creationTimestamp"))
    started = parse_time(world.resource.recorded_snapshot.get("startedTime"))
    return min((time for time in (created, started) if time is not None), default=None)


def _is_inherited(world: World, progress: SnapshotProgress, application: Application | None) -> bool:
    """Whether an earlier object of this name copied everything and consumed: it had passed every gate."""
    if not progress.complete or not isinstance(world.tunnel, Tunnel):
        return False
    if world.resource.recorded_snapshot or application is not None or world.spark_pods:
        return False
    return has_moved(world.tunnel.description, world.tunnel.checkpoints) is True


def _stream_is_readable(world: World) -> bool:
    """Whether every channel of the stream has a token to read from."""
    if not isinstance(world.tunnel, Tunnel) or not is_initialised(world.tunnel.description):
        return False
    checkpoints = world.tunnel.checkpoints
    if checkpoints is None or world.tunnel.description.tunnel.stage != Stage.STREAM:
        return False
    return all(
        channel.channel_id in checkpoints and is_stream_token(checkpoints[channel.channel_id].token)
        for channel in world.tunnel.description.channels
    )


def _deadlines(progress: SnapshotProgress) -> Deadlines:
    """Bounds of this copy's tasks: they keep the D of their driver, whatever the object says since."""
    write = LONGEST_WRITE_DEADLINE if progress.write_deadline is None else progress.write_deadline
    return Deadlines(SPLIT_DEADLINE, write)


def _state_while_copying(world: World, app: Application | None, missing_seconds: float) -> SnapshotState:
    if app is None:
        return SnapshotState.STARTING
    # The Spark operator sets the state after spark-submit, minutes later on a busy node; a pod shows up before.
    is_unseen = app.state is AppState.NEW and not world.spark_pods
    if is_unseen and world.now >= app.created + missing_seconds:
        return SnapshotState.OPERATOR_MISSING
    return WHILE_COPYING[app.state]


def _has_given_up(app: Application | None) -> bool:
    """Whether the last driver ended by itself: the record may have an error of an earlier one otherwise."""
    return app is not None and app.state is AppState.COMPLETED


def _share(progress: SnapshotProgress | None, damage: CodecError | None) -> str:
    if damage is not None:
        return f"the progress record is damaged ({damage})"
    if progress is None or progress.total is None:
        return "the splits are not listed yet"
    return f"{progress.done} of {progress.total} splits are done"


def _message_while_copying(state: SnapshotState, app: Application | None, share: str) -> str:
    if app is None:
        return "the SparkApplication is being created"
    match state:
        case SnapshotState.OPERATOR_MISSING:
            return "no Spark operator has picked up the SparkApplication"
        case SnapshotState.STARTING if app.state is AppState.NEW:
            return "the SparkApplication waits for the Spark operator"
        case SnapshotState.STARTING:
            return "the Spark operator has submitted the driver"
        case SnapshotState.COPYING:
            return share
        case SnapshotState.FAILED if app.state is AppState.COMPLETED:
            return f"the SparkApplication ended, but {share}"
        case _:
            return f"{share}; the SparkApplication is {app.state}" + (f": {app.message}" if app.message else "")


def _problem(world: World, state: SnapshotState, message: str) -> Problem | None:
    if state not in PROBLEMS:
        return None
    reason, hint = PROBLEMS[state]
    name = names.snapshot_name(world.resource.name)
    return Problem(reason, f"SparkApplication {name!r}: {message}: {hint}")
