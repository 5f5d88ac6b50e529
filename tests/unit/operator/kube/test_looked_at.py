"""What every pass looks at is unpacked once for each of its versions, and small."""

from __future__ import annotations

from typing import Any

from ots_tunnel_operator.kube.kinds import DEPLOYMENT
from ots_tunnel_operator.kube.looked_at import look_at, trimmed
from tests.support.kube.cluster_model import ClusterModel

OURS = {"manager": "ots-tunnel-operator", "operation": "Apply", "fieldsV1": {"f:spec": {"f:template": {}}}}
THEIRS = {"manager": "kubectl", "subresource": "scale", "fieldsV1": {"f:spec": {"f:replicas": {}, "f:paused": {}}}}


def body(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "orders", "namespace": "shop", "uid": "1", "managedFields": [OURS, THEIRS]}} | {
        "spec": {"replicas": 3} | spec
    }


async def test_a_child_is_read_again_only_after_a_change() -> None:
    model = ClusterModel()
    model.put(DEPLOYMENT, body())
    first = await look_at(model, DEPLOYMENT, "shop", "orders", None)

    assert await look_at(model, DEPLOYMENT, "shop", "orders", first) is first
    model.put(DEPLOYMENT, body(replicas=4))
    second = await look_at(model, DEPLOYMENT, "shop", "orders", first)
    assert second is not None
    assert second["spec"]["replicas"] == 4
    model.remove(DEPLOYMENT, "shop", "orders")
    assert await look_at(model, DEPLOYMENT, "shop", "orders", second) is None


async def test_a_child_without_a_version_is_read_each_time() -> None:
    found = trimmed(body())

    assert await look_at(ClusterModel(), DEPLOYMENT, "shop", "orders", found) is None


def test_of_managed_fields_who_writes_the_number_of_workers_is_left() -> None:
    before = body(
        template={"metadata": {"annotations": {"a": "x" * 100}}, "spec": {"containers": [{"name": "worker"}]}}
    )
    found = trimmed(before)

    assert found["metadata"]["managedFields"] == [
        {"manager": "kubectl", "fieldsV1": {"f:spec": {"f:replicas": {}}}},
    ]
    assert found["spec"] == before["spec"]
    assert len(before["metadata"]["managedFields"]) == 2


def test_names_are_kept_once_for_all_children() -> None:
    one, other = trimmed(body(text="Rolling" + "Update")), trimmed(body(text="".join(("Rolling", "Update"))))

    assert one["spec"]["text"] is other["spec"]["text"]
