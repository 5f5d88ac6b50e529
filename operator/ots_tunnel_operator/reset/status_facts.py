"""What a status tells a reset to decide by, for operator and plugin alike. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ots_tunnel_operator.reset.record import recorded_loss, running
from ots_tunnel_operator.times import parse_time

#: Difference of two clocks up to which the service accepts requests, seconds.
SKEW_SECONDS = 900.0
#: Stage of a tunnel on the service in which every existing row has been delivered.
STREAM_STAGE = "ProcessStream"


def delivered_until(status: Mapping[str, Any], window: Mapping[str, Any], measured: float | None) -> float | None:
    """Every change before this time, and since the object began, has reached the sink; Unix seconds, None is unknown.

    Gaps and losses that are known already end it, whether they were accepted or not.

    Args:
        status: as stored.
        window: the spec's tunnel.stream, in camelCase.
        measured: until when the recorded tunnel is consumed by a description of it; None is unknown.
    """
    recorded = status.get("tunnel") or {}
    if (under_way := running(status)) is not None and not recorded.get("id"):
        # the tunnel that this is about is forgotten already
        return under_way.delivered_until
    loss = recorded_loss(status)
    if loss is not None and loss.start is None:
        return None
    known = [time for time in (measured, *_points(status)) if time is not None]
    # a tunnel that begins again takes the destination back: what it has not reached counts from its begin
    until = max(known, default=_start(recorded, window))
    if until is None:
        return None
    gaps = (parse_time(gap.get("from")) for gap in status.get("possibleGaps") or ())
    bounds = [bound for bound in (*gaps, loss.start if loss is not None else None) if bound is not None]
    return min(until, *bounds) if bounds else until


def _start(recorded: Mapping[str, Any], window: Mapping[str, Any]) -> float | None:
    """Where the recorded tunnel begins, Unix seconds; None is unknown."""
    begin = recorded if recorded.get("startFrom") else window
    match begin.get("startFrom", "Latest"):
        case "Latest":
            return parse_time(recorded.get("createdTime"))
        case "Timestamp":
            return parse_time(begin.get("startTime"))
        case _:
            return None


def _points(status: Mapping[str, Any]) -> Iterator[float | None]:
    """Times until which everything was consumed, each of them a lower bound."""
    recorded, mark = status.get("tunnel") or {}, status.get("readUntil") or {}
    yield parse_time((status.get("lag") or {}).get("consumedUpTo"))
    yield parse_time(recorded.get("consumedUpTo"))
    if recorded.get("id") and mark.get("tunnelId") == recorded.get("id"):
        yield parse_time(mark.get("time"))


def is_past_base(status: Mapping[str, Any]) -> bool | None:
    """Whether the recorded tunnel had delivered every existing row when it was seen last; None is unknown."""
    recorded = status.get("tunnel") or {}
    stage = recorded.get("stage") or recorded.get("lastStage")
    return None if not stage else bool(stage == STREAM_STAGE)


def kept_since(retention: int | None, now: float) -> float | None:
    """Since when a stream certainly keeps every change, Unix seconds; the service's clock may be ahead.

    Args:
        retention: seconds; None is unknown.
        now: Unix seconds.
    """
    return None if not retention else now + SKEW_SECONDS - retention
