"""Worlds of objects whose number of workers follows the load."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ots_tunnel.model import ChannelStatus
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world.service import Peek, Tunnel
from ots_tunnel_operator.world.world import World
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


def sleeper(
    mode: str = "Auto",
    *,
    slept: float = 600.0,
    replicas: int = 1,
    suspend: bool = False,
    deleted: bool = False,
    status: dict[str, Any] | None = None,
    autoscaling: dict[str, Any] | None = None,
    generation: int = 3,
    **changes: Any,
) -> World:
    """An object without a worker, because nothing is to be read; its channel was looked at a moment ago.

    Args:
        slept: seconds since the last worker went.
        status: status.autoscaling.
        autoscaling: spec.autoscaling without the mode.
        generation: that status.autoscaling.sleep names; the object's is 3.
        changes: of the world.
    """
    sleep = {"since": timestamp(NOW - slept), "generation": generation}
    record = status or {"desiredReplicas": 0, "specReplicas": replicas, "sleep": sleep}
    settings = autoscaling or {"minReplicas": 0, "scaleToZero": {"enabled": True}}
    of = resource(
        recorded(autoscaling=record),
        deleted=deleted,
        replicas=replicas,
        suspend=suspend,
        autoscaling={"mode": mode} | settings,
    )
    unowned = channel("c1", ChannelStatus.CLOSE, client="", consumed=NOW - 90_000)
    found = {
        "tunnel": Tunnel(description(unowned)),
        "pods": (),
        "children": deployment(0),
        "peeks": {"c1": Peek(NOW - 30, False, NOW - 30)},
    }
    return world(of, **(found | changes))
