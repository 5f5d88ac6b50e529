"""Consumers end before the tunnel and the object go; workers that are to outlive them do not."""

from __future__ import annotations

import contextlib
from typing import Any, cast

import pytest

from ots_tunnel_operator import names
from ots_tunnel_operator.deletion.obstacles import Draining, NotYet
from ots_tunnel_operator.deletion.policy import Policy
from ots_tunnel_operator.deletion.remains import Remains
from ots_tunnel_operator.kube.client import Kube
from ots_tunnel_operator.kube.errors import KubeError
from ots_tunnel_operator.kube.kinds import DEPLOYMENT, Kind, Manifest
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.manifests.worker_deployment import deployment
from ots_tunnel_operator.manifests.worker_document import worker_config
from tests.support.kube.kube_memory import KubeMemory
from tests.support.operator.deletions import (
    NAME,
    OWNER,
    PATIENT,
    Clock,
    Service,
    deleted_object,
    events,
    finish,
    messages,
)
from tests.support.operator.worlds import NOW, TUNNEL_ID, recorded, resource


def deployed(kube: KubeMemory, **metadata: Any) -> None:
    """Two workers, of which one has not ended."""
    owned = {"name": NAME, "namespace": "default", "uid": "d", "ownerReferences": OWNER}
    kube.objects["Deployment", NAME] = {"metadata": owned | metadata, "spec": {"replicas": 2}}
    kube.objects["Pod", "pod-1"] = {"metadata": {"name": "pod-1"}, "status": {"phase": "Running"}}


async def test_retain_lets_the_workers_end_before_the_object_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    kube, clock = deleted_object("Retain"), Clock()
    kube.objects["TablestoreTunnel", NAME]["metadata"]["finalizers"] = [names.FINALIZER]
    deployed(kube)
    seen: list[tuple[int, list[str]]] = []
    listed = kube.list

    async def drain(kind: Kind, namespace: str, selector: str) -> list[Manifest]:
        held = kube.objects["TablestoreTunnel", NAME]["metadata"]["finalizers"]
        seen.append((kube.objects["Deployment", NAME]["spec"]["replicas"], list(held)))
        if len(seen) == 2:
            kube.objects["Pod", "pod-1"]["status"]["phase"] = "Succeeded"
        return await listed(kind, namespace, selector)

    monkeypatch.setattr(kube, "list", drain)
    await finish(kube, Service(), PATIENT, clock)

    assert seen == [(0, [names.FINALIZER])] * 2
    assert kube.objects["TablestoreTunnel", NAME]["metadata"]["finalizers"] == []
    assert events(kube) == []
    ready = next(
        item for item in kube.objects["TablestoreTunnel", NAME]["status"]["conditions"] if item["type"] == "Ready"
    )
    assert ready["message"].startswith("the object is being deleted: worker pod-1 is draining; see ")


async def test_a_worker_that_never_ends_holds_no_object_for_longer_than_its_grace_period() -> None:
    kube, clock = deleted_object("Retain"), Clock()
    deployed(kube)

    await finish(kube, Service(), PATIENT, clock)

    assert 120 < clock.now - NOW < 600
    assert events(kube) == ["DeletionDelayed"]
    assert messages(kube)["DeletionDelayed"].startswith(
        "the object is released without waiting any longer (worker pod-1 is draining); tunnel"
    )


@pytest.mark.parametrize("policy", ["Retain", "Delete"])
async def test_a_long_grace_period_is_waited_for(policy: str) -> None:
    kube, clock = deleted_object(policy), Clock()
    kube.objects["TablestoreTunnel", NAME]["spec"]["workers"] = {"terminationGracePeriodSeconds": 3600}
    deployed(kube)

    await finish(kube, Service(), PATIENT, clock)

    assert 3660 < clock.now - NOW < 4000


async def test_the_tunnel_has_its_time_after_workers_with_a_long_one(monkeypatch: pytest.MonkeyPatch) -> None:
    kube, clock, service = deleted_object(), Clock(), Service()
    kube.objects["TablestoreTunnel", NAME]["spec"]["workers"] = {"terminationGracePeriodSeconds": 3600}
    deployed(kube)
    refusals, listed = iter([KubeError(500, "InternalError", "try again")]), kube.list

    async def drain(kind: Kind, namespace: str, selector: str) -> list[Manifest]:
        if clock.now - NOW > 3000:
            kube.objects["Pod", "pod-1"]["status"]["phase"] = "Succeeded"
            for refusal in refusals:
                raise refusal
        return await listed(kind, namespace, selector)

    monkeypatch.setattr(kube, "list", drain)
    await finish(kube, service, PATIENT, clock)

    assert service.deleted == [NAME]


async def test_a_forced_deletion_waits_for_no_worker() -> None:
    kube = deleted_object("Retain", forced=True)
    deployed(kube)

    await finish(kube, Service(), PATIENT)

    assert kube.objects["Deployment", NAME]["spec"]["replicas"] == 0
    assert events(kube) == ["DeletionDelayed"]


@pytest.mark.parametrize("how", ["is to be orphaned", "was orphaned"])
async def test_workers_that_are_to_outlive_their_object_go_on(how: str) -> None:
    kube = deleted_object("Retain")
    deployed(kube, **({"ownerReferences": []} if how == "was orphaned" else {}))
    kube.objects["TablestoreTunnel", NAME]["metadata"]["finalizers"] = ["orphan"] if how == "is to be orphaned" else []

    await finish(kube, Service(), PATIENT)

    assert kube.objects["Deployment", NAME]["spec"]["replicas"] == 2
    assert events(kube) == []


@pytest.mark.parametrize(
    ("refusal", "delayed"), [(KubeError(404, "NotFound", "gone"), False), (KubeError(403, "Forbidden", "no"), True)]
)
async def test_a_deployment_that_goes_meanwhile_is_nothing_to_tell(
    refusal: KubeError, delayed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    kube = deleted_object("Retain")
    deployed(kube)
    del kube.objects["Pod", "pod-1"]
    patch = kube.patch

    async def refuse(kind: Kind, namespace: str, name: str, change: Manifest, subresource: str = "") -> Manifest:
        if kind is DEPLOYMENT:
            raise refusal
        return await patch(kind, namespace, name, change, subresource)

    monkeypatch.setattr(kube, "patch", refuse)
    await finish(kube, Service(), PATIENT, Clock())

    assert ("DeletionDelayed" in events(kube)) == delayed


async def test_workers_end_before_the_tunnel_goes() -> None:
    kube, service = deleted_object(), Service()
    kube.objects["Deployment", NAME] = {"metadata": {"ownerReferences": OWNER}, "spec": {"replicas": 2}}
    kube.objects["Pod", "pod-1"] = {"metadata": {"name": "pod-1"}, "status": {"phase": "Running"}}

    await finish(kube, service, clock=Clock())

    assert kube.objects["Deployment", NAME]["spec"]["replicas"] == 0
    assert service.deleted == []
    assert events(kube) == ["TunnelLeftBehind"]

    kube.objects["Pod", "pod-1"]["status"]["phase"] = "Succeeded"
    await finish(kube, service)
    assert service.deleted == [NAME]


async def test_workers_whose_deployment_has_lost_its_owner_end_as_well() -> None:
    kube, service = deleted_object(), Service()
    of = resource(recorded()).object
    manifest = deployment(of, worker_config(of, TUNNEL_ID), "worker:1", 2)
    del manifest["metadata"]["ownerReferences"]
    await kube.apply(manifest)

    await finish(kube, service)

    assert kube.objects["Deployment", NAME]["spec"]["replicas"] == 0
    assert service.deleted == [NAME]


async def test_a_deployment_of_somebody_else_is_not_scaled_by_a_deletion() -> None:
    kube = deleted_object()
    metadata = {"name": NAME, "labels": names.labels(NAME, names.ROLE_WORKER)}
    kube.objects["Deployment", NAME] = {"metadata": metadata, "spec": {"replicas": 2}}

    await finish(kube, Service())

    assert kube.objects["Deployment", NAME]["spec"]["replicas"] == 2


async def test_pods_that_outlived_their_deployment_are_waited_for() -> None:
    kube, service = deleted_object(), Service()
    kube.objects["Pod", "pod-1"] = {"metadata": {"name": "pod-1"}, "status": {"phase": "Running"}}

    await finish(kube, service, clock=Clock())

    assert service.deleted == []
    assert "worker pod-1 is draining" in messages(kube)["TunnelLeftBehind"]


class Counting(KubeMemory):
    """Counts reads."""

    reads = 0

    async def get(self, kind: Kind, namespace: str, name: str) -> Manifest | None:
        self.reads += 1
        return await super().get(kind, namespace, name)

    async def list(self, kind: Kind, namespace: str, selector: str) -> list[Manifest]:
        self.reads += 1
        return await super().list(kind, namespace, selector)


@pytest.mark.parametrize(("policy", "raised"), [("Retain", Draining), ("Delete", NotYet)])
async def test_workers_that_drain_are_waited_for_by_what_watches_keep(policy: str, raised: type[NotYet]) -> None:
    """A namespace with a thousand objects may be deleted, and each of them looks every two seconds."""
    kube, watched = Counting(), deleted_object(policy)
    told = {"metadata": {"name": NAME, "ownerReferences": OWNER}, "spec": {"replicas": 0}}
    watched.objects["Deployment", NAME] = told
    watched.objects["Pod", "pod-1"] = {"metadata": {"name": "pod-1"}, "status": {"phase": "Running"}}
    policy_of = Policy(cast(Kube, kube), PATIENT, lambda: NOW, cast(Kube, watched))
    remains = Remains(watched.objects["TablestoreTunnel", NAME])

    with pytest.raises(raised, match="worker pod-1 is draining"):
        await policy_of.carry_out(remains, LoopCache())
    assert kube.reads == 0

    # who has not been told, and who has ended, is a matter of the API server
    ended = {**watched.objects}
    del ended["Pod", "pod-1"]
    for objects in (
        watched.objects | {("Deployment", NAME): told | {"spec": {"replicas": 1}}},
        watched.objects | {("Deployment", NAME): told | {"metadata": {"name": NAME}}},
        ended,
    ):
        watched.objects, kube.reads = objects, 0
        with contextlib.suppress(NotYet):
            await policy_of.carry_out(remains, LoopCache())
        assert kube.reads
