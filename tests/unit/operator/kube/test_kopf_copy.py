"""kopf keeps the metadata of an object, and writes nothing of what it has seen."""

from __future__ import annotations

from typing import Any

import kopf

from ots_tunnel_operator.handlers import configure


def body() -> dict[str, Any]:
    return {
        "metadata": {
            "namespace": "shop",
            "name": "orders",
            "uid": "1",
            "resourceVersion": "17",
            "finalizers": ["ots-tunnel.dev/finalizer"],
            "deletionTimestamp": "2026-01-01T00:00:00Z",
            "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}],
        },
        "spec": {"replicas": 3},
        "status": {"phase": "Streaming"},
    }


def storage() -> kopf.DiffBaseStorage:
    settings = kopf.OperatorSettings()
    configure(settings, clusterwide=True)
    return settings.persistence.diffbase_storage


def test_of_a_body_only_the_metadata_is_kept() -> None:
    raw = body()
    del (wanted := body()["metadata"])["managedFields"]

    storage().build(body=kopf.Body(raw))

    assert raw == {"metadata": wanted, "spec": {}, "status": {}}


def test_a_body_without_these_parts_stays_as_it_is() -> None:
    raw: dict[str, Any] = {"metadata": {"name": "orders"}}

    storage().build(body=kopf.Body(raw))

    assert raw == {"metadata": {"name": "orders"}}


def test_no_body_counts_as_new_or_changed_and_none_is_recorded() -> None:
    seen, patch = kopf.Body(body()), kopf.Patch()
    found = storage()

    essence = found.build(body=seen)
    assert found.fetch(body=seen) == essence
    found.store(body=seen, patch=patch, essence=essence)

    assert not patch
