"""What to type to start an object over. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ots_tunnel_operator.plugin.ott import Ott
from ots_tunnel_operator.plugin.why import commands
from ots_tunnel_operator.plugin.why.step import Step
from ots_tunnel_operator.reset.facts import Found
from ots_tunnel_operator.reset.way_out import Way

_START_OVER = "tart over; the reset first says what it writes and loses, and asks:"
_AFRESH = (
    "tart over: empty the destination, and, if nothing else uses the tunnel, delete it; the operator creates another:"
)


def start_over(ott: Ott, first: str = "S", found: Found = Found.RECORDED) -> Step:
    """How to start an object over, whatever it reads from.

    Args:
        first: begin of the sentence, up to the first letter of "start".
        found: the tunnel that has the name.
    """
    if ott.leases:
        text = f"tart over: delete the object, and apply it again with another table of leases{_start(ott)}:"
        return Step(first + text, (commands.delete(ott),))
    if ott.by_query:
        text = "tart over: delete the object, and apply it again with another tunnel name and another place of files:"
        return Step(first + text, (commands.delete(ott),))
    source: Mapping[str, Any] = ott.spec.get("source") or {}
    tunnel: Mapping[str, Any] = source.get("tunnel") or {}
    way = Way(
        namespace=ott.namespace,
        name=ott.name,
        kind=str(tunnel.get("type")),
        table=str(source.get("table")),
        tunnel=str(tunnel.get("name")),
        is_used=bool(ott.text("tunnel", "id") or ott.status.get("snapshot")),
        is_ours=ott.flag("tunnel", "createdByOperator") is True,
    )
    return Step(first + (_START_OVER if way.is_used else _AFRESH), way.steps(found))


def _start(ott: Ott) -> str:
    """Where the workers of another table of leases begin."""
    stream = (ott.spec.get("source") or {}).get("stream") or {}
    if stream.get("startFrom") != "Latest":
        return ", whose workers begin at startFrom"
    return " and with startFrom Earliest: with Latest what was not delivered by then would be left out"
