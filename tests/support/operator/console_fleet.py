"""Objects and what their loops keep, as the console gets them from the operator."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from ots_tunnel_operator.kube.errors import KubeError
from ots_tunnel_operator.kube.kinds import Manifest
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.world.report import KeptReport, WorkerReport
from ots_tunnel_operator.world.service import Tunnel
from tests.support.operator.plugin_objects import CHANNELS, STATES, body
from tests.support.operator.worlds import channel, description, report_channel

WORKER = "orders-copy-7d4f"


class ListedFleet:
    """Implements `console.Fleet` for given objects."""

    def __init__(self, *bodies: Mapping[str, Any]) -> None:
        self.objects: list[tuple[Manifest, LoopCache | None]] = [(dict(each), None) for each in bodies]
        self.refusal: KubeError | None = None

    def served(self) -> list[tuple[Manifest, LoopCache | None]]:
        """See `Fleet.served`."""
        return self.objects

    async def vouch(self) -> None:
        """See `Fleet.vouch`."""
        if self.refusal is not None:
            raise self.refusal


def looked_at(found: Mapping[str, Any], now: float | None = None, **changes: Any) -> tuple[Manifest, LoopCache]:
    """An object whose loop has just looked at it."""
    cache = LoopCache(str(found["metadata"]["uid"]), observed_time=time.time() if now is None else now)
    for name, value in changes.items():
        setattr(cache, name, value)
    return dict(found), cache


def with_channels(now: float) -> LoopCache:
    """What a loop keeps of an object with three workers that the status names: two answered, the third did not, and a
    client that is none of them has a channel."""
    clients = [f"1c6f4d32-{WORKER}-{end}" for end in ("aaaaa", "bbbbb", "ccccc")]
    listed = [
        channel(CHANNELS[0], client=clients[0], rows=1000),
        channel(CHANNELS[1], client=clients[0]),
        channel(CHANNELS[2], client=clients[1]),
        channel(CHANNELS[3], client="ccccc", rows=7),
        channel(CHANNELS[4], client="visitor"),
    ]
    late = report_channel(CHANNELS[0], caught_up=False, lag_seconds=500, rows=1000, error="OTSServerBusy: try again")
    first = WorkerReport(clients[0], 2650.4, 61, None, False, (late, report_channel(CHANNELS[1])))
    second = WorkerReport(clients[1], None, None, "cannot connect", False, (report_channel(CHANNELS[2]),))
    cache = LoopCache("1c6f4d32-0b53-4a0e-9c7b-6f0f5f1f6a11", observed_time=now)
    cache.tunnel = Tunnel(description(*listed))
    cache.reports = {
        f"{WORKER}-aaaaa": KeptReport(first, now - 2),
        f"{WORKER}-bbbbb": KeptReport(second, now - 20),
    }
    cache.posted = {("RollingWorkers", "rolling out 1 of 3"): now - 300}
    return cache


def many(count: int, now: float) -> list[tuple[Manifest, LoopCache | None]]:
    """That many objects in twenty namespaces, every state among them; most of them work."""
    found: list[tuple[Manifest, LoopCache | None]] = []
    states = list(STATES.values())
    for number in range(count):
        made = body() if number % 10 else dict(states[number // 10 % len(states)]().body)
        namespace = f"team-{number % 20:02}"
        made["metadata"] = made["metadata"] | {
            "name": f"orders-copy-{number:05}",
            "namespace": namespace,
            "uid": f"uid-{number}",
        }
        found.append(looked_at(made, now))
    return found
