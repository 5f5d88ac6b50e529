"""How many workers are wanted now, by spec.replicas or by the autoscaler, and why. Pure.

Theory of operation
-------------------
    Disabled    spec.replicas; nothing is computed
    Advise      spec.replicas; what Auto would do is computed and shown, and nothing is changed
    Auto        the number of the record, until `autoscale.decision` changes it

The operator never writes spec.replicas. Nothing is computed while workers are stopped or not started yet: suspended,
deleted, completed, a problem that stops workers or leaves them as they are, a copy by Spark, no tunnel, spec.replicas
0. The windows then begin anew.

After the first look of a process the status keeps what it shows until there are figures again, so that the restart of
an operator writes nothing about an idle object.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ots_tunnel_operator.api.autoscaling import Autoscaling
from ots_tunnel_operator.assess.lag import Lag
from ots_tunnel_operator.assess.scaling.figures import figures
from ots_tunnel_operator.assess.scaling.foreign import foreign_writer
from ots_tunnel_operator.assess.scaling.record import (
    begun,
    change_document,
    record_of,
    recorded,
    wanted_workers,
)
from ots_tunnel_operator.assess.spark.snapshot import Snapshot
from ots_tunnel_operator.assess.spark.snapshot_state import SnapshotState
from ots_tunnel_operator.autoscale.asleep import is_fresh
from ots_tunnel_operator.autoscale.decision import Cause, Decision, decide
from ots_tunnel_operator.autoscale.figures import Figures
from ots_tunnel_operator.autoscale.formula import load
from ots_tunnel_operator.autoscale.history import Foreign, History
from ots_tunnel_operator.autoscale.limit import Limit
from ots_tunnel_operator.autoscale.record import Record
from ots_tunnel_operator.reasons import Problem
from ots_tunnel_operator.world.world import World

#: Seconds for which another client that wrote the number of workers is shown.
FOREIGN_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Scaling:
    """The number of workers and its reasons."""

    wanted: int
    document: Mapping[str, Any]
    """status.autoscaling."""
    history: History | None = None
    """What is remembered; None where nothing is computed."""
    record: Mapping[str, Any] | None = None
    """The part of status.autoscaling to be recorded before the number is changed; None where it is not changed."""
    limit: Limit = Limit.NONE
    stopped: str = ""
    """Why nothing is computed although the mode asks for it; empty where it is."""
    misses: int = 0
    """Looks in a row without a known lag."""
    is_blind: bool = False
    """Whether the lag has been unknown for so long that nothing is scaled."""
    foreign: str = ""
    """Who else writes the number, in words."""
    is_asleep: bool = False
    """Whether no worker is wanted because nothing is to be read."""
    is_seen: bool = False
    """Whether every channel was looked at within the bound, so that this is still known."""

    @property
    def falls_asleep(self) -> bool:
        """Whether it is decided now that the last worker goes, because nothing is to be read."""
        return self.is_asleep and self.record is not None

    @property
    def pace(self) -> float | None:
        """Seconds of changes consumed in a second, over the last minute; None is unknown."""
        found = None if self.history is None else load(self.history.figures)
        return None if found is None else found.pace


def stopped_by(world: World, problem: Problem | None, snapshot: Snapshot, *, completed: bool) -> str:
    """Why no number of workers is computed now; empty where one is."""
    resource, spec = world.resource, world.resource.spec
    if problem is not None and problem.stops_workers:
        return f"{problem.reason} stops the workers"
    if problem is not None and problem.leaves_workers:
        # a decision that nobody carries out would be shown as a change
        return f"{problem.reason} leaves the workers and their number as they are"
    reasons = {
        "the object is being deleted": resource.deleted is not None,
        "spec.suspend is true": spec.suspend,
        "everything is delivered": completed,
        "no worker is needed": not spec.uses_workers,
        "Spark copies existing rows": snapshot.state is not SnapshotState.NOT_NEEDED,
        f"there is no {spec.source.whole} yet": not resource.recorded_tunnel.get("id"),
        "spec.replicas is 0": not spec.replicas,
    }
    return next((text for text, holds in reasons.items() if holds), "")


def assess_scaling(world: World, lag: Lag | None, stopped: str) -> Scaling:
    """How many workers are wanted, and why.

    Args:
        world: what was observed.
        lag: from the answers of this look.
        stopped: why nothing is computed (`stopped_by`).
    """
    resource = world.resource
    mode, wanted = resource.spec.scaling_mode, wanted_workers(resource)
    if mode == "Disabled":
        return Scaling(wanted, {"desiredReplicas": wanted} | _left_by_auto(world, wanted))
    history = world.scaling or begun(resource)
    if stopped:
        document = {"desiredReplicas": wanted, "limitedBy": str(Limit.STOPPED)} | _left_by_auto(world, wanted)
        if mode == "Auto" and wanted:
            document |= {"specReplicas": resource.spec.replicas}
        return Scaling(wanted, document, history.stopped(), limit=Limit.STOPPED, stopped=stopped)
    return _advised(world, lag, history) if mode == "Advise" else _decided(world, lag, history)


def _left_by_auto(world: World, wanted: int) -> dict[str, Any]:
    """What the record keeps after Auto: all of it while its number still counts, then nothing."""
    found = recorded(world.resource)
    if found.get("desiredReplicas") != wanted or found.get("specReplicas") is None:
        return {}
    return {key: found[key] for key in ("specReplicas", "lastScaleTime", "lastDecision") if key in found}


def _advised(world: World, lag: Lag | None, history: History) -> Scaling:
    """What Auto would do beside the number that another client decides."""
    wanted = wanted_workers(world.resource)
    # whoever changes the number waits, or does not, by rules of its own
    decision, found = _decide(world, lag, history, replace(record_of(world.resource), scaled=None))
    change = decision.change
    is_outside = change is not None and change.cause is Cause.BOUNDS
    # nothing is changed, so that the figures go on
    figures = decision.history.figures if change is None or is_outside else history.observed(found).figures
    recommended = change.after if change is not None and is_outside else decision.recommended
    document = _document(wanted, recommended, found.channels, decision.limit) | _left_by_auto(world, wanted)
    return Scaling(
        wanted,
        document,
        replace(decision.history, trial=None, figures=figures),
        limit=decision.limit,
        misses=decision.history.misses,
        is_blind=decision.is_blind,
    )


def _decided(world: World, lag: Lag | None, history: History) -> Scaling:
    """The operator's own number."""
    resource = world.resource
    asked, before = resource.spec.replicas, recorded(resource)
    sleep = (resource.spec.autoscaling or Autoscaling()).scale_to_zero.policy()
    decision, found = _decide(world, lag, history, record_of(resource))
    foreign = _foreign(world, decision.history)
    limit = decision.limit if foreign is None else Limit.FOREIGN_WRITER
    document = {key: before[key] for key in ("lastScaleTime", "lastDecision") if key in before}
    document |= _document(decision.desired, decision.recommended, found.channels, limit) | {"specReplicas": asked}
    record = None if decision.change is None else change_document(decision.change, resource, world.now)
    if not decision.desired and "sleep" in before:
        document["sleep"] = before["sleep"]
    shown = {key: value for key, value in (document | (record or {})).items() if value is not None}
    return Scaling(
        decision.desired,
        shown,
        replace(decision.history, foreign=foreign),
        record,
        limit,
        misses=decision.history.misses,
        is_blind=decision.is_blind,
        foreign="" if foreign is None else foreign.text,
        is_asleep=not decision.desired,
        is_seen=sleep is not None and is_fresh(sleep, found.peeked, world.now),
    )


def _decide(world: World, lag: Lag | None, history: History, record: Record) -> tuple[Decision, Figures]:
    spec = world.resource.spec
    settings = spec.autoscaling or Autoscaling()
    found = figures(world, lag, record.desired, record.scaled)
    policy = settings.policy(spec.worker_settings.heartbeat_interval_seconds, spec.sink.holds_seconds, spec.source.part)
    return decide(policy, record, found, history), found


def _document(wanted: int, recommended: int | None, channels: int | None, limit: Limit) -> dict[str, Any]:
    """The figures of status.autoscaling; an unknown one is absent."""
    document: dict[str, Any] = {
        "desiredReplicas": wanted,
        "recommendedReplicas": recommended,
        "usefulMaxReplicas": channels,
        "limitedBy": str(limit),
    }
    return {key: value for key, value in document.items() if value is not None}


def _foreign(world: World, history: History) -> Foreign | None:
    """The client that writes the number now, or that did some minutes ago."""
    text = foreign_writer(world, wanted_workers(world.resource))
    if text:
        return Foreign(world.now, text)
    last = history.foreign
    return last if last is not None and 0 <= world.now - last.time < FOREIGN_SECONDS else None
