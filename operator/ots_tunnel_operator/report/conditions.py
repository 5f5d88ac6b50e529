"""Conditions in the form of metav1.Condition. Pure.

Every type is present from the first write on, as Unknown where nothing was observed, so that `kubectl wait` never
waits for a missing one; those of the autoscaler are present once spec.autoscaling is. `lastTransitionTime` changes only
together with `status`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from ots_tunnel_operator.api.status import ConditionType
from ots_tunnel_operator.assess.observed import is_unobserved
from ots_tunnel_operator.reasons import Problem, Reason, anchor
from ots_tunnel_operator.report.missing import Missing
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world.world import World

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


def problem_value(world: World, problem: Problem) -> ConditionValue:
    """The value of a condition that a problem names; Unknown where the problem is that nothing could be observed."""
    status = None if is_unobserved(world, problem) else False
    return ConditionValue(status, problem.reason, problem.message)


def completed_with_loss(missing: Missing) -> ConditionValue:
    """The value of a condition that is True at the end, although something is or may be missing."""
    return ConditionValue(True, Reason.COMPLETED_WITH_LOSS, f"everything was read to its end, but {missing.message}")


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
