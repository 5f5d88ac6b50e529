"""Conditions in the shape of metav1, and the events that tell of their changes.

Every type is present from the first write on (Unknown where nobody can tell), so that `kubectl wait` never
hangs on a missing one. `lastTransitionTime` changes only when `status` does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ots_tunnel_operator.reasons import PASSING, Reason
from ots_tunnel_operator.times import timestamp

#: All types, in the order they are shown (docs/architecture.md 6.3 and SinkReady).
TYPES = (
    "Ready",
    "Progressing",
    "Degraded",
    "Stalled",
    "CredentialsValid",
    "SinkReady",
    "TunnelReady",
    "WorkersAvailable",
    "Rebalancing",
    "Suspended",
    "Completed",
)

#: Longest message; service texts are cut.
MAX_MESSAGE = 1024


@dataclass(frozen=True, slots=True)
class ConditionValue:
    """What a pass has to say on one condition; None as status is Unknown."""

    status: bool | None
    reason: Reason
    message: str = ""


def build(
    values: Mapping[str, ConditionValue], previous: Iterable[Mapping[str, Any]], *, generation: int, now: float
) -> list[dict[str, Any]]:
    """The condition list of a status: all types, times kept where the status did not flip."""
    before = {condition.get("type"): condition for condition in previous}
    return [
        _condition(kind, values.get(kind, ConditionValue(None, Reason.UNKNOWN)), before.get(kind), generation, now)
        for kind in TYPES
    ]


def _condition(
    kind: str, value: ConditionValue, before: Mapping[str, Any] | None, generation: int, now: float
) -> dict[str, Any]:
    status = "Unknown" if value.status is None else str(value.status)
    kept = before is not None and before.get("status") == status and before.get("lastTransitionTime")
    return {
        "type": kind,
        "status": status,
        "reason": str(value.reason),
        "message": value.message[:MAX_MESSAGE],
        "observedGeneration": generation,
        "lastTransitionTime": kept or timestamp(now),
    }


@dataclass(frozen=True, slots=True)
class Notice:
    """An Event to be posted."""

    kind: str
    """Normal or Warning."""
    reason: str
    message: str


def notices(previous: Iterable[Mapping[str, Any]], current: Iterable[Mapping[str, Any]]) -> tuple[Notice, ...]:
    """Events for what changed between two condition lists; none when nothing did.

    One per reason: a problem shows in several conditions but is one piece of news.
    """
    before = {condition.get("type"): (condition.get("status"), condition.get("reason")) for condition in previous}
    found: dict[str, Notice] = {}
    for condition in current:
        kind, status, reason = condition["type"], condition["status"], condition["reason"]
        if before.get(kind) == (status, reason):
            continue
        bad = (kind in ("Degraded", "Stalled") and status == "True") or (
            kind in ("CredentialsValid", "SinkReady", "TunnelReady") and status == "False"
        )
        if bad and (reason not in PASSING or kind == "Degraded"):
            found[reason] = Notice("Warning", reason, condition["message"])
        elif kind in ("Ready", "Completed", "Suspended") and status == "True":
            found.setdefault(reason, Notice("Normal", reason, condition["message"] or f"{kind} is now {status}"))
    return tuple(found.values())
