"""Passes over an object whose PodMonitor the API server refuses: the status says so without a break."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from ots_tunnel_operator.kube.cluster import Cluster
from ots_tunnel_operator.loop.reconcile import Reconciler
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.metrics import OperatorMetrics
from ots_tunnel_operator.names import FINALIZER, workers_name
from ots_tunnel_operator.observe.observer import Observer
from ots_tunnel_operator.observe.pod_monitor import AGAIN_SECONDS, observe_pod_monitor
from ots_tunnel_operator.world.resource import Resource
from ots_tunnel_operator.world.world import Competitor, World
from tests.support.kube.kube_memory import KubeMemory
from tests.support.operator.objects import tunnel_object
from tests.support.operator.scaled_worlds import scaled
from tests.support.operator.worlds import NOW, SETTINGS, UID, recorded

NAME = "flights-copy"
#: Seconds between two passes.
POLL = 15.0


class Scene:
    """An object that asks for a PodMonitor, whose name somebody else's has."""

    def __init__(self) -> None:
        body = tunnel_object(replicas=2, monitoring={"podMonitor": True})
        body["metadata"] |= {"uid": UID, "generation": 3, "finalizers": [FINALIZER]}
        theirs = {"metadata": {"name": workers_name(NAME)}}
        own = body | {"status": recorded()}
        self.kube = KubeMemory({("TablestoreTunnel", NAME): own, ("PodMonitor", workers_name(NAME)): theirs})
        self.now, self.cache = NOW, LoopCache()
        self.reconciler = Reconciler(
            cast(Cluster, self.kube),
            cast(Observer, self),
            SETTINGS,
            OperatorMetrics(),
            lambda resource: None,
            clock=lambda: self.now,
        )

    async def observe(self, resource: Resource, cache: LoopCache, *, elder: Competitor | None, now: float) -> World:
        found = replace(scaled("Disabled"), resource=resource, now=now)
        return replace(found, pod_monitor=await observe_pod_monitor(cast(Cluster, self.kube), resource, cache))

    async def step(self) -> tuple[str, str]:
        """Degraded and its reason after one more pass."""
        self.now += POLL
        await self.reconciler.step("default", NAME, self.cache)
        conditions = self.kube.objects["TablestoreTunnel", NAME]["status"]["conditions"]
        (found,) = (item for item in conditions if item["type"] == "Degraded")
        return found["status"], found["reason"]


async def test_a_refusal_is_told_at_once_and_without_a_break_and_costs_no_writes() -> None:
    scene = Scene()
    assert await scene.step() == ("True", "PodMonitorFailed")
    scene.kube.writes.clear()

    for _ in range(int(2 * AGAIN_SECONDS / POLL) + 2):
        assert await scene.step() == ("True", "PodMonitorFailed")

    assert scene.kube.writes == []


async def test_it_ends_once_the_name_is_free() -> None:
    scene = Scene()
    await scene.step()
    del scene.kube.objects["PodMonitor", workers_name(NAME)]

    scene.now += AGAIN_SECONDS
    assert await scene.step() == ("False", "AsExpected")
    assert ("apply", "PodMonitor", workers_name(NAME)) in scene.kube.writes
