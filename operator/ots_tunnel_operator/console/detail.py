"""Everything that the page shows of one object, with the words of `kubectl ott why`. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ots_tunnel_operator.console.channels import channels_document
from ots_tunnel_operator.console.fleet import age_of, line_of
from ots_tunnel_operator.console.history import SAMPLE_SECONDS
from ots_tunnel_operator.console.sight import Sight
from ots_tunnel_operator.plugin.ott import Condition, Ott
from ots_tunnel_operator.plugin.why.advice import next_steps, steps_for
from ots_tunnel_operator.plugin.why.decisions import last_decisions
from ots_tunnel_operator.plugin.why.remedies import REMEDIES
from ots_tunnel_operator.plugin.why.state import now_sentences, title
from ots_tunnel_operator.plugin.why.step import Step
from ots_tunnel_operator.plugin.why.waits import waits_sentences
from ots_tunnel_operator.reasons import PAGE
from ots_tunnel_operator.times import timestamp

#: Conditions that are bad while they are True.
_BAD_TRUE = frozenset({"Degraded", "Stalled"})
#: Conditions that are neither good nor bad.
_PLAIN = frozenset({"Progressing", "Rebalancing", "ScalingActive", "ScalingLimited", "Suspended", "Completed"})


def object_document(sight: Sight, lags: Sequence[int | None], own_lease: str, now: float) -> dict[str, Any]:
    """The page of one object.

    Args:
        lags: its history, the oldest first.
        own_lease: of this operator, as `namespace/name`; empty without election.
        now: Unix seconds.
    """
    ott = sight.ott
    events = [
        {"reason": reason, "message": message, "lastTimestamp": timestamp(time)}
        for (reason, message), time in sight.posted.items()
    ]
    return {
        "line": line_of(ott) | age_of(sight, own_lease),
        "title": title(ott),
        "now": now_sentences(ott, now),
        "waits": waits_sentences(ott, now, None),
        "next": [_step(step) for step in next_steps(ott)],
        "decisions": [
            {"time": each.time, "reason": each.reason, "text": each.text} for each in last_decisions(ott, events)
        ],
        "conditions": _conditions(ott),
        "channels": channels_document(sight),
        "lags": list(lags),
        "lagSeconds": SAMPLE_SECONDS,
        "lagLimit": ott.lag_limit,
    }


def _conditions(ott: Ott) -> list[dict[str, Any]]:
    """The conditions; the way out of a reason is beside the first one that has it."""
    said: set[str] = set()
    found = []
    for condition in ott.conditions:
        style = _style(condition)
        steps: list[Step] = []
        if style in ("bad", "warn") and condition.reason in REMEDIES and condition.reason not in said:
            said.add(condition.reason)
            steps = steps_for(ott, condition.reason, condition.message)
        found.append(
            {
                "type": condition.type,
                "status": condition.status,
                "reason": condition.reason,
                "message": condition.message,
                "since": condition.since,
                "style": style,
                "steps": [_step(step) for step in steps],
                "page": f"{PAGE}#{condition.reason.lower()}" if condition.reason else "",
            }
        )
    return found


def _style(condition: Condition) -> str:
    if condition.status == "Unknown":
        return "warn" if condition.reason else ""
    if condition.type in _PLAIN:
        return ""
    return "bad" if condition.is_true == (condition.type in _BAD_TRUE) else "good"


def _step(step: Step) -> dict[str, Any]:
    return {"text": step.text, "commands": list(step.commands)}
