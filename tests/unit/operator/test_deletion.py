"""Deletion: consumers first, then the tunnel that this object created; it always ends."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.errors import AuthFailed, ConnectError, TunnelError
from ots_tunnel.model import Credentials, TunnelInfo
from ots_tunnel.protocol.http.message import HttpResponse
from ots_tunnel.transport import Transport
from ots_tunnel_operator import names
from ots_tunnel_operator.deletion.deleter import Deleter
from ots_tunnel_operator.deletion.obstacles import Draining, NotYet
from ots_tunnel_operator.deletion.policy import Policy
from ots_tunnel_operator.deletion.remains import Remains
from ots_tunnel_operator.instance import Instance
from ots_tunnel_operator.kube.client import Kube, KubeError
from ots_tunnel_operator.kube.kinds import DEPLOYMENT, Kind, Manifest
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.manifests.worker_deployment import deployment
from ots_tunnel_operator.manifests.worker_document import worker_config
from ots_tunnel_operator.metrics import OperatorMetrics
from ots_tunnel_operator.settings import Settings
from ots_tunnel_operator.times import timestamp
from tests.support.kube.kube_memory import KubeMemory
from tests.support.operator.objects import EMULATOR, tunnel_object
from tests.support.operator.worlds import KEYS, NOW, TUNNEL_ID, UID, description, recorded, reported, resource, world

NAME = "flights-copy"
QUERY = f"{NAME}-stream"
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

    async def delete_tunnel(
        self, table: str, name: str, tunnel_id: str, *, before_send: Callable[[], None] | None = None
    ) -> None:
        # by its id: a call that is carried out late must spare a successor
        assert tunnel_id in {tunnel.tunnel_id for tunnel in self.tunnels}
        self.deleted.append(name)


def with_spark(kube: KubeMemory) -> KubeMemory:
    """The same with an object whose existing rows Spark copies."""
    kube.objects["TablestoreTunnel", NAME]["spec"]["engine"] = {"baseData": "Spark"}
    return kube


def deleted_object(policy: str = "Delete", *, status: dict[str, Any] | None = None, **annotations: str) -> KubeMemory:
    body = tunnel_object(deletionPolicy=policy)
    marks = {names.ANNOTATION_FORCE_DELETE: "true"} if annotations else {}
    body["metadata"] |= {"uid": UID, "deletionTimestamp": timestamp(NOW), "annotations": marks}
    return KubeMemory({("TablestoreTunnel", NAME): body | {"status": status or recorded()}})


class Clock:
    """A clock that goes on by a minute with every look."""

    STEP = 60.0

    def __init__(self) -> None:
        self.now = NOW - self.STEP

    def __call__(self) -> float:
        self.now += self.STEP
        return self.now


async def finish(
    kube: KubeMemory,
    service: Service | TunnelClient,
    settings: Settings = AT_ONCE,
    clock: Callable[[], float] = lambda: NOW,
    keys: Credentials | None = KEYS,
) -> None:
    cache = LoopCache()
    cache.source.credentials = keys
    instance = SimpleNamespace(endpoint=EMULATOR, instance="demo", credentials=KEYS, tunnels=service, before_write=None)
    cache.source.instance = cast(Instance, instance)
    deleter = Deleter(cast(Kube, kube), settings, OperatorMetrics(), clock=clock)
    await deleter.finish("default", NAME, cache)


def messages(kube: KubeMemory) -> dict[str, str]:
    return {found["reason"]: found["message"] for (kind, _), found in kube.objects.items() if kind == "Event"}


def events(kube: KubeMemory) -> list[str]:
    return [found["reason"] for (kind, _), found in kube.objects.items() if kind == "Event"]


async def test_the_status_says_at_once_that_an_object_is_being_deleted() -> None:
    running = reported(world()) | {"observedTime": timestamp(NOW - 3)}
    kube = deleted_object(status=running)
    # the service refuses to delete the tunnel, until the time is over
    await finish(kube, Service(error=AuthFailed("OTSNoPermissionAccess", "no")), PATIENT, Clock())

    status = kube.objects["TablestoreTunnel", NAME]["status"]
    found = {item["type"]: (item["status"], item["reason"]) for item in status["conditions"]}
    assert found.pop("Ready") == ("False", "Deleting")
    assert found.pop("Progressing") == ("True", "Deleting")
    assert set(found.values()) == {("Unknown", "Deleting")}
    message = next(item["message"] for item in status["conditions"] if item["type"] == "Ready")
    assert message.startswith("the object is being deleted: spec.source.credentials.secretRef.name")
    assert status["tunnel"] == running["tunnel"]
    figures = {"phase", "lag", "channels", "throughput", "workers", "replicas", "readyReplicas", "observedTime"}
    assert not figures & set(status)
    writes = [verb for verb, kind, _ in kube.writes if kind == "TablestoreTunnel"]
    assert writes == ["patch", "patch"]  # the status, once, and the release


@pytest.mark.parametrize("refusal", [KubeError(422, "Invalid", "no"), KubeError(409, "Conflict", "no")], ids=str)
async def test_a_status_that_is_refused_does_not_hold_a_deletion(
    refusal: KubeError, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    kube = deleted_object(status=reported(world()))
    patch = kube.patch

    async def refuse(kind: Kind, namespace: str, name: str, change: Manifest, subresource: str = "") -> Manifest:
        if subresource == "status":
            raise refusal
        return await patch(kind, namespace, name, change, subresource)

    monkeypatch.setattr(kube, "patch", refuse)
    await finish(kube, Service(error=ConnectError("no")), PATIENT, Clock())

    assert "the status of a deleted object could not be written" in caplog.text
    assert set(events(kube)) == {"DeletionDelayed", "TunnelLeftBehind"}


async def test_an_object_that_somebody_else_holds_says_that_it_is_being_deleted() -> None:
    kube = deleted_object("Retain", status=reported(world()))
    metadata = kube.objects["TablestoreTunnel", NAME]["metadata"]
    metadata["finalizers"] = [names.FINALIZER, "foregroundDeletion"]

    await finish(kube, Service())

    body = kube.objects["TablestoreTunnel", NAME]
    assert body["metadata"]["finalizers"] == ["foregroundDeletion"]
    ready = next(item for item in body["status"]["conditions"] if item["type"] == "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "Deleting")
    assert ready["message"].startswith("the object is being deleted: finalizer foregroundDeletion still holds it; see ")


async def test_retain_keeps_the_tunnel() -> None:
    kube, service = deleted_object("Retain"), Service()

    await finish(kube, service)

    assert (kube.writes, service.deleted) == ([], [])


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


async def test_a_forced_deletion_waits_for_no_worker() -> None:
    kube = deleted_object("Retain", force="true")
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


async def test_without_spark_nothing_of_its_kinds_is_read() -> None:
    class Refusing(KubeMemory):
        async def get(self, kind: Kind, namespace: str, name: str) -> Manifest | None:
            if kind.kind == "SparkApplication":
                raise KubeError(403, "Forbidden", "engines.spark.enabled is false")
            return await super().get(kind, namespace, name)

    kube, service = Refusing(deleted_object().objects), Service()

    await finish(kube, service, PATIENT)

    assert service.deleted == [NAME]
    assert events(kube) == []


async def test_a_snapshot_ends_before_the_tunnel_goes() -> None:
    kube, service = with_spark(deleted_object()), Service()
    kube.objects["SparkApplication", f"{NAME}-snapshot"] = {"metadata": {"ownerReferences": OWNER}}

    await finish(kube, service, PATIENT)

    assert [write for write in kube.writes if write[0] == "delete"] == [
        ("delete", "SparkApplication", f"{NAME}-snapshot")
    ]
    assert service.deleted == [NAME]


class Selecting(KubeMemory):
    """Lists only what has the labels."""

    async def list(self, kind: Kind, namespace: str, selector: str) -> list[Manifest]:
        wanted = dict(part.split("=", 1) for part in selector.split(","))
        found = await super().list(kind, namespace, selector)
        return [item for item in found if wanted.items() <= (item["metadata"].get("labels") or {}).items()]


def with_query(policy: str, phase: str = "Running", **metadata: Any) -> Selecting:
    """A deleted object whose changes a query of Spark follows, with its application and its driver."""
    kube = Selecting(deleted_object(policy).objects)
    spec = kube.objects["TablestoreTunnel", NAME]["spec"]
    spec["engine"], spec["source"]["tunnel"]["type"] = {"stream": "Spark"}, "Stream"
    found = {"ownerReferences": OWNER} if "labels" not in metadata else {}
    kube.objects["SparkApplication", QUERY] = {"metadata": found | metadata}
    pod = {"name": f"{QUERY}-driver", "labels": {"sparkoperator.k8s.io/app-name": QUERY}}
    kube.objects["Pod", f"{QUERY}-driver"] = {"metadata": pod, "status": {"phase": phase}}
    return kube


@pytest.mark.parametrize("policy", ["Retain", "Delete"])
async def test_a_query_ends_before_the_tunnel_and_the_object_go(policy: str) -> None:
    kube, service = with_query(policy), Service()

    async def ended() -> str:
        with pytest.raises(NotYet) as waits:
            await Policy(cast(Kube, kube), PATIENT).carry_out(
                Remains(kube.objects["TablestoreTunnel", NAME]), LoopCache()
            )
        return str(waits.value)

    assert await ended() == "the query's SparkApplication is being removed"
    assert ("SparkApplication", QUERY) not in kube.objects
    assert await ended() == f"pod {QUERY}-driver of the query is ending"
    assert service.deleted == []
    kube.objects["Pod", f"{QUERY}-driver"]["status"]["phase"] = "Succeeded"
    await finish(kube, service, PATIENT)
    assert service.deleted == ([NAME] if policy == "Delete" else [])


async def test_a_query_ends_before_its_object_beside_a_deployment_of_somebody_else() -> None:
    """A query has no Deployment: one of the object's name says nothing about it."""
    kube = with_query("Retain")
    kube.objects["Deployment", NAME] = {"metadata": {"labels": {"team": "shop"}}, "spec": {"replicas": 2}}

    with pytest.raises(NotYet, match="the query's SparkApplication is being removed"):
        await Policy(cast(Kube, kube), PATIENT).carry_out(Remains(kube.objects["TablestoreTunnel", NAME]), LoopCache())

    assert ("SparkApplication", QUERY) not in kube.objects
    assert kube.objects["Deployment", NAME]["spec"]["replicas"] == 2


async def test_an_application_of_somebody_else_is_no_query_of_a_deleted_object() -> None:
    kube = with_query("Retain", labels={"team": "shop"})

    await finish(kube, Service(), PATIENT)

    assert ("SparkApplication", QUERY) in kube.objects


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


async def test_pods_that_outlived_their_deployment_are_waited_for() -> None:
    kube, service = deleted_object(), Service()
    kube.objects["Pod", "pod-1"] = {"metadata": {"name": "pod-1"}, "status": {"phase": "Running"}}

    await finish(kube, service)

    assert service.deleted == []
    assert "worker pod-1 is draining" in messages(kube)["TunnelLeftBehind"]


@pytest.mark.parametrize("policy", ["Delete", "Retain"])
async def test_an_object_that_this_release_cannot_read_ends_as_well(policy: str) -> None:
    kube, service = deleted_object(policy), Service()
    kube.objects["TablestoreTunnel", NAME]["spec"]["source"]["endpoint"] = "http://h:99999"
    clock = Clock()

    await finish(kube, service, PATIENT, clock)

    assert service.deleted == []
    if policy == "Retain":
        assert (events(kube), clock.now) == ([], NOW)
        return
    assert events(kube) == ["DeletionDelayed", "TunnelLeftBehind"]
    assert "spec.source.endpoint" in messages(kube)["DeletionDelayed"]
    assert "tunnel 'flights-copy' of table 'flights'" in messages(kube)["TunnelLeftBehind"]
    assert clock.now - NOW > PATIENT.delete_seconds


@pytest.mark.parametrize(
    ("path", "value"),
    [(("source", "tunnel", "stream"), {"endTime": "never"}), (("sink",), 7), (("workers",), 7)],
    ids=["stream", "sink", "workers"],
)
async def test_what_does_not_say_where_the_tunnel_is_cannot_hold_its_deletion(
    path: tuple[str, ...], value: Any
) -> None:
    kube, service = deleted_object(), Service()
    spec = kube.objects["TablestoreTunnel", NAME]["spec"]
    for part in path[:-1]:
        spec = spec[part]
    spec[path[-1]] = value

    await finish(kube, service, PATIENT)

    assert service.deleted == [NAME]
    assert events(kube) == []


async def test_a_spec_that_is_no_mapping_ends_as_well() -> None:
    kube = deleted_object()
    kube.objects["TablestoreTunnel", NAME] |= {"spec": {"source": 1, "deletionPolicy": "Delete"}, "status": recorded()}

    await finish(kube, Service())

    assert events(kube) == ["TunnelLeftBehind"]


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("Deployment", KubeError(403, "Forbidden", "may not get deployments")),
        ("Secret", KubeError(403, "Forbidden", "may not get secrets")),
        ("SparkApplication", KubeError(500, "InternalError", "etcd")),
        ("Pod", KubeError(0, "TimeoutError", "no answer")),
        ("Deployment", ValueError("a bug")),
    ],
    ids=str,
)
async def test_whatever_is_in_the_way_the_deletion_ends_in_time(kind: str, error: Exception) -> None:
    class Refusing(KubeMemory):
        async def get(self, kind_: Kind, namespace: str, name: str) -> Manifest | None:
            if kind_.kind == kind:
                raise error
            return await super().get(kind_, namespace, name)

        async def list(self, kind_: Kind, namespace: str, selector: str) -> list[Manifest]:
            if kind_.kind == kind:
                raise error
            return await super().list(kind_, namespace, selector)

    kube, clock = Refusing(with_spark(deleted_object()).objects), Clock()

    await finish(kube, Service(), PATIENT, clock, keys=None)

    assert events(kube) == ["DeletionDelayed", "TunnelLeftBehind"]
    assert str(error) in messages(kube)["DeletionDelayed"]
    assert 0 <= clock.now - NOW - PATIENT.delete_seconds <= 2 * Clock.STEP


async def test_an_object_that_cannot_be_read_at_all_is_not_held_without_end(caplog: pytest.LogCaptureFixture) -> None:
    class Silent(KubeMemory):
        async def get(self, kind: Kind, namespace: str, name: str) -> Manifest | None:
            raise KubeError(403, "Forbidden", "may not")

    kube, clock = Silent(), Clock()

    await finish(kube, Service(), PATIENT, clock)

    assert clock.now - NOW > PATIENT.delete_seconds
    assert "a deleted object has to wait" in caplog.messages


@pytest.mark.parametrize(
    ("policy", "labels", "stays"),
    [
        ("Delete", names.labels(NAME, names.ROLE_SNAPSHOT), False),
        ("Delete", {"theirs": "1"}, True),
        ("Retain", names.labels(NAME, names.ROLE_SNAPSHOT), True),
    ],
    ids=["ours", "theirs", "retained"],
)
async def test_the_record_of_a_snapshot_outlives_the_object_only_under_retain(
    policy: str, labels: dict[str, str], stays: bool
) -> None:
    kube = deleted_object(policy)
    kube.objects["ConfigMap", f"{NAME}-snapshot"] = {"metadata": {"name": f"{NAME}-snapshot", "labels": labels}}

    await finish(kube, Service())

    assert (("ConfigMap", f"{NAME}-snapshot") in kube.objects) == stays


@pytest.mark.parametrize("forced", [False, True])
async def test_an_object_that_another_operator_serves_is_left_to_it_for_twice_the_time(forced: bool) -> None:
    kube, service, clock = deleted_object(**({"force": "true"} if forced else {})), Service(), Clock()
    annotations = kube.objects["TablestoreTunnel", NAME]["metadata"]["annotations"]
    annotations[names.ANNOTATION_OPERATOR] = "elsewhere/lease"

    class Unreadable(KubeMemory):
        async def get(self, kind: Kind, namespace: str, name: str) -> Manifest | None:
            if kind.kind == "Lease":
                raise KubeError(403, "Forbidden", "may not")
            return await super().get(kind, namespace, name)

    kube = Unreadable(kube.objects)
    await finish(kube, service, PATIENT, clock)

    assert service.deleted == []
    assert events(kube) == ["DeletionDelayed", "DeletionDelayed", "TunnelLeftBehind"]
    assert "at most 1200 s: annotation ots-tunnel.dev/operator names" in messages(kube)["DeletionDelayed"]
    assert clock.now - NOW > 2 * PATIENT.delete_seconds


async def test_an_object_of_another_operator_stays_its_own_while_it_cannot_be_read() -> None:
    kube, service, clock = deleted_object(), Service(), Clock()
    kube.objects["TablestoreTunnel", NAME]["metadata"]["annotations"][names.ANNOTATION_OPERATOR] = "elsewhere/lease"

    class Refusing(KubeMemory):
        reads = 0

        async def get(self, kind: Kind, namespace: str, name: str) -> Manifest | None:
            if kind.kind == "Lease":
                # it is renewed
                return {"metadata": {"resourceVersion": str(self.reads)}, "spec": {"holderIdentity": "it"}}
            self.reads += 1
            if self.reads > 4:
                self.objects.pop(("TablestoreTunnel", NAME), None)
            elif self.reads > 1:
                raise KubeError(500, "InternalError", "not now")
            return await super().get(kind, namespace, name)

    kube = Refusing(kube.objects)
    await finish(kube, service, replace(PATIENT, lease="shop/mine"), clock)

    assert kube.reads == 5
    assert kube.writes == []


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


async def test_an_object_without_a_claim_is_claimed_before_it_is_deleted() -> None:
    kube, service = deleted_object(), Service()

    await finish(kube, service, replace(PATIENT, lease="ours/lease"))

    assert kube.objects["TablestoreTunnel", NAME]["metadata"]["annotations"][names.ANNOTATION_OPERATOR] == "ours/lease"
    assert service.deleted == [NAME]


async def test_a_deletion_that_was_asked_for_long_ago_is_tried_before_it_is_given_up() -> None:
    kube, service = deleted_object(), Service()
    late = NOW + 2 * PATIENT.delete_seconds

    await finish(kube, service, replace(PATIENT, lease="ours/lease"), lambda: late)

    assert service.deleted == [NAME]
    assert events(kube) == []


async def test_a_claim_that_never_holds_does_not_hold_the_object() -> None:
    class Conflicting(KubeMemory):
        async def patch(self, *_: Any, **__: Any) -> Manifest:
            raise KubeError(409, "Conflict", "the object has been modified")

    kube = Conflicting(deleted_object().objects)

    await finish(kube, Service(), replace(PATIENT, lease="ours/lease"), Clock())

    assert events(kube) == ["TunnelLeftBehind"]


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
