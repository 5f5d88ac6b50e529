"""Which tunnels are deleted, and what is said of one that is left behind."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.errors import ConnectError
from ots_tunnel.protocol.http.message import HttpResponse
from ots_tunnel.transport import Transport
from ots_tunnel_operator import names
from ots_tunnel_operator.deletion.deleter import Deleter
from ots_tunnel_operator.instance import Instance
from ots_tunnel_operator.kube.client import Kube
from ots_tunnel_operator.kube.errors import KubeError
from ots_tunnel_operator.kube.kinds import Kind, Manifest
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.metrics import OperatorMetrics
from ots_tunnel_operator.settings import Settings
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world.world import Competitor
from tests.support.kube.kube_memory import KubeMemory
from tests.support.operator.deletions import (
    AT_ONCE,
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
from tests.support.operator.objects import EMULATOR
from tests.support.operator.worlds import KEYS, NOW, TUNNEL_ID, UID, recorded

ELDER = Competitor("older", "shop", NOW - 2000, "f")


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


async def test_a_tunnel_that_an_elder_object_consumes_stays() -> None:
    kube, service = deleted_object(), Service()

    await finish(kube, service, PATIENT, elder=ELDER)

    assert (service.deleted, events(kube)) == ([], ["TunnelLeftBehind"])
    assert "because the elder object shop/older consumes it" in messages(kube)["TunnelLeftBehind"]


async def test_no_event_advises_to_delete_the_tunnel_of_an_elder_object_where_a_worker_does_not_end() -> None:
    kube = deleted_object()
    pod = {"metadata": {"name": "p", "labels": names.worker_selector(NAME)}, "status": {"phase": "Running"}}
    kube.objects["Pod", "p"] = pod

    await finish(kube, Service(), PATIENT, Clock(), elder=ELDER)

    assert messages(kube)["DeletionDelayed"].endswith("tunnel 'flights-copy' of table 'flights' stays")
    assert "could not be deleted in time" not in messages(kube)["TunnelLeftBehind"]


async def test_a_successor_of_the_name_keeps_its_tunnel_and_its_workers() -> None:
    kube, service, cache = deleted_object(), Service(), LoopCache(uid=UID)
    cache.source.credentials = KEYS
    instance = SimpleNamespace(endpoint=EMULATOR, instance="demo", credentials=KEYS, tunnels=service, before_write=None)
    cache.source.instance = cast(Instance, instance)
    metadata = kube.objects["TablestoreTunnel", NAME]["metadata"]
    metadata["uid"] = "successor"
    del metadata["deletionTimestamp"]
    kube.objects["Deployment", NAME] = {
        "metadata": {"ownerReferences": [OWNER[0] | {"uid": "successor"}]},
        "spec": {"replicas": 2},
    }
    asked = 0

    async def tell_of_the_deletion(kind: Kind, namespace: str, name: str) -> Manifest | None:
        nonlocal asked
        asked += 1
        # a read may be older than the object: what ends the deletion is that a watch has told of its end
        cache.forgotten = asked == 3
        return await KubeMemory.get(kube, kind, namespace, name)

    kube.get = tell_of_the_deletion
    await Deleter(cast(Kube, kube), PATIENT, OperatorMetrics(), clock=lambda: NOW).finish("default", NAME, cache)

    assert asked == 3
    assert (kube.writes, service.deleted) == ([], [])


async def test_an_intent_alone_proves_the_creation() -> None:
    service = Service()

    await finish(deleted_object(status=recorded(tunnel={"createIntentTime": timestamp(NOW)})), service)

    assert service.deleted == [NAME]


@pytest.mark.parametrize(("settings", "forced"), [(AT_ONCE, False), (PATIENT, True)], ids=["too late", "forced"])
async def test_an_object_is_released_with_a_warning_where_the_service_cannot_be_reached(
    settings: Settings, forced: bool
) -> None:
    kube = deleted_object(forced=forced)

    await finish(kube, Service(error=ConnectError("refused")), settings)

    (event,) = (found for (kind, _), found in kube.objects.items() if kind == "Event")
    assert (event["type"], event["reason"]) == ("Warning", "TunnelLeftBehind")
    assert "spec.source.endpoint" in event["message"]
    assert "delete it by hand" in event["message"]


async def test_a_tunnel_that_is_left_behind_is_found_without_its_object(caplog: pytest.LogCaptureFixture) -> None:
    """The object, which named instance and endpoint, is gone, and an event lasts for an hour."""
    kube = deleted_object(status=recorded(tunnel=recorded()["tunnel"] | {"endpoint": "https://former.example"}))

    await finish(kube, Service(error=ConnectError("refused " * 200)), AT_ONCE)

    command = "ots-tunnel tunnel delete flights flights-copy --endpoint https://former.example --instance demo"
    assert f"delete it by hand: {command} (" in messages(kube)["TunnelLeftBehind"]
    (line,) = (line for line in caplog.records if getattr(line, "action", "") == "tunnel_left_behind")
    assert vars(line)["command"] == command


class Balancer:
    """Answers everything by an empty success that is not the service's."""

    async def send(self, *_: object, **__: object) -> HttpResponse:
        return HttpResponse(200, {}, b"")


async def test_an_empty_success_that_is_not_the_services_deletes_no_tunnel() -> None:
    kube = deleted_object()
    await finish(kube, TunnelClient(EMULATOR, "demo", KEYS, cast(Transport, Balancer())))

    assert events(kube) == ["TunnelLeftBehind"]
    assert "x-ots-requestid" in messages(kube)["TunnelLeftBehind"]


@pytest.mark.parametrize(
    ("policy", "status"),
    [("Retain", recorded()), ("Delete", {"tunnel": {"id": TUNNEL_ID, "createdByOperator": False}})],
)
async def test_nobody_is_told_to_delete_a_tunnel_that_is_to_stay(policy: str, status: dict[str, Any]) -> None:
    class ReadOnly(KubeMemory):
        async def patch(self, *_: Any, **__: Any) -> Manifest:
            raise KubeError(403, "Forbidden", "may not patch")

    kube = ReadOnly(deleted_object(policy, status=status).objects)

    await finish(kube, Service(), replace(PATIENT, lease="shop/mine"), Clock())

    assert "by hand" not in " ".join(messages(kube).values())
    assert "may not patch" in messages(kube)["DeletionDelayed"]
    assert events(kube)[-1] == "DeletionDelayed"
