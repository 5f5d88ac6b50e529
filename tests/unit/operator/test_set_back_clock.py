"""The clock of the operator's node is set back: what is due stays due, and no duration begins anew or freezes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from ots_tunnel_operator.autoscale.history import Foreign, History
from ots_tunnel_operator.kube.cluster import Cluster
from ots_tunnel_operator.loop.reconcile import Reconciler
from ots_tunnel_operator.loop_cache import LoopCache, Trial
from ots_tunnel_operator.metrics import OperatorMetrics
from ots_tunnel_operator.names import ANNOTATION_OPERATOR, FINALIZER
from ots_tunnel_operator.observe.observer import Observer
from ots_tunnel_operator.world.pod import SparkRole
from ots_tunnel_operator.world.report import KeptReport
from ots_tunnel_operator.world.resource import Resource
from ots_tunnel_operator.world.service import Tunnel
from ots_tunnel_operator.world.world import Competitor, World
from tests.support.kube.kube_memory import KubeMemory
from tests.support.operator.objects import tunnel_object
from tests.support.operator.worlds import (
    NOW,
    SETTINGS,
    UID,
    channel,
    description,
    pod,
    recorded,
    report_channel,
    world,
)

NAME = "flights-copy"
BACK = 3600.0
LABELS = {"namespace": "default", "name": NAME}


class Late:
    """An observer of a worker that is late by some seconds."""

    def __init__(self) -> None:
        self.lag = 7

    async def observe(self, resource: Resource, cache: LoopCache, *, elder: Competitor | None, now: float) -> World:
        tunnel = Tunnel(description(channel("c1", consumed=now - self.lag)))
        late = pod("pod-1", report_channel("c1", caught_up=False, lag_seconds=self.lag))
        return replace(world(resource, tunnel=tunnel, pods=(late,)), now=now)


class Scene:
    """Passes over one object that this operator serves; the test is the clock."""

    def __init__(self) -> None:
        body: dict[str, Any] = tunnel_object()
        annotations = {ANNOTATION_OPERATOR: "ots/mine"}
        body["metadata"] |= {"uid": UID, "finalizers": [FINALIZER], "annotations": annotations}
        other = {"metadata": {"name": "other", "namespace": "ots", "uid": "u", "resourceVersion": "1"}, "spec": {}}
        self.kube = KubeMemory({("TablestoreTunnel", NAME): body | {"status": recorded()}, ("Lease", "other"): other})
        self.now, self.observed, self.metrics, self.cache = NOW, Late(), OperatorMetrics(), LoopCache()
        self.reconciler = Reconciler(
            cast(Cluster, self.kube),
            cast(Observer, self.observed),
            replace(SETTINGS, lease="ots/mine"),
            self.metrics,
            lambda resource: None,
            clock=lambda: self.now,
        )

    async def step(self, now: float) -> float:
        """One pass; the pause after it."""
        self.now = now
        return (await self.reconciler.step("default", NAME, self.cache)).delay

    @property
    def body(self) -> dict[str, Any]:
        return self.kube.objects["TablestoreTunnel", NAME]


async def test_figures_go_on() -> None:
    scene = Scene()
    await scene.step(NOW)
    assert scene.body["status"]["lag"]["seconds"] == 7

    scene.observed.lag = 800
    for number in range(2):
        await scene.step(NOW - BACK + number * SETTINGS.status_seconds)

    assert scene.body["status"]["lag"]["seconds"] == 780


async def test_the_next_pass_is_not_put_off() -> None:
    scene = Scene()
    scene.cache.tunnel, scene.cache.tunnel_time = Tunnel(description(channel("c1"))), NOW + BACK

    assert await scene.step(NOW) <= 1.05 * SETTINGS.poll_seconds


@pytest.mark.parametrize("back", [0.0, BACK])
def test_every_time_keeps_its_distance(back: float) -> None:
    report = pod("pod-1").report
    assert report is not None
    cache = LoopCache(time=NOW, tunnel=Tunnel(description(channel("c1"))), last_write=NOW - 1)
    cache.source.table_time = cache.sink.look_time = NOW - 2
    cache.reports = {"pod-1": KeptReport(report, NOW - 3)}
    cache.marks, cache.silent_since, cache.foreign_since = {"c1": ((), NOW - 4)}, {"p": NOW - 5}, {"x": NOW - 6}
    cache.posted, cache.observed_time = {("r", "m"): NOW - 7}, NOW - 8
    cache.absent_since, cache.failing_since = NOW - 9, NOW - 10
    cache.scaling = History(evaluated=NOW - 11, foreign=Foreign(NOW - 12, "kubectl"))
    cache.trial = Trial("template", NOW - 13, "refused")
    cache.none_runs_since = {SparkRole.COPY_DRIVER: NOW - 14}

    cache.keep_time(NOW - back)

    times = [cache.last_write, cache.source.table_time, cache.sink.look_time, cache.reports["pod-1"].time]
    times += [cache.marks["c1"][1], cache.silent_since["p"], cache.foreign_since["x"], cache.posted["r", "m"]]
    times += [time or 0.0 for time in (cache.observed_time, cache.absent_since, cache.failing_since)]
    assert cache.scaling.foreign is not None
    times += [cache.scaling.evaluated or 0.0, cache.scaling.foreign.time]
    times += [cache.trial.time, cache.none_runs_since[SparkRole.COPY_DRIVER]]
    assert [NOW - back - time for time in times] == [1, 2, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]
    assert (cache.tunnel is None) == bool(back)


async def test_an_object_that_another_operator_serves_has_no_figures_here_and_was_not_observed() -> None:
    scene = Scene()
    await scene.step(NOW)
    assert scene.metrics.registry.get_sample_value("ots_tunnel_lag_seconds", LABELS) == 7

    scene.body["metadata"]["annotations"] = {ANNOTATION_OPERATOR: "ots/other"}
    scene.metrics.tried("default", "another-object", 0.1)
    failing = scene.metrics.failing_seconds()
    await scene.step(NOW + 15)

    assert scene.metrics.registry.get_sample_value("ots_tunnel_lag_seconds", LABELS) is None
    assert scene.metrics.failing_seconds() >= failing > 0
