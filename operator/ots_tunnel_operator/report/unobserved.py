"""The status of an object that a pass could not observe. Pure.

Every condition is Unknown, with the cause as reason, because nobody looked; but some stay:

    Completed               where it is True: it is final
    Stalled                 True where the cause needs a human: the object cannot be read by this release; and as it
                            was where it holds a verdict that lasts (`assess.verdict`): that nobody looked refutes
                            nothing
    SinkReady, TunnelReady  False where a verdict that lasts says so

The figures stay as they were last observed. `status.observedTime` is then the time of exactly that observation: while
passes succeed it is not written alone (docs/architecture.md rule 9), and with the change to Unknown it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ots_tunnel_operator.assess.verdict import recorded_verdict
from ots_tunnel_operator.reasons import Problem
from ots_tunnel_operator.report.conditions import TYPES, ConditionValue, build
from ots_tunnel_operator.times import timestamp


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
    previous = before.get("conditions") or ()
    final = {item["type"] for item in previous if (item.get("type"), item.get("status")) == ("Completed", "True")}
    unknown = ConditionValue(None, problem.reason, "the last pass could not observe it")
    values: dict[str, ConditionValue] = dict.fromkeys(TYPES, unknown)
    values["Ready"] = ConditionValue(None, problem.reason, problem.message)
    verdict = recorded_verdict(before)
    if verdict is not None:
        values |= dict.fromkeys(verdict.conditions, ConditionValue(False, verdict.reason, verdict.message))
        values["Stalled"] = ConditionValue(True, verdict.reason, verdict.message)
    if problem.stalled:
        values["Stalled"] = ConditionValue(True, problem.reason, problem.message)
    conditions = build(values, previous, generation=generation, now=now)
    kept = {item["type"]: dict(item) for item in previous}
    status = {"phase": "Pending", **before}
    status["conditions"] = [kept[item["type"]] if item["type"] in final else item for item in conditions]
    if observed is not None:
        status["observedTime"] = timestamp(observed)
    return status
