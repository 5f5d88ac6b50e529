"""Worlds of objects whose number of workers follows the load."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world import Tunnel, World
from tests.support.operator.worlds import (
    NOW,
    assessed,
    channel,
    deployment,
    description,
    pod,
    recorded,
    report_channel,
    resource,
    world,
)


def scaled(
    mode: str = "Auto",
    *,
    replicas: int = 2,
    workers: int | None = None,
    lag: int = 0,
    busy: int | None = 50,
    channels: int = 8,
    status: dict[str, Any] | None = None,
    autoscaling: dict[str, Any] | None = None,
    **changes: Any,
) -> World:
    """A settled fleet with even channels; `workers` is how many run, spec.replicas by default.

    Args:
        status: status.autoscaling.
        autoscaling: further fields of spec.autoscaling.
    """
    count = replicas if workers is None else workers
    of = resource(
        recorded(**({"autoscaling": status} if status else {})),
        replicas=replicas,
        autoscaling={"mode": mode} | (autoscaling or {}),
        **changes,
    )
    found = [(f"pod-{number % count}", f"c{number}", NOW - lag) for number in range(channels)]
    service = description(*(channel(name, client=f"01234567-{owner}", consumed=point) for owner, name, point in found))
    pods = tuple(
        pod(
            f"pod-{number}",
            *(
                report_channel(name, caught_up=not lag, lag_seconds=lag, consumed_up_to=point)
                for owner, name, point in found
                if owner == f"pod-{number}"
            ),
        )
        for number in range(count)
    )
    pods = tuple(
        replace(item, report=replace(item.report, busy_percent=busy)) for item in pods if item.report is not None
    )
    return world(of, tunnel=Tunnel(service), pods=pods, children=deployment(count))


def by_auto(workers: int, *, replicas: int = 2, ago: float = 7200.0, reason: str = "Backlog") -> dict[str, Any]:
    """status.autoscaling after a change by Auto."""
    time = timestamp(NOW - ago)
    decision = {"time": time, "from": replicas, "to": workers, "reason": reason, "message": "lag 143 s"}
    return {
        "desiredReplicas": workers,
        "specReplicas": replicas,
        "lastScaleTime": time,
        "lastDecision": decision,
    }


def looked(of: World, times: int) -> World:
    """The world after some looks, 15 s apart, that found the same."""
    for _ in range(times):
        of = replace(of, scaling=assessed(of).scaling.history, now=of.now + 15.0)
    return of
