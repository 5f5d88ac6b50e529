"""Spark's applications end before the tunnel and the object go, and what becomes of a snapshot's record."""

from __future__ import annotations

from typing import Any, cast

import pytest

from ots_tunnel.model import TunnelType
from ots_tunnel_operator import names
from ots_tunnel_operator.deletion.obstacles import NotYet
from ots_tunnel_operator.deletion.policy import Policy
from ots_tunnel_operator.deletion.remains import Remains
from ots_tunnel_operator.kube.client import Kube
from ots_tunnel_operator.kube.errors import KubeError
from ots_tunnel_operator.kube.kinds import Kind, Manifest
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.times import timestamp
from tests.support.kube.kube_memory import KubeMemory
from tests.support.operator.deletions import (
    NAME,
    OWNER,
    PATIENT,
    QUERY,
    Service,
    deleted_object,
    events,
    finish,
    with_spark,
)
from tests.support.operator.objects import EMULATOR
from tests.support.operator.query_worlds import BY_QUERY
from tests.support.operator.worlds import NOW, description, recorded


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


async def test_a_query_that_brings_existing_rows_has_no_snapshot_to_end() -> None:
    kube, service = with_spark(deleted_object("Retain")), Service()
    kube.objects["TablestoreTunnel", NAME]["spec"]["engine"]["stream"] = "Spark"
    kube.objects["SparkApplication", f"{NAME}-snapshot"] = {"metadata": {"ownerReferences": OWNER}}

    await finish(kube, service, PATIENT)

    # the garbage collector has it; no record of a copy is kept of a copy that was none
    assert ("delete", "SparkApplication", f"{NAME}-snapshot") not in kube.writes


@pytest.mark.parametrize(("mode", "kind"), [("Mirror", TunnelType.Stream), ("ChangeLog", TunnelType.BaseAndStream)])
async def test_the_tunnel_of_a_query_is_deleted_though_the_answer_to_its_creation_was_lost(
    mode: str, kind: TunnelType
) -> None:
    kube = deleted_object(status=recorded(tunnel={"createIntentTime": timestamp(NOW), "endpoint": EMULATOR}))
    spec = kube.objects["TablestoreTunnel", NAME]["spec"]
    spec["source"]["tunnel"]["type"] = "BaseAndStream"
    spec |= {"engine": {"baseData": "Spark", "stream": "Spark"}, "spark": BY_QUERY["spark"]}
    spec["sink"] = {"files": {"url": "file:///lake/f", "format": "Delta", "mode": mode}}
    service = Service([description(kind=kind).tunnel])

    await finish(kube, service, PATIENT)

    assert service.deleted == [NAME]


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
