"""Another place of the sink's files is refused before anything is written there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ots_tunnel.model import ChannelId
from ots_tunnel_operator import names
from ots_tunnel_operator.api.status import MAX_FILES_PLACE
from ots_tunnel_operator.assess.worker_pods.place import find_changed_place
from ots_tunnel_operator.manifests.files_place import files_place
from ots_tunnel_operator.plan.actions import ApplyObject, RecordStatus, ScaleDown
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.world.absence import Failure
from ots_tunnel_operator.world.service import Tunnel
from ots_tunnel_operator.world.world import World
from tests.support.operator.worlds import (
    FRESH,
    channel,
    deployment,
    description,
    planned,
    pod,
    recorded,
    reported,
    resource,
    world,
)

KEYS = {"secretRef": {"name": "keys"}}
CLAIM = {"persistentVolumeClaim": {"claimName": "orders"}}
BUCKET_PLACE = "s3://shop/orders in minio:9000"
UNMOVED = Tunnel(description(channel("a", client="")), {ChannelId("a"): FRESH})


def folder(volume: dict[str, Any] = CLAIM, path: str = "/data", **mount: Any) -> dict[str, Any]:
    spec = {
        "containers": [{"name": "worker", "volumeMounts": [{"name": "data", "mountPath": path} | mount]}],
        "volumes": [{"name": "data"} | volume],
    }
    return {"sink": {"files": {"url": "file:///data/orders"}}, "workers": {"podTemplate": {"spec": spec}}}


def bucket(endpoint: str | None = "http://minio:9000", **more: Any) -> dict[str, Any]:
    found = {"endpoint": endpoint} if endpoint else {}
    return {"sink": {"files": {"url": "s3://shop/orders", "credentials": KEYS} | found | more}}


def running(spec: dict[str, Any], before: str | None, accepted: str = "", **changes: Any) -> World:
    """An object whose workers were applied with a place, and have written there."""
    found = resource(recorded(destination={}), **spec)
    metadata = found.object.metadata.model_copy(update={"annotations": {names.ANNOTATION_ACCEPT_PLACE: accepted}})
    workers = deployment()
    if before is not None:
        for item in workers.values():
            item["metadata"]["annotations"] = {names.ANNOTATION_FILES_PLACE: before}
    moved = Tunnel(description(channel("a", consumed=1.0, rows=5)))
    return world(
        replace(found, object=found.object.model_copy(update={"metadata": metadata})),
        **{"children": workers, "tunnel": moved} | changes,
    )


@pytest.mark.parametrize(
    "volume",
    [
        {"flexVolume": {"driver": "alicloud/oss", "options": {"bucket": "b", "akSecret": "hidden"}}},
        {"csi": {"driver": "ossplugin", "volumeAttributes": {"bucket": "b", "akSecret": "hidden"}}},
    ],
)
def test_what_a_volume_tells_its_driver_is_shown_nowhere(volume: dict[str, Any]) -> None:
    """Drivers of object stores are given keys there."""
    found = find_changed_place(running(folder(volume), "persistentVolumeClaim/orders:/orders"))

    assert found is not None
    assert "hidden" not in found.message
    ((kind, source),) = volume.items()
    other = {kind: {name: {"bucket": "c"} if isinstance(of, dict) else of for name, of in source.items()}}
    assert find_changed_place(running(folder(volume), files_place(resource(**folder(other)).object))) is not None
    assert find_changed_place(running(folder(volume), files_place(resource(**folder(volume)).object))) is None


@pytest.mark.parametrize(
    ("spec", "place"),
    [
        (folder(), "persistentVolumeClaim/orders:/orders"),
        # the same folder of the same claim
        (folder(path="/data/orders", subPath="orders"), "persistentVolumeClaim/orders:/orders"),
        (folder(path="/data", subPathExpr="$(A)"), "persistentVolumeClaim/orders:/$(A)/orders"),
        (folder({"nfs": {"server": "s", "path": "/x"}}), '{"nfs":{"path":"/x","server":"s"}}:/orders'),
        (folder(path="/other"), ""),
        (bucket(), BUCKET_PLACE),
        (bucket("http://MinIO:9000/", region="x"), BUCKET_PLACE),
        (bucket("https://minio:443"), "s3://shop/orders in minio"),
        (bucket(None), "s3://shop/orders in amazonaws.com"),
        (bucket("https://s3.eu-west-1.amazonaws.com"), "s3://shop/orders in amazonaws.com"),
        # a name of a bucket there may be another bucket elsewhere
        (bucket("https://s3.us-gov-west-1.amazonaws.com"), "s3://shop/orders in us-gov.amazonaws.com"),
        (bucket("https://s3-us-gov-west-1.amazonaws.com"), "s3://shop/orders in us-gov.amazonaws.com"),
        (bucket("https://oss-cn-hangzhou.aliyuncs.com"), "s3://shop/orders in aliyuncs.com"),
        (bucket("https://oss-cn-hangzhou-internal.aliyuncs.com"), "s3://shop/orders in aliyuncs.com"),
        ({}, ""),
    ],
)
def test_a_place_is_named_by_its_volume_or_its_store(spec: dict[str, Any], place: str) -> None:
    assert files_place(resource(**spec).object) == place


@pytest.mark.parametrize(
    ("spec", "before", "changed"),
    [
        (
            folder({"persistentVolumeClaim": {"claimName": "new"}}),
            "persistentVolumeClaim/orders:/orders",
            "podTemplate",
        ),
        (folder(path="/data/orders"), "persistentVolumeClaim/orders:/orders", "podTemplate"),
        (bucket("http://other:9000"), BUCKET_PLACE, "endpoint"),
        (bucket(None), BUCKET_PLACE, "endpoint"),
    ],
)
def test_another_place_is_told_and_nothing_is_applied(spec: dict[str, Any], before: str, changed: str) -> None:
    plan = planned(running(spec, before))

    assert plan.problem is not None
    assert plan.problem.reason is Reason.INVALID_SPEC
    assert plan.problem.message.partition(":")[0].endswith(changed)
    assert f"allowed is {before!r}, to which the workers have written" in plan.problem.message
    # the workers that run keep the place that they have
    assert plan.actions == ()
    assert plan.replicas == 1


@pytest.mark.parametrize(
    "found",
    [
        running(bucket(), BUCKET_PLACE),
        # applied by an earlier release
        running(bucket(), None),
        running(bucket("http://other:9000"), BUCKET_PLACE, "s3://shop/orders in other:9000"),
        running(bucket("http://other:9000"), BUCKET_PLACE, children={}),
        running({}, BUCKET_PLACE),
        # without a volume: that is another problem
        running(folder(path="/other"), "persistentVolumeClaim/orders:/orders"),
        # a claim that does not exist, for example, is corrected
        running(bucket("http://other:9000"), BUCKET_PLACE, tunnel=UNMOVED, pods=()),
    ],
)
def test_no_other_place_is_no_problem(found: World) -> None:
    assert find_changed_place(found) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"tunnel": UNMOVED, "pods": (pod("pod-1"),)},
        # its checkpoints were not read, and a row may have been confirmed since the description
        {"tunnel": replace(UNMOVED, checkpoints=None), "pods": ()},
        {"tunnel": replace(UNMOVED, checkpoints={ChannelId("a"): replace(FRESH, sequence_number=1)}), "pods": ()},
        {"tunnel": Failure(Problem(Reason.ENDPOINT_UNREACHABLE, "no answer")), "pods": ()},
    ],
)
def test_what_may_have_been_written_counts_as_written(changes: dict[str, Any]) -> None:
    assert find_changed_place(running(bucket("http://other:9000"), BUCKET_PLACE, **changes)) is not None


@pytest.mark.parametrize("accepted", ["", "s3://shop/orders in other:9000"])
def test_the_status_keeps_the_place_where_deployment_and_config_map_were_deleted(accepted: str) -> None:
    before = running(bucket(), BUCKET_PLACE)
    status = reported(before)
    after = running(bucket("http://other:9000"), None, accepted, children={}, pods=())
    after = replace(after, resource=replace(after.resource, status={**after.resource.status, **status}))

    assert status["filesPlace"] == BUCKET_PLACE
    assert (find_changed_place(after) is None) == bool(accepted)
    # until the workers are applied with another one
    assert reported(after)["filesPlace"] == BUCKET_PLACE


def test_the_place_is_recorded_before_the_first_worker_can_write_there() -> None:
    of = running(bucket(), None, children={}, pods=())
    known = replace(of.resource, status={**of.resource.status, "filesPlace": BUCKET_PLACE})
    record = RecordStatus({"filesPlace": BUCKET_PLACE})

    assert planned(of).actions[0] == record
    assert record not in planned(replace(of, resource=known)).actions


def test_a_place_of_any_length_fits_into_the_status() -> None:
    long, other = ({"nfs": {"server": "s", "path": f"/{'x' * 5000}{end}"}} for end in "ab")
    places = [files_place(resource(**folder(volume)).object) for volume in (long, other)]

    assert max(map(len, places)) <= MAX_FILES_PLACE
    assert places[0] != places[1]


def test_an_accepted_place_is_applied_and_recorded() -> None:
    plan = planned(running(bucket("http://other:9000"), BUCKET_PLACE, "s3://shop/orders in other:9000"))
    applied = [action.manifest for action in plan.actions if isinstance(action, ApplyObject)]
    workers = next(manifest for manifest in applied if manifest["kind"] == "Deployment")

    assert workers["metadata"]["annotations"][names.ANNOTATION_FILES_PLACE] == "s3://shop/orders in other:9000"


@pytest.mark.parametrize(
    ("changes", "actions"),
    [
        # a rollout would keep it until a new one is ready, and it could write and confirm rows until then
        ({"pods": (pod("pod-1", ready=False),)}, (ScaleDown(),)),
        ({"pods": (), "children": deployment(1, replicas=0)}, (ScaleDown(),)),
        ({"pods": (pod("pod-1", ready=False, deleting=True),), "children": deployment(0)}, ()),
    ],
    ids=["starting", "not made yet", "draining"],
)
def test_workers_of_a_place_without_files_end_before_another_one_is_used(
    changes: dict[str, Any], actions: tuple[ScaleDown, ...]
) -> None:
    found = {"children": deployment()} | changes
    for item in found["children"].values():
        item["metadata"]["annotations"] = {names.ANNOTATION_FILES_PLACE: BUCKET_PLACE}
    plan = planned(running(bucket("http://other:9000"), None, tunnel=UNMOVED, **found))

    assert plan.actions == actions
    assert plan.problem is None
    assert plan.wait is not None
    assert f"when the workers of {BUCKET_PLACE!r} have ended: {len(found['pods'])} pods are left" in plan.wait.message


def test_another_place_is_used_when_the_last_worker_has_ended() -> None:
    children = deployment(0)
    children["Deployment", "flights-copy"]["metadata"]["annotations"] = {names.ANNOTATION_FILES_PLACE: BUCKET_PLACE}
    plan = planned(running(bucket("http://other:9000"), None, tunnel=UNMOVED, pods=(), children=children))
    applied = [action.manifest for action in plan.actions if isinstance(action, ApplyObject)]

    workers = next(manifest for manifest in applied if manifest["kind"] == "Deployment")
    assert workers["spec"]["replicas"] == 1
    assert workers["metadata"]["annotations"][names.ANNOTATION_FILES_PLACE] == "s3://shop/orders in other:9000"
