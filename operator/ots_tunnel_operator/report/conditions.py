"""Conditions in the form of metav1.Condition, and the events about their changes. Pure.

Every type is present from the first write on, as Unknown where nothing was observed, so that `kubectl wait` never
waits for a missing one; those of the autoscaler are present once spec.autoscaling is. `lastTransitionTime` changes only
together with `status`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from ots_tunnel_operator.api.status import ConditionType
from ots_tunnel_operator.reasons import PASSING, SCALING_WARNINGS, Reason, anchor
from ots_tunnel_operator.reset.record import State
from ots_tunnel_operator.times import timestamp

#: All types, in the order of the status.
TYPES: tuple[ConditionType, ...] = get_args(ConditionType)

#: Types that the definition of release 0.1.0 does not have: it refuses a status with one of them as a whole. An object
#: that is stored under that definition has no spec.autoscaling.
OF_AUTOSCALING = ("ScalingActive", "ScalingLimited")

#: Longest message that is written, characters, below what the status allows: foreign texts are cut.
MAX_WRITTEN_MESSAGE = 1024


@dataclass(frozen=True, slots=True)
class ConditionValue:
    """The value of one condition; None as status is Unknown."""

    status: bool | None
    reason: Reason
    message: str = ""


def build(
    values: Mapping[str, ConditionValue], previous: Iterable[Mapping[str, Any]], *, generation: int, now: float
) -> list[dict[str, Any]]:
    """The conditions of a status; the transition time of an unchanged status is kept.

    Args:
        values: of all types; those of the autoscaler may be missing, and are then left out.
        previous: as stored.
        generation: of the object.
        now: seconds since 1970.
    """
    before = {condition.get("type"): condition for condition in previous}
    return [
        _condition(kind, values.get(kind, ConditionValue(None, Reason.UNKNOWN)), before.get(kind), generation, now)
        for kind in TYPES
        if kind in values or kind not in OF_AUTOSCALING
    ]


def present_types(previous: Iterable[Mapping[str, Any]]) -> tuple[ConditionType, ...]:
    """The types of a status that is written without a look at the spec: of the autoscaler's, those that are stored."""
    stored = {condition.get("type") for condition in previous}
    return tuple(kind for kind in TYPES if kind in stored or kind not in OF_AUTOSCALING)


def _condition(
    kind: str, value: ConditionValue, before: Mapping[str, Any] | None, generation: int, now: float
) -> dict[str, Any]:
    status = "Unknown" if value.status is None else str(value.status)
    kept = before is not None and before.get("status") == status and before.get("lastTransitionTime")
    return {
        "type": kind,
        "status": status,
        "reason": str(value.reason),
        "message": _message(value),
        "observedGeneration": generation,
        "lastTransitionTime": kept or timestamp(now),
    }


def _message(value: ConditionValue) -> str:
    """The message, or what the reason means in general, and where the paragraph about the reason is.

    Every message is written here, so that none lacks its end, however long it is.
    """
    end = f"; see {anchor(value.reason)}"
    text = value.message or value.reason.description.rstrip(".")
    return text[: MAX_WRITTEN_MESSAGE - len(end)] + end


@dataclass(frozen=True, slots=True)
class Notice:
    """An Event to post."""

    kind: str
    """Normal or Warning."""
    reason: str
    message: str


#: State of a reset -> type and reason of its event.
_RESETS: Mapping[str, tuple[str, str]] = {
    State.RUNNING: ("Normal", "ResetStarted"),
    State.DONE: ("Normal", "ResetDone"),
    State.REFUSED: ("Warning", "ResetRefused"),
}

#: The event at the end of a rollout.
ROLLED_OUT = Notice("Normal", "RolloutComplete", "every worker runs the current configuration")


def notices(previous: Iterable[Mapping[str, Any]], current: Iterable[Mapping[str, Any]]) -> tuple[Notice, ...]:
    """The events about changes between two lists of conditions.

    One per reason: a problem appears in several conditions and is one event. A rollout has an event at its begin and
    one at its end.
    """
    before = {condition.get("type"): (condition.get("status"), condition.get("reason")) for condition in previous}
    current = tuple(current)
    was_rolling = before.get("Progressing") == ("True", Reason.ROLLING_WORKERS)
    # a rollout may also end because no worker is wanted any more
    reasons = {condition["type"]: condition["reason"] for condition in current}
    has_workers = reasons.get("WorkersAvailable") != Reason.NO_WORKERS_WANTED
    found: dict[str, Notice] = {}
    for condition in current:
        kind, status, reason = condition["type"], condition["status"], condition["reason"]
        if before.get(kind) == (status, reason):
            continue
        bad = (kind in ("Degraded", "Stalled") and status == "True") or (
            kind in ("CredentialsValid", "SinkReady", "TunnelReady") and status == "False"
        )
        bad = bad or (kind == "ScalingLimited" and reason in SCALING_WARNINGS)
        bad = bad or (kind == "ScalingActive" and status == "False" and reason == Reason.METRICS_UNAVAILABLE)
        bad = bad or (kind == "Progressing" and reason == Reason.ROLLOUT_STUCK)
        # a pass could not observe the object
        bad = bad or (kind == "Ready" and status == "Unknown")
        if bad and (reason not in PASSING or kind == "Degraded"):
            found[reason] = Notice("Warning", reason, condition["message"])
        elif (kind in ("Ready", "Completed", "Suspended") and status == "True") or (
            kind == "Progressing" and reason == Reason.ROLLING_WORKERS
        ):
            found.setdefault(reason, Notice("Normal", reason, condition["message"]))
        elif kind == "Progressing" and status == "False" and was_rolling and has_workers:
            found.setdefault(ROLLED_OUT.reason, ROLLED_OUT)
    return tuple(found.values())


def record_notices(change: Mapping[str, Any], before: Mapping[str, Any]) -> tuple[Notice, ...]:
    """The events about a change that was recorded into the status: a tunnel or destination created or adopted,
    another number of workers, a reset.

    Args:
        change: as recorded, see `plan.actions.RecordStatus`.
        before: the status before it.
    """
    found = []
    destination, tunnel = change.get("destination") or {}, change.get("tunnel") or {}
    if destination.get("ensuredTime") and not (before.get("destination") or {}).get("ensuredTime"):
        place = f"table {destination.get('table')!r} in instance {destination.get('instance')!r}"
        found.append(_made("Destination", place, is_ours=bool(destination.get("createdByOperator"))))
    if tunnel.get("id") and not (before.get("tunnel") or {}).get("id"):
        leases = tunnel.get("leaseTable")
        place = (
            f"tunnel {tunnel['id']}" if not leases else f"stream {tunnel['id']}, shared by table of leases {leases!r},"
        )
        found.append(_made("Tunnel", place, is_ours=bool(tunnel.get("createdByOperator"))))
    if (decision := (change.get("autoscaling") or {}).get("lastDecision")) is not None:
        found.append(_scaled(decision))
    reset = change.get("reset") or {}
    if kind := _RESETS.get(str(reset.get("state"))):
        found.append(Notice(*kind, str(reset.get("message") or "")))
    return tuple(found)


def _scaled(decision: Mapping[str, Any]) -> Notice:
    """The event about a change of the number of workers, with its figures."""
    before, after = decision["from"], decision["to"]
    text = f"from {before} to {after} workers, {decision['reason']}: {decision['message']}"
    return Notice("Normal", "ScaledUp" if after > before else "ScaledDown", text)


def _made(what: str, place: str, *, is_ours: bool) -> Notice:
    if is_ours:
        return Notice("Normal", f"{what}Created", f"{place} was created for this object")
    return Notice("Normal", f"{what}Adopted", f"{place} existed before and is used")
