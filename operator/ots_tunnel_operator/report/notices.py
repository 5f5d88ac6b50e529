"""The events about a status: what has changed in its conditions, and what was recorded into it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ots_tunnel_operator.reasons import PASSING, SCALING_WARNINGS, Reason
from ots_tunnel_operator.reset.record import State


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
    now = {condition["type"]: (condition["status"], condition["reason"]) for condition in current}
    # a rollout may also end because no worker is wanted any more, or because nothing is applied beside a problem;
    # beside a possible gap workers are applied as ever, or none is wanted
    is_given_up = now.get("WorkersAvailable", ("", ""))[1] == Reason.NO_WORKERS_WANTED
    stalled, why = now.get("Stalled", ("", ""))
    is_given_up = is_given_up or (stalled == "True" and why != Reason.POSSIBLE_GAP)
    found: dict[str, Notice] = {}
    for condition in current:
        kind, status, reason = condition["type"], condition["status"], condition["reason"]
        if before.get(kind) == (status, reason):
            continue
        if _is_bad(kind, status, reason) and (reason not in PASSING or kind == "Degraded"):
            found[reason] = Notice("Warning", reason, condition["message"])
        elif (kind in ("Ready", "Completed", "Suspended") and status == "True") or (
            kind == "Progressing" and reason == Reason.ROLLING_WORKERS
        ):
            found.setdefault(reason, Notice("Normal", reason, condition["message"]))
        elif kind == "Progressing" and status == "False" and was_rolling and not is_given_up:
            found.setdefault(ROLLED_OUT.reason, ROLLED_OUT)
    return tuple(found.values())


def _is_bad(kind: str, status: str, reason: str) -> bool:
    """Whether a condition with this status and reason is a problem, and not a thing that was done."""
    match kind:
        case "Degraded" | "Stalled":
            return status == "True"
        case "CredentialsValid" | "SinkReady" | "TunnelReady":
            return status == "False"
        case "ScalingLimited":
            return reason in SCALING_WARNINGS
        case "ScalingActive":
            return status == "False" and reason == Reason.METRICS_UNAVAILABLE
        case "Progressing":
            return reason == Reason.ROLLOUT_STUCK
        case "Ready":
            return status == "Unknown"  # a pass could not observe the object
        case _:
            return False


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
