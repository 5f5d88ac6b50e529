"""The status of an object that a pass could not observe, or that is being deleted. Pure.

Every condition is Unknown, with the cause as reason, because nobody looked; but some stay:

    Completed               where it is True: it is final
    Stalled                 True where the cause needs a human: the object cannot be read by this release; and as it
                            was where it holds a verdict that lasts (`assess.verdict`): that nobody looked refutes
                            nothing
    SinkReady, TunnelReady  False where a verdict that lasts says so

The figures stay as they were last observed. `status.observedTime` is then the time of exactly that observation: while
passes succeed it is not written alone (docs/architecture.md rule 9), and with the change to Unknown it is.

An object that is being deleted is not looked at either, but one thing is certain: it is not Ready, and will not be
again. No figure stays, because its workers are being stopped, and neither does the phase; the records stay, because the
deletion relies on them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ots_tunnel_operator.assess.verdict import recorded_verdict
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.report.conditions import ConditionValue, build, present_types
from ots_tunnel_operator.times import timestamp

#: What stays in the status of an object that is being deleted.
_RECORDS = frozenset(
    {
        *("observedGeneration", "selector", "tunnel", "destination", "possibleGaps", "readUntil", "verdict"),
        *("snapshot", "reset", "lost", "autoscaling", "refused", "podMonitor", "filesPlace"),
    }
)


def unobserved_status(
    before: Mapping[str, Any], problem: Problem, *, generation: int, observed: float | None, now: float
) -> dict[str, Any]:
    """The whole status after a pass that observed nothing.

    Args:
        before: the status as stored.
        problem: why nothing was observed.
        generation: of the object.
        observed: time of the last observation of this process, seconds since 1970; None keeps the recorded one.
        now: seconds since 1970.
    """
    unknown = ConditionValue(None, problem.reason, "the last pass could not observe it")
    values: dict[str, ConditionValue] = dict.fromkeys(present_types(before.get("conditions") or ()), unknown)
    values["Ready"] = ConditionValue(None, problem.reason, problem.message)
    values |= _lasting(before)
    if problem.stalled:
        values["Stalled"] = ConditionValue(True, problem.reason, problem.message)
    status = {"phase": "Pending", **before}
    status["conditions"] = _conditions(before, values, generation, now)
    if observed is not None:
        status["observedTime"] = timestamp(observed)
    return status


def deleting_status(before: Mapping[str, Any], waiting: str, *, generation: int, now: float) -> dict[str, Any]:
    """The whole status of an object that is being deleted: nobody looks at it any more, and its workers are stopped.

    Args:
        before: the status as stored.
        waiting: what the deletion waits for; empty where that is not known.
        generation: of the object.
        now: seconds since 1970.
    """
    message = f"the object is being deleted: {waiting}" if waiting else "the object is being deleted"
    unknown = ConditionValue(None, Reason.DELETING, "nobody looks at it while the object is being deleted")
    values: dict[str, ConditionValue] = dict.fromkeys(present_types(before.get("conditions") or ()), unknown)
    values["Ready"] = ConditionValue(False, Reason.DELETING, message)
    values["Progressing"] = ConditionValue(True, Reason.DELETING, message)
    values |= _lasting(before)
    status = {key: value for key, value in before.items() if key in _RECORDS}
    status["conditions"] = _conditions(before, values, generation, now)
    return status


def _lasting(before: Mapping[str, Any]) -> dict[str, ConditionValue]:
    """The values that a verdict which lasts leaves standing."""
    verdict = recorded_verdict(before)
    if verdict is None:
        return {}
    value = ConditionValue(False, verdict.reason, verdict.message)
    stalled = ConditionValue(True, verdict.reason, verdict.message)
    return dict.fromkeys(verdict.conditions, value) | {"Stalled": stalled}


def _conditions(
    before: Mapping[str, Any], values: Mapping[str, ConditionValue], generation: int, now: float
) -> list[dict[str, Any]]:
    """All conditions with these values; Completed stays as it was where it is True."""
    previous = before.get("conditions") or ()
    final = {item["type"] for item in previous if (item.get("type"), item.get("status")) == ("Completed", "True")}
    kept = {item["type"]: dict(item) for item in previous}
    conditions = build(values, previous, generation=generation, now=now)
    return [kept[item["type"]] if item["type"] in final else item for item in conditions]
