"""The release of a deleted object: its finalizer goes, however often the API server refuses, and nothing else does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from ots_tunnel_operator import names
from ots_tunnel_operator.deletion.deleter import Deleter
from ots_tunnel_operator.kube.client import Kube
from ots_tunnel_operator.kube.errors import KindMissing, KubeError
from ots_tunnel_operator.kube.kinds import Kind, Manifest
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.metrics import OperatorMetrics
from ots_tunnel_operator.times import timestamp
from tests.support.kube.kube_memory import KubeMemory
from tests.support.operator.objects import tunnel_object
from tests.support.operator.worlds import NOW, SETTINGS, UID, recorded

NAME = "flights-copy"
KEY = "TablestoreTunnel", NAME
OTHER = "example.com/theirs"
QUICK = replace(SETTINGS, backoff_seconds=0.001, backoff_max_seconds=0.001, wait_seconds=0.001)
CONFLICT = KubeError(409, "Conflict", "the object has been modified")


@dataclass
class Server(KubeMemory):
    """Removes a deleted object with its last finalizer, and refuses the first patches of it; takes any status."""

    refusals: list[KubeError] = field(default_factory=list)
    between: Callable[[], None] = lambda: None
    """Called with every refusal."""
    patches: list[Manifest] = field(default_factory=list)
    while_status: Callable[[], None] = lambda: None
    """Called with every write of a status."""

    async def patch(self, kind: Kind, namespace: str, name: str, change: Manifest, subresource: str = "") -> Manifest:
        assert kind.kind == KEY[0]
        if subresource:
            self.while_status()
            return {"metadata": dict(self.metadata)} if KEY in self.objects else {}
        self.patches.append(change)
        if self.refusals:
            refusal = self.refusals.pop(0)
            self.between()
            raise refusal
        if KEY not in self.objects:
            raise KubeError(404, "NotFound", "not found")
        if change["metadata"]["resourceVersion"] != self.metadata["resourceVersion"]:
            raise CONFLICT
        answer = await super().patch(kind, namespace, name, change, subresource)
        if not answer["metadata"]["finalizers"]:
            del self.objects[KEY]
        return answer

    @property
    def metadata(self) -> dict[str, Any]:
        return cast(dict[str, Any], self.objects[KEY]["metadata"])


def server(*refusals: KubeError, finalizers: Iterable[str] = (names.FINALIZER,), policy: str = "Retain") -> Server:
    body = tunnel_object(NAME, deletionPolicy=policy) | {"status": recorded()}
    body["metadata"] |= {
        "uid": UID,
        "deletionTimestamp": timestamp(NOW),
        "resourceVersion": "7",
        "finalizers": list(finalizers),
    }
    return Server({KEY: body}, refusals=list(refusals))


async def finish(kube: Server, cache: LoopCache | None = None) -> None:
    deleter = Deleter(cast(Kube, kube), QUICK, OperatorMetrics(), clock=lambda: NOW)
    await deleter.finish("default", NAME, cache or LoopCache(uid=UID))


async def test_the_object_goes_with_its_finalizer() -> None:
    kube = server()

    await finish(kube)

    assert kube.objects == {}
    assert kube.patches == [{"metadata": {"resourceVersion": "7", "finalizers": []}}]


@pytest.mark.parametrize(
    "error", [CONFLICT, KubeError(500, "InternalError", "etcd"), KubeError(0, "Lost", "no answer")]
)
async def test_the_finalizer_goes_however_often_that_is_refused(error: KubeError) -> None:
    kube = server(*[error] * 20)

    await finish(kube)

    assert KEY not in kube.objects


async def test_finalizers_of_others_stay() -> None:
    kube = server(CONFLICT, finalizers=[OTHER, names.FINALIZER])

    await finish(kube)

    assert kube.metadata["finalizers"] == [OTHER]


async def test_an_object_without_our_finalizer_is_not_written() -> None:
    kube = server(finalizers=[OTHER])

    await finish(kube)

    assert kube.patches == []


async def test_each_try_relies_on_the_version_that_was_read_last() -> None:
    kube = server(CONFLICT, CONFLICT)

    def edit() -> None:
        kube.metadata["resourceVersion"] = str(int(kube.metadata["resourceVersion"]) + 10)

    kube.between = edit

    await finish(kube)

    assert [patch["metadata"]["resourceVersion"] for patch in kube.patches] == ["7", "17", "27"]
    assert kube.objects == {}


async def test_a_release_that_arrived_although_its_answer_was_lost_ends_the_deletion() -> None:
    kube = server(KubeError(0, "TimeoutError", "no answer"))
    kube.between = kube.objects.clear

    await finish(kube)

    assert len(kube.patches) == 1


async def test_an_object_that_vanishes_before_its_release_ends_the_deletion() -> None:
    kube = server(KubeError(404, "NotFound", "not found"))
    kube.between = kube.objects.clear

    await finish(kube)

    assert len(kube.patches) == 1


async def test_a_successor_of_the_name_keeps_its_finalizer() -> None:
    kube, cache = server(CONFLICT), LoopCache(uid=UID)

    def replace_object() -> None:
        kube.metadata["uid"] = "successor"
        cache.forgotten = True

    kube.between = replace_object

    await finish(kube, cache)

    assert kube.metadata["finalizers"] == [names.FINALIZER]
    assert len(kube.patches) == 1


async def test_an_object_that_went_with_its_definition_ends_the_deletion() -> None:
    kube, cache = server(KindMissing(404, "404", "page not found")), LoopCache(uid=UID)

    def tell() -> None:
        cache.forgotten = True

    kube.between = tell

    await finish(kube, cache)

    assert len(kube.patches) == 1


async def test_a_policy_that_changes_before_the_release_is_carried_out() -> None:
    kube = server(CONFLICT)
    tunnels = {"tunnel": {"id": "an-adopted-one", "createdByOperator": False}}
    kube.objects[KEY]["status"] = tunnels
    record = {"metadata": {"name": f"{NAME}-snapshot", "labels": names.labels(NAME, names.ROLE_SNAPSHOT)}}
    kube.objects["ConfigMap", f"{NAME}-snapshot"] = record

    def edit() -> None:
        kube.objects[KEY]["spec"]["deletionPolicy"] = "Delete"

    kube.between = edit

    await finish(kube)

    assert kube.objects == {}


async def test_a_policy_that_changes_while_another_finalizer_holds_the_object_is_carried_out() -> None:
    kube = server(finalizers=[OTHER, names.FINALIZER])
    kube.objects[KEY]["status"] = {"tunnel": {"id": "an-adopted-one", "createdByOperator": False}}
    record = {"metadata": {"name": f"{NAME}-snapshot", "labels": names.labels(NAME, names.ROLE_SNAPSHOT)}}
    kube.objects["ConfigMap", f"{NAME}-snapshot"] = record

    def edit() -> None:
        kube.objects[KEY]["spec"]["deletionPolicy"] = "Delete"

    kube.while_status = edit

    await finish(kube)

    assert kube.metadata["finalizers"] == [OTHER]
    assert set(kube.objects) == {KEY}


async def test_a_release_that_is_refused_is_told_by_an_event() -> None:
    kube = server(*[KubeError(403, "Forbidden", "may not patch")] * 3)

    await finish(kube)

    (told,) = [found for (kind, _), found in kube.objects.items() if kind == "Event"]
    assert told["reason"] == "DeletionDelayed"
    assert "may not patch" in told["message"]
    assert "finalizer" in told["message"]
