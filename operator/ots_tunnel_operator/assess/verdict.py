"""Verdicts that outlive the look that found them, as status.verdict records them. Pure.

A tunnel that is gone does not come back. While a later look sees nothing, because a table, a Secret or the service is
gone too, or because an elder object has the tunnel, the verdict stays: otherwise workers would start again that can
only fail or do harm.

The record is the verdict's own: another problem may take Stalled and each other condition for itself, and says nothing
about the verdict. Only a look that sees what the verdict is about refutes it (`assess.preflight.find_verdict`).

The finding of a worker is about what no look of the operator can see, such as a record that its sink refuses. Such a
verdict names the attempt that it is about, and stands until the next one may differ (`assess.worker_pods.final_end`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.world.resource import Resource

#: Longest message of a record, characters.
MAX_MESSAGE = 1024

#: Verdicts that last, and the condition that each of them makes False.
LASTING: Mapping[Reason, str] = {
    Reason.TUNNEL_NOT_FOUND: "TunnelReady",
    Reason.TUNNEL_REPLACED: "TunnelReady",
    Reason.TUNNEL_EXPIRED: "TunnelReady",
    Reason.NO_STREAM: "TunnelReady",
    Reason.STREAM_REPLACED: "TunnelReady",
    Reason.DESTINATION_BEHIND_TUNNEL: "SinkReady",
    Reason.SINK_REJECTED: "SinkReady",
}


def recorded_verdict(status: Mapping[str, Any]) -> Problem | None:
    """The lasting verdict of a stored status; None without one."""
    found = status.get("verdict") or {}
    for reason, affected in LASTING.items():
        if found.get("reason") == reason:
            attempt = str(found.get("attempt") or "")
            return Problem(reason, str(found.get("message") or ""), (affected,), attempt=attempt)
    return None


def verdict_document(verdict: Problem) -> dict[str, str]:
    """A verdict as status.verdict has it."""
    document = {"reason": str(verdict.reason), "message": verdict.message[:MAX_MESSAGE]}
    return document | ({"attempt": verdict.attempt} if verdict.attempt else {})


def may_last(resource: Resource) -> bool:
    """Whether a verdict on this object can last: it has used a tunnel, or needs none."""
    return bool(resource.recorded_tunnel.get("id")) or resource.wire_type is None


def was_behind(resource: Resource) -> bool:
    """Whether the last verdict is that the destination was missing or empty although rows had been copied."""
    verdict = recorded_verdict(resource.status)
    return verdict is not None and verdict.reason is Reason.DESTINATION_BEHIND_TUNNEL
