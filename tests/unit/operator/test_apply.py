"""Execution of actions: each is idempotent, leaves foreign objects alone, and is logged with its object."""

from __future__ import annotations

import logging
from typing import Any, cast

import pytest

from ots_tunnel.model import TunnelType
from ots_tunnel_operator import names
from ots_tunnel_operator.apply.applier import Applier
from ots_tunnel_operator.apply.create import ActionFailed
from ots_tunnel_operator.apply.ownership import PredecessorThere
from ots_tunnel_operator.kube.client import Kube
from ots_tunnel_operator.kube.cluster import Cluster
from ots_tunnel_operator.kube.errors import KindMissing, KubeError
from ots_tunnel_operator.kube.kinds import CONFIG_MAP, SERVICE_ACCOUNT, Kind, Manifest
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.manifests.spark.rights import service_account
from ots_tunnel_operator.manifests.spark.snapshot_application import snapshot_application
from ots_tunnel_operator.manifests.worker_deployment import deployment
from ots_tunnel_operator.manifests.worker_document import worker_config
from ots_tunnel_operator.plan.actions import (
    Action,
    ApplyObject,
    ApplyToExisting,
    CreateTunnel,
    DeleteObject,
    EnsureDestination,
    MarkPod,
    RecordStatus,
    ScaleDown,
    SetReplicas,
    TryObject,
)
from ots_tunnel_operator.reasons import Reason
from tests.support.kube.kube_memory import KubeMemory
from tests.support.operator.spark_worlds import SPARK
from tests.support.operator.worlds import TUNNEL_ID, UID, recorded, resource

RESOURCE = resource(recorded(), **SPARK)
ACCOUNT = service_account(RESOURCE.object)
NAME = ACCOUNT["metadata"]["name"]


@pytest.fixture
def kube() -> KubeMemory:
    return KubeMemory()


async def carry_out(kube: KubeMemory, *actions: Action, cache: LoopCache | None = None) -> list[bool]:
    applier = Applier(cast(Kube, kube), RESOURCE, cache or LoopCache())
    return [await applier.apply(action) for action in actions]


def owned(kind: str, uid: str = UID, **body: Any) -> dict[tuple[str, str], Any]:
    owner = {"kind": "TablestoreTunnel", "name": "flights-copy", "uid": uid}
    return {(kind, NAME): {"metadata": {"name": NAME, "ownerReferences": [owner]}, **body}}


async def test_a_second_apply_writes_nothing(kube: KubeMemory) -> None:
    cache = LoopCache()

    assert await carry_out(kube, ApplyObject(ACCOUNT), ApplyObject(ACCOUNT), cache=cache) == [True, False]
    assert kube.writes == [("apply", "ServiceAccount", NAME)]


@pytest.mark.parametrize("value", ["x", None], ids=["changed", "removed"])
@pytest.mark.parametrize("remembers", [True, False], ids=["same process", "restarted"])
async def test_a_child_that_was_changed_is_applied_again(kube: KubeMemory, value: str | None, remembers: bool) -> None:
    cache = LoopCache()
    await carry_out(kube, ApplyObject(ACCOUNT), cache=cache)
    kube.edit("ServiceAccount", NAME, "metadata", "labels", names.LABEL_ROLE, value=value)
    cache = cache if remembers else LoopCache()

    assert await carry_out(kube, ApplyObject(ACCOUNT), ApplyObject(ACCOUNT), cache=cache) == [True, False]
    assert kube.objects["ServiceAccount", NAME]["metadata"]["labels"] == ACCOUNT["metadata"]["labels"]


async def test_a_copy_decides_that_nothing_is_to_do_and_a_look_precedes_a_change(kube: KubeMemory) -> None:
    current, empty, cache = KubeMemory(), KubeMemory(), LoopCache()
    await carry_out(current, ApplyObject(ACCOUNT))

    # the copy is up to date: the API server is not even asked
    assert await Applier(cast(Cluster, KubeMemory()), RESOURCE, cache, current).apply(ApplyObject(ACCOUNT)) is False
    # the copy is behind: the look shows that nothing is to do
    assert await Applier(cast(Cluster, current), RESOURCE, cache, empty).apply(ApplyObject(ACCOUNT)) is False
    assert len(current.writes) == 1
    # the copy does not show an object without our labels: the look does
    kube.objects["ServiceAccount", NAME] = {"metadata": {"name": NAME}}
    with pytest.raises(ActionFailed):
        await Applier(cast(Cluster, kube), RESOURCE, cache, empty).apply(ApplyObject(ACCOUNT))


class CountingReads(KubeMemory):
    """Counts the bodies that are read."""

    reads = 0

    async def get(self, kind: Kind, namespace: str, name: str) -> Manifest | None:
        self.reads += 1
        return await super().get(kind, namespace, name)


async def test_a_child_that_was_found_as_rendered_is_read_again_only_after_a_change() -> None:
    kube, cache = CountingReads(), LoopCache()
    await carry_out(kube, ApplyObject(ACCOUNT), ApplyObject(ACCOUNT), cache=cache)

    kube.reads = 0
    assert await carry_out(kube, ApplyObject(ACCOUNT), cache=cache) == [False]
    assert kube.reads == 0
    # by another client
    kube.edit("ServiceAccount", NAME, "metadata", "labels", names.LABEL_ROLE, value="x")
    assert await carry_out(kube, ApplyObject(ACCOUNT), ApplyObject(ACCOUNT), cache=cache) == [True, False]
    # by this release or an edit of the object
    edited = ACCOUNT | {"automountServiceAccountToken": True}
    assert await carry_out(kube, ApplyObject(edited), ApplyObject(edited), cache=cache) == [True, False]
    assert await carry_out(kube, ApplyObject(ACCOUNT), cache=cache) == [True]
    # it is gone
    kube.objects.clear()
    assert await carry_out(kube, ApplyObject(ACCOUNT), cache=cache) == [True]


async def test_what_no_copy_shows_is_created_without_a_look() -> None:
    kube, copy, cache = CountingReads(), KubeMemory(), LoopCache()

    assert await Applier(cast(Cluster, kube), RESOURCE, cache, copy).apply(ApplyObject(ACCOUNT)) is True

    assert (kube.reads, kube.writes) == (0, [("apply", "ServiceAccount", NAME)])


async def test_a_name_that_was_found_taken_is_not_written_to_again() -> None:
    class CountingWrites(KubeMemory):
        tried = 0

        async def apply(self, manifest: Manifest) -> Manifest:
            self.tried += 1
            return await super().apply(manifest)

    kube, copy, cache = CountingWrites(), KubeMemory(), LoopCache()
    kube.objects["ServiceAccount", NAME] = {"metadata": {"name": NAME, "uid": "theirs", "resourceVersion": "7"}}

    for _ in range(3):
        with pytest.raises(ActionFailed) as caught:
            await Applier(cast(Cluster, kube), RESOURCE, cache, copy).apply(ApplyObject(ACCOUNT))
        assert caught.value.problem.reason is Reason.NAME_CONFLICT

    assert kube.tried == 1


async def test_a_child_that_the_copy_does_not_show_yet_is_changed_as_it_is() -> None:
    kube, copy, cache = KubeMemory(), KubeMemory(), LoopCache()
    await carry_out(kube, ApplyObject(ACCOUNT))
    edited = ACCOUNT | {"automountServiceAccountToken": True}

    assert await Applier(cast(Cluster, kube), RESOURCE, cache, copy).apply(ApplyObject(edited)) is True

    assert kube.objects["ServiceAccount", NAME]["automountServiceAccountToken"] is True


async def test_a_field_that_the_api_server_does_not_keep_causes_one_write_only(kube: KubeMemory) -> None:
    class Dropping(KubeMemory):
        async def apply(self, manifest: Manifest) -> Manifest:
            await super().apply(manifest)
            self.edit("ServiceAccount", NAME, "metadata", "labels", names.LABEL_ROLE)
            return self.objects["ServiceAccount", NAME]

    kube, cache = Dropping(), LoopCache()

    assert await carry_out(kube, ApplyObject(ACCOUNT), ApplyObject(ACCOUNT), cache=cache) == [True, False]


async def test_an_object_of_the_name_that_is_not_ours_is_spared(kube: KubeMemory) -> None:
    kube.objects["ServiceAccount", NAME] = {"metadata": {"name": NAME}}

    with pytest.raises(ActionFailed) as caught:
        await carry_out(kube, ApplyObject(ACCOUNT))

    assert caught.value.problem.reason is Reason.NAME_CONFLICT
    assert NAME in caught.value.problem.message
    assert kube.writes == []


async def test_a_child_of_a_deleted_object_of_the_name_is_waited_for(kube: KubeMemory) -> None:
    kube.objects |= owned("ServiceAccount", uid="another")

    with pytest.raises(PredecessorThere, match=NAME):
        await carry_out(kube, ApplyObject(ACCOUNT))

    assert kube.writes == []


async def test_a_cluster_without_the_kind_of_spark_says_what_to_install(kube: KubeMemory) -> None:
    kube.refusal = KubeError(404, "NotFound", "no such path")

    with pytest.raises(ActionFailed) as caught:
        await carry_out(kube, ApplyObject(snapshot_application(RESOURCE.object, image="spark:1")))

    assert caught.value.problem.reason is Reason.SPARK_OPERATOR_MISSING
    assert "spark.jobNamespaces={default}" in caught.value.problem.message


@pytest.mark.parametrize("kind", [CONFIG_MAP, SERVICE_ACCOUNT])
async def test_a_child_of_any_kind_is_deleted(kube: KubeMemory, kind: Kind) -> None:
    kube.objects |= owned(kind.kind)

    assert await carry_out(kube, DeleteObject(kind, NAME)) == [True]
    assert kube.objects == {}


@pytest.mark.parametrize("owners", [[], [{"kind": "HelmRelease", "name": "flights-copy", "uid": "another"}]])
async def test_an_object_that_is_not_ours_is_not_deleted(kube: KubeMemory, owners: list[dict[str, str]]) -> None:
    kube.objects["ConfigMap", NAME] = {"metadata": {"name": NAME, "ownerReferences": owners}, "data": {"theirs": "1"}}

    with pytest.raises(ActionFailed) as caught:
        await carry_out(kube, DeleteObject(CONFIG_MAP, NAME))

    assert caught.value.problem.reason is Reason.NAME_CONFLICT
    assert kube.writes == []


async def test_a_retained_record_is_deleted_and_a_missing_one_is_not(kube: KubeMemory) -> None:
    labels = names.labels("flights-copy", names.ROLE_SNAPSHOT)
    record = names.snapshot_name("flights-copy")
    kube.objects["ConfigMap", record] = {"metadata": {"name": record, "labels": labels}}

    deletion = DeleteObject(CONFIG_MAP, record)

    assert await carry_out(kube, deletion, deletion) == [True, False]
    assert kube.writes == [("delete", "ConfigMap", record)]


async def test_an_object_that_takes_the_name_after_the_check_is_spared() -> None:
    class Racing(KubeMemory):
        async def get(self, kind: Kind, namespace: str, name: str) -> Manifest | None:
            found = await super().get(kind, namespace, name)
            self.objects["ConfigMap", NAME] = {"metadata": {"name": NAME, "uid": "theirs"}}
            return found

    kube = Racing(owned("ConfigMap"))
    kube.objects["ConfigMap", NAME]["metadata"]["uid"] = "ours"

    with pytest.raises(ActionFailed):
        await carry_out(kube, DeleteObject(CONFIG_MAP, NAME))

    assert kube.objects["ConfigMap", NAME]["metadata"]["uid"] == "theirs"


async def test_scaling_down_touches_the_replicas_of_our_deployment_alone(kube: KubeMemory) -> None:
    (found,) = owned("Deployment", spec={"replicas": 3, "paused": True}).values()
    kube.objects["Deployment", "flights-copy"] = found

    assert await carry_out(kube, ScaleDown(), ScaleDown()) == [True, False]
    assert kube.objects["Deployment", "flights-copy"]["spec"] == {"replicas": 0, "paused": True}


async def test_the_number_of_workers_changes_alone_while_their_template_waits(kube: KubeMemory) -> None:
    (found,) = owned("Deployment", spec={"replicas": 3, "template": {"old": 1}}).values()
    kube.objects["Deployment", "flights-copy"] = found

    assert await carry_out(kube, SetReplicas(2), SetReplicas(2)) == [True, False]
    assert kube.objects["Deployment", "flights-copy"]["spec"] == {"replicas": 2, "template": {"old": 1}}


async def test_a_pod_is_named_as_the_next_to_go_and_no_longer(kube: KubeMemory) -> None:
    kube.objects["Pod", "pod-1"] = {"metadata": {"name": "pod-1", "annotations": {"theirs": "1"}}}

    assert await carry_out(kube, MarkPod("pod-1", "-5")) == [True]
    cost = {names.ANNOTATION_DELETION_COST: "-5"}
    assert kube.objects["Pod", "pod-1"]["metadata"]["annotations"] == {"theirs": "1"} | cost
    assert await carry_out(kube, MarkPod("pod-1", None)) == [True]
    assert kube.objects["Pod", "pod-1"]["metadata"]["annotations"] == {"theirs": "1"}


async def test_a_pod_that_has_gone_needs_no_mark(kube: KubeMemory) -> None:
    kube.refusal = KubeError(404, "NotFound", "no such pod")
    assert await carry_out(kube, MarkPod("pod-1", "-5")) == [False]

    for refusal in (KindMissing(404, "NotFound", "no such path"), KubeError(403, "Forbidden", "may not")):
        kube.refusal = refusal
        with pytest.raises(ActionFailed):
            await carry_out(kube, MarkPod("pod-1", "-5"))


async def test_a_deployment_that_has_lost_its_owner_is_scaled_down(kube: KubeMemory) -> None:
    manifest = deployment(RESOURCE.object, worker_config(RESOURCE.object, TUNNEL_ID), "worker:1", 3)
    del manifest["metadata"]["ownerReferences"]
    await kube.apply(manifest)

    assert await carry_out(kube, ScaleDown()) == [True]
    assert kube.objects["Deployment", "flights-copy"]["spec"]["replicas"] == 0


@pytest.mark.parametrize("labels", [{}, names.labels("flights-copy", names.ROLE_WORKER)], ids=["bare", "our labels"])
async def test_scaling_down_spares_a_deployment_that_is_not_ours(kube: KubeMemory, labels: dict[str, str]) -> None:
    metadata = {"name": "flights-copy", "labels": labels}
    kube.objects["Deployment", "flights-copy"] = {"metadata": metadata, "spec": {"replicas": 3}}

    # its pods may be taken for this object's: to leave it alone in silence would suspend the object without end
    with pytest.raises(ActionFailed, match="belongs to something else: delete or rename it") as failed:
        await carry_out(kube, ScaleDown())

    assert failed.value.problem.reason is Reason.NAME_CONFLICT
    assert kube.writes == []


async def test_a_record_is_in_the_status_and_the_cache_forgets_what_it_changes(kube: KubeMemory) -> None:
    kube.objects["TablestoreTunnel", "flights-copy"] = {"metadata": {}, "status": {"phase": "Pending"}}

    await carry_out(kube, RecordStatus({"tunnel": {"createIntentTime": "t"}}))

    status = kube.objects["TablestoreTunnel", "flights-copy"]["status"]
    assert status == {"phase": "Pending", "tunnel": {"createIntentTime": "t"}}


async def test_a_refused_call_names_the_fields_to_check(kube: KubeMemory) -> None:
    kube.refusal = KubeError(403, "Forbidden", "may not")

    with pytest.raises(ActionFailed) as caught:
        await carry_out(kube, ApplyObject(ACCOUNT))

    assert caught.value.problem.reason is Reason.API_SERVER_REFUSED
    assert "may not" in caught.value.problem.message


async def test_a_change_is_logged_with_the_object_and_its_child(
    kube: KubeMemory, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="ots_tunnel_operator"):
        await carry_out(kube, ApplyObject(ACCOUNT))

    (line,) = (vars(record) for record in caplog.records)
    assert (line["action"], line["namespace"], line["object"]) == ("applied_object", "default", "flights-copy")
    assert (line["kind"], line["child"]) == ("ServiceAccount", NAME)


@pytest.mark.parametrize("action", [EnsureDestination(), CreateTunnel(TunnelType.Stream, None)], ids=repr)
async def test_nothing_that_could_not_be_called_counts_as_done(kube: KubeMemory, action: Action) -> None:
    applier = Applier(cast(Kube, kube), resource(), LoopCache())

    with pytest.raises(RuntimeError, match="no clients"):
        await applier.apply(action)


def application(*, suspend: bool) -> Manifest:
    """The application of a snapshot."""
    found = snapshot_application(RESOURCE.object, image="spark:1", pull_policy="Always")
    return found | {"spec": found["spec"] | {"suspend": suspend}}


async def test_an_application_without_our_labels_is_suspended_and_has_them_again(kube: KubeMemory) -> None:
    await kube.apply(application(suspend=False))
    kube.edit("SparkApplication", "flights-copy-snapshot", "metadata", "labels")
    action = ApplyToExisting(application(suspend=True))

    assert await carry_out(kube, action, action) == [True, False]
    found = kube.objects["SparkApplication", "flights-copy-snapshot"]
    assert (found["spec"]["suspend"], names.LABEL_ROLE in found["metadata"]["labels"]) == (True, True)


async def test_what_is_to_be_changed_where_it_exists_is_not_made(kube: KubeMemory) -> None:
    assert await carry_out(kube, ApplyToExisting(application(suspend=True))) == [False]
    kube.objects["SparkApplication", "flights-copy-snapshot"] = {
        "metadata": {"name": "flights-copy-snapshot", "deletionTimestamp": "2026-01-01T00:00:00Z"}
    }
    assert await carry_out(kube, ApplyToExisting(application(suspend=True))) == [False]

    del kube.objects["SparkApplication", "flights-copy-snapshot"]["metadata"]["deletionTimestamp"]
    with pytest.raises(ActionFailed, match="belongs to something else"):
        await carry_out(kube, ApplyToExisting(application(suspend=True)))
    assert kube.writes == []


async def test_the_api_server_is_asked_about_a_manifest_that_would_change_something(kube: KubeMemory) -> None:
    cache = LoopCache()
    await carry_out(kube, ApplyObject(ACCOUNT), TryObject(ACCOUNT), cache=cache)
    assert kube.trials == 0

    kube.kind_refusals["ServiceAccount"] = KubeError(403, "Forbidden", "denied by a policy")
    kube.edit("ServiceAccount", NAME, "metadata", "labels", names.LABEL_ROLE)
    with pytest.raises(ActionFailed, match="denied by a policy") as failed:
        await carry_out(kube, TryObject(ACCOUNT), cache=cache)
    assert failed.value.lasts
