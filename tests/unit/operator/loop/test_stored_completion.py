"""Completion is stored before the workers are removed, who alone know what they have refused."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest

from ots_tunnel.model import ChannelStatus, Stage, TunnelType
from ots_tunnel_operator.kube.cluster import Cluster
from ots_tunnel_operator.kube.errors import KubeError
from ots_tunnel_operator.kube.kinds import Kind, Manifest
from ots_tunnel_operator.loop.reconcile import Reconciler
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.metrics import OperatorMetrics
from ots_tunnel_operator.names import FINALIZER
from ots_tunnel_operator.observe.observer import Observer
from ots_tunnel_operator.world.resource import Resource
from ots_tunnel_operator.world.service import Tunnel
from ots_tunnel_operator.world.world import Competitor, World
from tests.support.kube.kube_memory import KubeMemory
from tests.support.operator.objects import tunnel_object
from tests.support.operator.worlds import NOW, SETTINGS, UID, base, deployment, description, pod, recorded, world

NAME = "flights-copy"
ENDED = description(
    *(base(name, ChannelStatus.TERMINATED) for name in ("b1", "b2")), kind=TunnelType.BaseData, stage=Stage.BASE
)


class LateStatuses(KubeMemory):
    """Refuses the writes of a status at first, and keeps the numbers of workers that it is told."""

    workers: list[int]
    statuses: list[Manifest]
    is_refusing = True

    async def patch(self, kind: Kind, namespace: str, name: str, change: Manifest, subresource: str = "") -> Manifest:
        if subresource == "status" and self.is_refusing:
            raise KubeError(500, "InternalError", "etcd has another leader")
        if subresource == "status":
            self.statuses.append(change["status"])
        return await super().patch(kind, namespace, name, change, subresource)

    async def apply(self, manifest: Manifest) -> Manifest:
        if manifest["kind"] == "Deployment":
            self.workers.append(manifest["spec"]["replicas"])
        return await super().apply(manifest)


class AtTheEnd:
    """Sees two workers of a copy whose channels have all ended; one of them has not answered for long."""

    def __init__(self, workers: int) -> None:
        self._workers = workers

    async def observe(self, resource: Resource, cache: LoopCache, *, elder: Competitor | None, now: float) -> World:
        pods = (pod("pod-1"), replace(pod("pod-2"), report=None))
        found = world(
            resource, tunnel=Tunnel(ENDED, same_since=NOW - 100), pods=pods, children=deployment(self._workers)
        )
        return replace(found, now=now)


@pytest.mark.parametrize("workers", [2, 0], ids=["removed afterwards", "removed before"])
async def test_workers_stay_until_their_end_is_stored(workers: int) -> None:
    body = tunnel_object(replicas=2, source__tunnel__type="BaseData", delivery__onPermanentError="Skip")
    body["metadata"] |= {"uid": UID, "finalizers": [FINALIZER], "generation": 3}
    kube = LateStatuses({("TablestoreTunnel", NAME): body | {"status": recorded()}})
    kube.workers, kube.statuses = [], []
    reconciler = Reconciler(
        cast(Cluster, kube),
        cast(Observer, AtTheEnd(workers)),
        SETTINGS,
        OperatorMetrics(),
        lambda resource: None,
        clock=lambda: NOW,
    )

    await reconciler.step("default", NAME, LoopCache())
    assert kube.workers == []

    kube.is_refusing = False
    await reconciler.step("default", NAME, LoopCache())
    first = kube.statuses[0]
    assert {item["type"]: item["status"] for item in first["conditions"]}["Completed"] == "True"
    assert first["refused"]["unknownWorkers"] == 1
    assert kube.objects["TablestoreTunnel", NAME]["status"]["refused"]["unknownWorkers"] == 1
    assert kube.workers == [0]
