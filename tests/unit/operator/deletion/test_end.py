"""A deletion always ends in time, whatever is in its way, and the status says that it runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ots_tunnel.errors import AuthFailed, ConnectError
from ots_tunnel_operator import names
from ots_tunnel_operator.kube.errors import KubeError
from ots_tunnel_operator.kube.kinds import Kind, Manifest
from ots_tunnel_operator.times import timestamp
from tests.support.kube.kube_memory import KubeMemory
from tests.support.operator.deletions import (
    NAME,
    PATIENT,
    Clock,
    Service,
    deleted_object,
    events,
    finish,
    messages,
    with_spark,
)
from tests.support.operator.worlds import NOW, recorded, reported, world


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


async def test_a_deletion_that_was_asked_for_long_ago_is_tried_before_it_is_given_up() -> None:
    kube, service = deleted_object(), Service()
    late = NOW + 2 * PATIENT.delete_seconds

    await finish(kube, service, replace(PATIENT, lease="ours/lease"), lambda: late)

    assert service.deleted == [NAME]
    assert events(kube) == []
