"""A deletion beside another operator: whose object it is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ots_tunnel_operator import names
from ots_tunnel_operator.kube.errors import KubeError
from ots_tunnel_operator.kube.kinds import Kind, Manifest
from tests.support.kube.kube_memory import KubeMemory
from tests.support.operator.deletions import NAME, PATIENT, Clock, Service, deleted_object, events, finish, messages
from tests.support.operator.worlds import NOW


@pytest.mark.parametrize("forced", [False, True])
async def test_an_object_that_another_operator_serves_is_left_to_it_for_twice_the_time(forced: bool) -> None:
    kube, service, clock = deleted_object(forced=forced), Service(), Clock()
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


async def test_an_object_without_a_claim_is_claimed_before_it_is_deleted() -> None:
    kube, service = deleted_object(), Service()

    await finish(kube, service, replace(PATIENT, lease="ours/lease"))

    assert kube.objects["TablestoreTunnel", NAME]["metadata"]["annotations"][names.ANNOTATION_OPERATOR] == "ours/lease"
    assert service.deleted == [NAME]


async def test_a_claim_that_never_holds_does_not_hold_the_object() -> None:
    class Conflicting(KubeMemory):
        async def patch(self, *_: Any, **__: Any) -> Manifest:
            raise KubeError(409, "Conflict", "the object has been modified")

    kube = Conflicting(deleted_object().objects)

    await finish(kube, Service(), replace(PATIENT, lease="ours/lease"), Clock())

    assert events(kube) == ["TunnelLeftBehind"]
