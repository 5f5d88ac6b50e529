"""Pods of the model: started, probed, restarted, drained and killed."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.simulation.apiserver.api import APPLY, Api, Request
from tests.simulation.apiserver.store import Manifest, Store
from tests.simulation.cluster.controllers import Controllers
from tests.simulation.cluster.deployments import Deployments
from tests.simulation.cluster.kubelet import Kubelet

PATH = "/apis/apps/v1/namespaces/default/deployments/workers"


@dataclass
class Program:
    """A process that does nothing until it is told to end, or ends by itself."""

    pod: Manifest
    seconds_to_end: float = 5.0
    is_ready: bool = True
    is_live: bool = True
    message: str = "why"
    code: asyncio.Future[int] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    signals: list[str] = field(default_factory=list)

    async def wait(self) -> int:
        return await asyncio.shield(self.code)

    def terminate(self) -> None:
        self.signals.append("TERM")
        asyncio.get_running_loop().call_later(self.seconds_to_end, self.end, 0)

    def kill(self) -> None:
        self.signals.append("KILL")
        self.end(137)

    def end(self, code: int) -> None:
        if not self.code.done():
            self.code.set_result(code)


@dataclass
class Cluster:
    api: Api
    kubelet: Kubelet = field(init=False)
    programs: list[Program] = field(default_factory=list)

    def apply(self, replicas: int, image: str = "worker:1") -> None:
        labels = {"app": "workers"}
        container = {"name": "worker", "image": image}
        pod = {"containers": [container], "terminationGracePeriodSeconds": 60}
        template = {"metadata": {"labels": labels}, "spec": pod}
        spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "minReadySeconds": 30, "template": template}
        manifest = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "workers"}, "spec": spec}
        self.api.call(Request("PATCH", PATH, manifest, {"fieldManager": "test", "force": "true"}, APPLY))

    def pods(self) -> list[Manifest]:
        return list(self.api.store.all("Pod"))

    def status(self) -> dict[str, Any]:
        return dict(self.api.call(Request("GET", PATH)).get("status") or {})


@asynccontextmanager
async def running() -> AsyncIterator[Cluster]:
    loop, numbers = asyncio.get_running_loop(), itertools.count()

    def clock() -> float:
        return 1_700_000_000.0 + loop.time()

    api = Api(Store(), clock, lambda: f"uid-{next(numbers)}")
    cluster = Cluster(api)

    def start(pod: Manifest, address: str) -> Program:
        cluster.programs.append(Program(pod))
        return cluster.programs[-1]

    kubelet = cluster.kubelet = Kubelet(api, clock, start, lambda: 2.0)
    controllers = Controllers(api, Deployments(api, clock, lambda: f"{next(numbers):05}"), lambda: 0.1)
    task = asyncio.create_task(controllers.run())
    try:
        yield cluster
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await kubelet.close()


@pytest.mark.looptime
async def test_a_deployment_runs_its_pods() -> None:
    async with running() as cluster:
        cluster.apply(3)
        await asyncio.sleep(10)
        assert cluster.status()["readyReplicas"] == 3
        assert "availableReplicas" not in cluster.status()
        await asyncio.sleep(40)
        assert cluster.status()["availableReplicas"] == 3
        assert len({pod["status"]["podIP"] for pod in cluster.pods()}) == 3


@pytest.mark.looptime
async def test_a_pod_that_ends_is_started_again_after_growing_pauses() -> None:
    async with running() as cluster:
        cluster.apply(1)
        await asyncio.sleep(10)
        cluster.programs[0].end(6)
        await asyncio.sleep(5)
        (container,) = cluster.pods()[0]["status"]["containerStatuses"]
        assert container["state"] == {"waiting": {"reason": "CrashLoopBackOff"}}
        ended = container["lastState"]["terminated"]
        assert (ended["exitCode"], ended["message"]) == (6, "why")
        await asyncio.sleep(10)
        assert len(cluster.programs) == 2
        cluster.programs[1].end(6)
        await asyncio.sleep(15)
        assert len(cluster.programs) == 2
        await asyncio.sleep(10)
        assert len(cluster.programs) == 3


@pytest.mark.looptime
async def test_a_pod_whose_image_nobody_has_waits_and_says_so_in_turns() -> None:
    async with running() as cluster:
        cluster.kubelet.unfetchable.add("worker:2")
        cluster.apply(1, "worker:2")
        seen = []
        for _ in range(12):
            await asyncio.sleep(3)
            (container,) = cluster.pods()[0]["status"]["containerStatuses"]
            seen.append(container["state"]["waiting"]["reason"])
        assert set(seen[1:]) == {"ErrImagePull", "ImagePullBackOff"}
        cluster.kubelet.unfetchable.clear()
        await asyncio.sleep(60)
        assert cluster.status()["readyReplicas"] == 1
        assert "startedAt" in cluster.pods()[0]["status"]["containerStatuses"][0]["state"]["running"]


@pytest.mark.looptime
async def test_a_deleted_pod_drains_and_a_hanging_one_is_killed_after_its_grace_period() -> None:
    async with running() as cluster:
        cluster.apply(2)
        await asyncio.sleep(10)
        cluster.programs[1].seconds_to_end = 1000
        cluster.apply(0)
        await asyncio.sleep(20)
        assert len(cluster.pods()) == 1
        await asyncio.sleep(50)
        assert cluster.pods() == []
        assert cluster.programs[1].signals[:2] == ["TERM", "KILL"]


@pytest.mark.looptime
async def test_a_rollout_replaces_pods_one_by_one() -> None:
    async with running() as cluster:
        cluster.apply(2)
        await asyncio.sleep(60)
        cluster.apply(2, "worker:2")
        for _ in range(40):
            await asyncio.sleep(5)
            assert cluster.status()["availableReplicas"] >= 2
        images = [program.pod["spec"]["containers"][0]["image"] for program in cluster.programs]
        assert images == ["worker:1"] * 2 + ["worker:2"] * 2
        assert cluster.status()["updatedReplicas"] == 2


@pytest.mark.looptime
async def test_pods_of_a_deleted_deployment_are_collected() -> None:
    async with running() as cluster:
        cluster.apply(1)
        await asyncio.sleep(10)
        cluster.api.call(Request("DELETE", PATH))
        await asyncio.sleep(20)
        assert cluster.pods() == []
        assert cluster.programs[0].signals[0] == "TERM"
