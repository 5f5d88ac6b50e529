"""Whether a status needs a write, and the patch for it (docs/architecture.md rule 9). Pure.

Phase, replicas, conditions and records are written at once. Figures are written at most every
Settings.status_seconds and only after their rounded value changed. `observedTime`, `consumedUpTo`, `rowsTotal`, `rows`
and `etaSeconds` never cause a write.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: Figures that change while nothing else does; they never cause a write.
_MOVING = {
    "lag": {"observedTime", "consumedUpTo"},
    "throughput": {"rowsTotal"},
    "base": {"rows", "etaSeconds"},
    "spark": {"recordedTime"},
}

#: Fields of autoscaling that the number of workers follows from.
_NUMBERS = ("desiredReplicas", "specReplicas", "lastDecision")


def is_urgent(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether the change is written at once: phase, replicas, conditions, and the records that recovery needs."""
    return bool(_urgent(before) != _urgent(after))


def _urgent(status: Mapping[str, Any]) -> Any:
    keys = (
        "observedGeneration",
        "phase",
        "replicas",
        "readyReplicas",
        "selector",
        "tunnel",
        "destination",
        "filesPlace",
        "possibleGaps",
        "readUntil",
        "verdict",
        "reset",
        "lost",
    )
    conditions = [(item["type"], item["status"], item["reason"]) for item in status.get("conditions") or ()]
    snapshot = {key: value for key, value in (status.get("snapshot") or {}).items() if key != "omittedCells"}
    autoscaling = status.get("autoscaling") or {}
    return [status.get(key) for key in keys], conditions, snapshot, [autoscaling.get(key) for key in _NUMBERS]


def is_different(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether any rounded figure differs."""
    return bool(_figures(before) != _figures(after))


def _figures(status: Mapping[str, Any]) -> Any:
    figures = {key: value for key, value in status.items() if key != "observedTime"}
    figures["conditions"] = [
        {key: value for key, value in item.items() if key != "lastTransitionTime"}
        for item in status.get("conditions") or ()
    ]
    for part, moving in _MOVING.items():
        figures[part] = {key: value for key, value in (status.get(part) or {}).items() if key not in moving}
    return figures


def merge_patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch from one status to the other: None removes a field, a list is replaced as a whole."""
    patch: dict[str, Any] = {key: None for key in before if key not in after}
    for key, value in after.items():
        old = before.get(key)
        if old == value:
            continue
        patch[key] = merge_patch(old, value) if isinstance(value, Mapping) and isinstance(old, Mapping) else value
    return patch


def merged(status: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """The status after a merge patch: None removes a field, a list is replaced as a whole."""
    result = dict(status)
    for key, value in change.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, Mapping):
            below = result.get(key)
            result[key] = merged(below if isinstance(below, Mapping) else {}, value)
        else:
            result[key] = value
    return result
