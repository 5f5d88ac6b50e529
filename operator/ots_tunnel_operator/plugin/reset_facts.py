"""What a reset is decided by, as far as an object tells; the operator decides by what it sees itself. Pure."""

from __future__ import annotations

from typing import Any

from ots_tunnel_operator.plugin.ott import Ott
from ots_tunnel_operator.reset.facts import Facts, Found
from ots_tunnel_operator.reset.record import running
from ots_tunnel_operator.reset.request import Form
from ots_tunnel_operator.reset.status_facts import delivered_until, is_past_base, kept_since
from ots_tunnel_operator.times import parse_time

_GONE, _ANOTHER = "TunnelNotFound", "TunnelReplaced"
_LOST = frozenset({"DestinationBehindTunnel", "DestinationChanged"})


def facts_of(ott: Ott, now: float) -> Facts:
    """The facts about an object by its spec and status."""
    source: dict[str, Any] = ott.spec.get("source") or {}
    tunnel: dict[str, Any] = source.get("tunnel") or {}
    stream: dict[str, Any] = tunnel.get("stream") or {}
    kind, under_way = str(tunnel.get("type") or ""), running(ott.status)
    by_spark = kind != "Stream" and ott.uses_spark
    former = ott.text("tunnel", "id") or (under_way.former if under_way is not None else "")
    reasons = {ott.text("verdict", "reason"), ott.condition("Stalled").reason}
    return Facts(
        namespace=ott.namespace,
        name=ott.name,
        kind=kind,
        by_spark=by_spark,
        table=str(source.get("table") or ""),
        tunnel=str(tunnel.get("name") or ""),
        sink=next(iter(ott.spec.get("sink") or {}), ""),
        former=former,
        is_used=bool(ott.status.get("snapshot")) if kind == "BaseData" and by_spark else bool(former),
        is_ours=ott.flag("tunnel", "createdByOperator") is True,
        found=_found(ott, reasons),
        creates=tunnel.get("managementPolicy", "CreateIfMissing") == "CreateIfMissing",
        base_copied=_base_copied(ott, kind, by_spark=by_spark),
        delivered_until=delivered_until(ott.status, stream, None),
        kept_since=kept_since(ott.number("tunnel", "streamRetentionSeconds"), now),
        end=parse_time(stream.get("endTime")),
        is_destination_lost=bool(reasons & _LOST),
        # only the operator can see that
        is_destination_empty=False,
        now=now,
    )


def _found(ott: Ott, reasons: set[str]) -> Found:
    if _GONE in reasons or not ott.text("tunnel", "id"):
        return Found.GONE
    return Found.ANOTHER if _ANOTHER in reasons else Found.RECORDED


def _base_copied(ott: Ott, kind: str, *, by_spark: bool) -> bool | None:
    if kind == "Stream" or ott.text("tunnel", "startFrom"):
        return True
    under_way = running(ott.status)
    if under_way is not None and not ott.text("tunnel", "id"):
        return under_way.request.form is not Form.NEW_BASE
    if by_spark:
        return ott.text("snapshot", "state") == "Completed"
    return is_past_base(ott.status)
