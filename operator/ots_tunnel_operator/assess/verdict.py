"""Verdicts that outlive the look that found them, as the stored conditions tell them. Pure.

A tunnel that is gone does not come back. While a later look sees nothing, because a table, a Secret or the service is
gone too, the verdict stays: otherwise workers would start again that can only fail or do harm.

A verdict is in two conditions: Stalled, and the one that it makes False. Another problem may take Stalled for itself,
such as a refused call that was to stop the workers; the verdict then lasts by the other condition.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.world import Resource

#: Verdicts that last, and the condition that each of them makes False.
LASTING: Mapping[Reason, str] = {
    Reason.TUNNEL_NOT_FOUND: "TunnelReady",
    Reason.TUNNEL_REPLACED: "TunnelReady",
    Reason.TUNNEL_EXPIRED: "TunnelReady",
    Reason.DESTINATION_BEHIND_TUNNEL: "SinkReady",
}


def recorded_verdict(status: Mapping[str, Any]) -> Problem | None:
    """The lasting verdict in the conditions of a stored status; None without one."""
    for condition in status.get("conditions") or ():
        for reason, affected in LASTING.items():
            found = condition.get("type"), condition.get("status")
            if condition.get("reason") == reason and found in (("Stalled", "True"), (affected, "False")):
                return Problem(reason, str(condition.get("message") or ""), (affected,))
    return None


def may_last(resource: Resource) -> bool:
    """Whether a verdict on this object can last: it has used a tunnel, or needs none."""
    return bool(resource.recorded_tunnel.get("id")) or resource.spec.wire_type is None


def was_behind(resource: Resource) -> bool:
    """Whether the last verdict is that the destination was missing or empty although rows had been copied."""
    verdict = recorded_verdict(resource.status)
    return verdict is not None and verdict.reason is Reason.DESTINATION_BEHIND_TUNNEL
