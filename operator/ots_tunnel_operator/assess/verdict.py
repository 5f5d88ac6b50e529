"""Verdicts that outlive the look that found them, as the stored conditions tell them. Pure.

A tunnel that is gone does not come back. While a later look sees nothing, because a table, a Secret or the service is
gone too, the verdict stays: otherwise workers would start again that can only fail or do harm.
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
    """The lasting verdict in the condition Stalled of a stored status; None without one."""
    for condition in status.get("conditions") or ():
        if condition.get("type") == "Stalled" and condition.get("status") == "True":
            for reason, affected in LASTING.items():
                if condition.get("reason") == reason:
                    return Problem(reason, str(condition.get("message") or ""), (affected,))
    return None


def was_behind(resource: Resource) -> bool:
    """Whether the last verdict is that the destination was missing or empty behind a tunnel that had moved."""
    verdict = recorded_verdict(resource.status)
    return verdict is not None and verdict.reason is Reason.DESTINATION_BEHIND_TUNNEL
