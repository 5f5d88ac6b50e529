"""Deletion: consumers first, then the tunnel that this object created; it always ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ots_tunnel.errors import ConnectError, TunnelError
from ots_tunnel.model import TunnelInfo
from ots_tunnel_operator import names
from ots_tunnel_operator.deletion import Deleter
from ots_tunnel_operator.instance import Instance
from ots_tunnel_operator.kube.client import Kube
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.metrics import OperatorMetrics
from ots_tunnel_operator.settings import Settings
from ots_tunnel_operator.times import timestamp
from tests.support.kube.kube_memory import KubeMemory
from tests.support.operator.objects import EMULATOR, tunnel_object
from tests.support.operator.worlds import KEYS, NOW, TUNNEL_ID, UID, description, recorded

NAME = "flights-copy"
#: The deletion's time is over after one attempt.
AT_ONCE = Settings(wait_seconds=0.0, delete_seconds=-1.0)
PATIENT = Settings(wait_seconds=0.0)
OWNER = [{"kind": "TablestoreTunnel", "name": NAME, "uid": UID}]


@dataclass
class Service:
    """The tunnels of one instance."""

    tunnels: list[TunnelInfo] = field(default_factory=lambda: [description().tunnel])
    error: TunnelError | None = None
    deleted: list[str] = field(default_factory=list)

    async def list_tunnels(self, table: str) -> list[TunnelInfo]:
        if self.error is not None:
            raise self.error
        return self.tunnels

    async def delete_tunnel(self, table: str, name: str) -> None:
        self.deleted.append(name)


def deleted_object(policy: str = "Delete", *, status: dict[str, Any] | None = None, **annotations: str) -> KubeMemory:
    body = tunnel_object(deletionPolicy=policy)
    marks = {names.ANNOTATION_FORCE_DELETE: "true"} if annotations else {}
    body["metadata"] |= {"uid": UID, "deletionTimestamp": timestamp(NOW), "annotations": marks}
    return KubeMemory({("TablestoreTunnel", NAME): body | {"status": status or recorded()}})


async def finish(kube: KubeMemory, service: Service, settings: Settings = AT_ONCE) -> None:
    cache = LoopCache()
    cache.source.credentials = KEYS
    instance = SimpleNamespace(endpoint=EMULATOR, instance="demo", credentials=KEYS, tunnels=service)
    cache.source.instance = cast(Instance, instance)
    deleter = Deleter(cast(Kube, kube), settings, OperatorMetrics(), clock=lambda: NOW)
    await deleter.finish("default", NAME, cache)


def events(kube: KubeMemory) -> list[str]:
    return [found["reason"] for (kind, _), found in kube.objects.items() if kind == "Event"]


async def test_retain_keeps_the_tunnel() -> None:
    kube, service = deleted_object("Retain"), Service()

    await finish(kube, service)

    assert (kube.writes, service.deleted) == ([], [])


async def test_delete_removes_the_tunnel_that_this_object_created() -> None:
    service = Service()

    await finish(deleted_object(), service)

    assert service.deleted == [NAME]


@pytest.mark.parametrize(
    "tunnel",
    [{"id": TUNNEL_ID, "createdByOperator": False}, {"id": "another", "createdByOperator": True}],
    ids=["adopted", "replaced since"],
)
async def test_a_tunnel_of_another_origin_stays(tunnel: dict[str, Any]) -> None:
    service = Service()

    await finish(deleted_object(status=recorded(tunnel=tunnel)), service)

    assert service.deleted == []


async def test_an_intent_alone_proves_the_creation() -> None:
    service = Service()

    await finish(deleted_object(status=recorded(tunnel={"createIntentTime": timestamp(NOW)})), service)

    assert service.deleted == [NAME]


async def test_workers_end_before_the_tunnel_goes() -> None:
    kube, service = deleted_object(), Service()
    kube.objects["Deployment", NAME] = {"metadata": {"ownerReferences": OWNER}, "spec": {"replicas": 2}}
    kube.objects["Pod", "pod-1"] = {"metadata": {"name": "pod-1"}, "status": {"phase": "Running"}}

    await finish(kube, service)

    assert kube.objects["Deployment", NAME]["spec"]["replicas"] == 0
    assert service.deleted == []
    assert events(kube) == ["TunnelLeftBehind"]

    kube.objects["Pod", "pod-1"]["status"]["phase"] = "Succeeded"
    await finish(kube, service)
    assert service.deleted == [NAME]


async def test_a_snapshot_ends_before_the_tunnel_goes() -> None:
    kube, service = deleted_object(), Service()
    kube.objects["SparkApplication", f"{NAME}-snapshot"] = {"metadata": {"ownerReferences": OWNER}}

    await finish(kube, service, PATIENT)

    assert kube.writes == [("delete", "SparkApplication", f"{NAME}-snapshot")]
    assert service.deleted == [NAME]


@pytest.mark.parametrize(("settings", "forced"), [(AT_ONCE, False), (PATIENT, True)], ids=["too late", "forced"])
async def test_an_object_is_released_with_a_warning_where_the_service_cannot_be_reached(
    settings: Settings, forced: bool
) -> None:
    kube = deleted_object(**({"force": "true"} if forced else {}))

    await finish(kube, Service(error=ConnectError("refused")), settings)

    (event,) = (found for (kind, _), found in kube.objects.items() if kind == "Event")
    assert (event["type"], event["reason"]) == ("Warning", "TunnelLeftBehind")
    assert "spec.source.endpoint" in event["message"]
    assert "delete it by hand" in event["message"]


async def test_an_object_that_this_release_cannot_read_is_released() -> None:
    kube, service = deleted_object(), Service()
    kube.objects["TablestoreTunnel", NAME]["spec"] = {"source": 1}

    await finish(kube, service, PATIENT)

    assert (kube.writes, service.deleted) == ([], [])
