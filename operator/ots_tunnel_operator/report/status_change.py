"""Whether a status is worth a write, and which: pure (docs/architecture.md rule 9).

What matters is written at once, figures at most every so often and only when their rounded value changed,
`observedTime`, `consumedUpTo` and `rowsTotal` never by themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: Figures that move while nothing else does: they never cause a write.
_MOVING = {"lag": {"observedTime", "consumedUpTo"}, "throughput": {"rowsTotal"}, "base": {"rows", "etaSeconds"}}


def is_urgent(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether the change may not wait: phase, replicas, conditions, and what recovery depends on."""
    return bool(_urgent(before) != _urgent(after))


def _urgent(status: Mapping[str, Any]) -> Any:
    keys = ("observedGeneration", "phase", "replicas", "readyReplicas", "selector", "tunnel", "destination")
    conditions = [(item["type"], item["status"], item["reason"]) for item in status.get("conditions") or ()]
    snapshot = status.get("snapshot") or {}
    return [status.get(key) for key in keys], conditions, snapshot


def is_different(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether any figure differs by more than rounding."""
    return bool(_figures(before) != _figures(after))


def _figures(status: Mapping[str, Any]) -> Any:
    figures = dict(status)
    figures["conditions"] = [
        {key: value for key, value in item.items() if key != "lastTransitionTime"}
        for item in status.get("conditions") or ()
    ]
    for part, moving in _MOVING.items():
        figures[part] = {key: value for key, value in (status.get(part) or {}).items() if key not in moving}
    return figures


def merge_patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch that turns one status into the other: None removes a field, lists go as a whole."""
    patch: dict[str, Any] = {key: None for key in before if key not in after}
    for key, value in after.items():
        old = before.get(key)
        if old == value:
            continue
        patch[key] = merge_patch(old, value) if isinstance(value, Mapping) and isinstance(old, Mapping) else value
    return patch
