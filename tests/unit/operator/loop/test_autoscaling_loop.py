"""Passes over an object whose number of workers follows the load: what is written, in which order, and what is not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from ots_tunnel_operator.kube.cluster import Cluster
from ots_tunnel_operator.loop.reconcile import Reconciler
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.metrics import OperatorMetrics
from ots_tunnel_operator.names import ANNOTATION_DELETION_COST, ANNOTATION_OPERATOR, FINALIZER
from ots_tunnel_operator.observe.observer import Observer
from ots_tunnel_operator.world.resource import Resource
from ots_tunnel_operator.world.world import Competitor, Settling, World
from tests.support.kube.kube_memory import KubeMemory
from tests.support.operator.objects import tunnel_object
from tests.support.operator.scaled_worlds import scaled
from tests.support.operator.worlds import NOW, SETTINGS, UID, recorded

NAME = "flights-copy"


class Fleet:
    """An observer whose fleet is as large as the Deployment that was applied, and as busy as the test says."""

    def __init__(self, kube: KubeMemory) -> None:
        self.kube = kube
        self.lag, self.busy = 0, 50

    async def observe(self, resource: Resource, cache: LoopCache, *, elder: Competitor | None, now: float) -> World:
        applied = self.kube.objects.get(("Deployment", NAME))
        workers = 2 if applied is None else applied["spec"]["replicas"]
        found = scaled(workers=workers, lag=self.lag, busy=self.busy)
        pods = tuple(replace(pod, deletion_cost=self._cost(pod.name)) for pod in found.pods)
        calm = Settling(calm_seconds=60.0)
        return replace(found, resource=resource, now=now, scaling=cache.scaling, pods=pods, settling=calm)

    def _cost(self, name: str) -> str:
        """The deletion cost of a pod, which names the next one to go."""
        annotations = self.kube.objects.get(("Pod", name), {}).get("metadata", {}).get("annotations", {})
        return str(annotations.get(ANNOTATION_DELETION_COST, ""))


class Scene:
    """Passes every 15 s; the test is the clock."""

    def __init__(self, **autoscaling: Any) -> None:
        body = tunnel_object(replicas=2, autoscaling={"mode": "Auto"} | autoscaling)
        body["metadata"] |= {"uid": UID, "generation": 3, "finalizers": [FINALIZER]}
        body["metadata"]["annotations"] = {ANNOTATION_OPERATOR: "ots/mine"}
        self.kube = KubeMemory({("TablestoreTunnel", NAME): body | {"status": recorded()}})
        self.now, self.metrics = NOW, OperatorMetrics()
        self.fleet, self.cache = Fleet(self.kube), LoopCache()
        self.reconciler = Reconciler(
            cast(Cluster, self.kube),
            cast(Observer, self.fleet),
            replace(SETTINGS, lease="ots/mine"),
            self.metrics,
            lambda resource: None,
            clock=lambda: self.now,
        )

    async def passes(self, number: int) -> None:
        for _ in range(number):
            self.now += 15.0
            await self.reconciler.step("default", NAME, self.cache)

    @property
    def body(self) -> dict[str, Any]:
        return self.kube.objects["TablestoreTunnel", NAME]

    @property
    def replicas(self) -> int:
        found: int = self.kube.objects["Deployment", NAME]["spec"]["replicas"]
        return found

    def events(self) -> list[str]:
        return [f"{item['type']} {item['reason']}" for (kind, _), item in self.kube.objects.items() if kind == "Event"]


async def test_a_backlog_scales_the_deployment_and_not_the_spec() -> None:
    scene = Scene()
    scene.fleet.lag, scene.fleet.busy = 143, 96

    await scene.passes(6)

    assert scene.replicas == 4
    assert scene.body["spec"]["replicas"] == 2
    assert scene.body["status"]["autoscaling"]["lastDecision"]["reason"] == "Backlog"
    assert "Normal ScaledUp" in scene.events()


async def test_the_number_is_recorded_before_the_deployment_is_applied() -> None:
    scene = Scene()
    scene.fleet.lag, scene.fleet.busy = 143, 96
    await scene.passes(5)
    scene.kube.writes.clear()

    await scene.passes(1)

    kinds = [kind for _, kind, _ in scene.kube.writes if kind != "Event"]
    assert kinds.index("TablestoreTunnel") < kinds.index("Deployment")


async def test_an_operator_that_dies_between_the_two_carries_the_decision_out() -> None:
    scene = Scene()
    scene.fleet.lag, scene.fleet.busy = 143, 96
    await scene.passes(6)
    scene.kube.objects["Deployment", NAME]["spec"]["replicas"] = 2
    scene.kube.objects["Deployment", NAME]["metadata"].pop("managedFields")
    scene.cache = LoopCache()

    await scene.passes(1)

    assert scene.replicas == 4


async def test_an_idle_object_is_not_written_also_by_a_restarted_operator() -> None:
    scene = Scene()
    scene.fleet.busy = 0
    await scene.passes(120)
    assert scene.replicas == 1
    scene.kube.writes.clear()

    await scene.passes(60)
    scene.cache = LoopCache()
    await scene.passes(60)

    assert scene.kube.writes == []


async def test_another_client_that_scales_the_object_is_told() -> None:
    scene = Scene()
    await scene.passes(4)
    scene.body["spec"]["replicas"] = 9
    scene.body["metadata"]["generation"] = 4

    await scene.passes(2)

    assert scene.replicas == 2
    assert scene.body["status"]["autoscaling"]["limitedBy"] == "ForeignWriter"
    assert scene.events().count("Warning ReplicasManagedByAutoscaler") == 1


async def test_after_auto_the_number_stays_until_it_is_edited() -> None:
    scene = Scene()
    scene.fleet.lag, scene.fleet.busy = 143, 96
    await scene.passes(6)
    scene.body["spec"]["autoscaling"] = {"mode": "Disabled"}
    scene.body["metadata"]["generation"] = 4
    await scene.passes(4)
    assert scene.replicas == 4

    scene.body["spec"]["replicas"] = 3
    scene.body["metadata"]["generation"] = 5
    await scene.passes(2)  # the first one names the worker that goes

    assert scene.replicas == 3
    assert scene.body["status"]["autoscaling"] == {"desiredReplicas": 3}


async def test_the_metrics_have_the_recommendation_and_the_pace() -> None:
    scene = Scene(mode="Advise")
    scene.fleet.lag, scene.fleet.busy = 143, 96
    place = {"namespace": "default", "name": NAME}

    await scene.passes(6)

    values = {
        name: scene.metrics.registry.get_sample_value(f"ots_tunnel_{name}", place)
        for name in ("recommended_workers", "useful_workers", "wanted_workers", "catchup_ratio")
    }
    assert values == {"recommended_workers": 4, "useful_workers": 8, "wanted_workers": 2, "catchup_ratio": 1.0}
