"""Where a snapshot by Spark stands: pure gates of docs/architecture.md 3, "Snapshot before stream".

Consumers start only behind all of them: every frozen split recorded as done, the application in a terminal state,
none of its pods able to write any more, the write deadline passed; and then only once that is recorded.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from ots_tunnel.errors import CodecError
from ots_tunnel.fence import write_deadline
from ots_tunnel.model import Stage
from ots_tunnel.protocol.token import is_stream_token
from ots_tunnel.snapshot.record import SnapshotProgress
from ots_tunnel_operator import names
from ots_tunnel_operator.assess.lag import has_moved, is_initialised
from ots_tunnel_operator.assess.spark_state import (
    Application,
    SnapshotDecision,
    SnapshotPhase,
    application_state,
    parse_progress,
    snapshot_decision,
)
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.world import Tunnel, World

#: What status.snapshot.state says when everything is recorded.
COMPLETED = "Completed"

#: A task sends nothing later than its start and this (docs/architecture.md rule 4).
SPLIT_DEADLINE = 600.0


class Step(enum.Enum):
    """How far a snapshot is."""

    NOT_NEEDED = enum.auto()
    """Existing rows are not Spark's business, or their copy is recorded as complete."""
    TUNNEL_FIRST = enum.auto()
    """The stream's channels are not all readable yet: a row read now could be lost (overlap, never a gap)."""
    RUN = enum.auto()
    """The application has to run, or is running."""
    SETTLE = enum.auto()
    """Everything is copied, but something could still be writing."""
    DONE = enum.auto()
    """To be recorded now."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Step, how far the splits are, and what is wrong."""

    step: Step
    progress: SnapshotProgress | None = None
    problem: Problem | None = None
    message: str = ""
    finished: float | None = None
    """With DONE: when nothing wrote any more, seconds since 1970."""


def label_of(world: World) -> str:
    """Which copy a progress record has to belong to: the tunnel's id, or the object's uid where there is none."""
    if world.resource.spec.wire_type is None:
        return world.resource.uid
    if isinstance(world.tunnel, Tunnel):
        return str(world.tunnel.description.tunnel.tunnel_id)
    return str(world.resource.recorded_tunnel.get("id") or "")


def is_recorded_complete(world: World) -> bool:
    """Whether a completed snapshot for this very tunnel is recorded, in the status or in a kept record."""
    recorded = world.resource.recorded_snapshot
    label = label_of(world)
    if recorded.get("state") == COMPLETED and recorded.get("tunnelId") == label:
        return True
    progress = progress_of(world)
    return progress is not None and progress.label == label and progress.complete


def progress_of(world: World) -> SnapshotProgress | None:
    """What the progress record says; None where there is none or it is damaged."""
    record = world.child("ConfigMap", names.snapshot_name(world.resource.name))
    if record is None:
        return None
    try:
        return parse_progress(record)
    except CodecError:
        return None


def application_of(world: World) -> Application | None:
    """The snapshot's SparkApplication, None where there is none."""
    found = world.child("SparkApplication", names.snapshot_name(world.resource.name))
    return application_state(found) if found is not None else None


def assess(world: World, *, missing_seconds: float) -> Snapshot:
    """Where the snapshot stands.

    Args:
        world: what is there.
        missing_seconds: an application nobody picked up for so long is reported.
    """
    spec, recorded, label = world.resource.spec, world.resource.recorded_snapshot, label_of(world)
    if not spec.uses_spark:
        return Snapshot(Step.NOT_NEEDED)
    progress = progress_of(world)
    mine = progress if progress is not None and progress.label == label else None
    if recorded.get("state") == COMPLETED and recorded.get("tunnelId") == label:
        return Snapshot(Step.NOT_NEEDED, mine)
    if mine is not None and _is_inherited(world, mine):
        return Snapshot(Step.DONE, mine, finished=mine.updated)
    # Only before the first row is read: later the stream may split, and be read to the end of a channel.
    started = recorded.get("tunnelId") == label
    if spec.wire_type is not None and not started and not _stream_is_readable(world):
        return Snapshot(
            Step.TUNNEL_FIRST, None, None, "waiting for every channel of the stream to have its first token"
        )
    settings = spec.worker_settings
    decision = snapshot_decision(
        application_of(world),
        mine or SnapshotProgress(label, 0, None),
        world.spark_pods,
        label=label,
        now=world.now,
        split_deadline=SPLIT_DEADLINE,
        write_deadline=write_deadline(settings.heartbeat_timeout_seconds, settings.heartbeat_interval_seconds),
        missing_after=missing_seconds,
    )
    if decision.phase is SnapshotPhase.DONE:
        return Snapshot(Step.DONE, mine, finished=world.now)
    step = Step.SETTLE if mine is not None and mine.complete else Step.RUN
    return Snapshot(step, mine, _problem(world, decision), decision.message)


def _is_inherited(world: World, progress: SnapshotProgress) -> bool:
    """Whether an earlier object of this name copied everything and went on to consume: all gates were passed then."""
    if not progress.complete or not isinstance(world.tunnel, Tunnel):
        return False
    if world.resource.recorded_snapshot or application_of(world) is not None or world.spark_pods:
        return False
    return has_moved(world.tunnel.description, world.tunnel.checkpoints) is True


def _problem(world: World, decision: SnapshotDecision) -> Problem | None:
    name = names.snapshot_name(world.resource.name)
    match decision.reason:
        case "SparkOperatorMissing":
            return Problem(Reason.SPARK_OPERATOR_MISSING, f"SparkApplication {name!r}: {decision.message}")
        case "SnapshotFailed" | "SnapshotIncomplete":
            return Problem(
                Reason.SNAPSHOT_FAILED,
                f"SparkApplication {name!r}: {decision.message}: see the log of its driver, mend the cause and delete "
                f"the SparkApplication: a new one goes on where this one stopped",
            )
        case "SnapshotRetrying" if "FAIL" in decision.message:
            return Problem(
                Reason.SNAPSHOT_RETRYING, f"SparkApplication {name!r}: {decision.message}; it is tried again"
            )
        case _:
            return None


def _stream_is_readable(world: World) -> bool:
    if not isinstance(world.tunnel, Tunnel) or not is_initialised(world.tunnel.description):
        return False
    checkpoints = world.tunnel.checkpoints
    if checkpoints is None or world.tunnel.description.tunnel.stage != Stage.STREAM:
        return False
    return all(
        channel.channel_id in checkpoints and is_stream_token(checkpoints[channel.channel_id].token)
        for channel in world.tunnel.description.channels
    )
