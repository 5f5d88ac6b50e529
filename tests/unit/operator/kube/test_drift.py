"""Which differences between an object and its manifest are drift."""

from __future__ import annotations

from typing import Any

import pytest

from ots_tunnel_operator import names
from ots_tunnel_operator.kube.drift import digest, is_current, version

OWNER = [{"kind": "TablestoreTunnel", "name": "copy", "uid": "u1"}]


def manifest(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "copy", "ownerReferences": OWNER}, "spec": spec}


def hashed(value: str, **spec: Any) -> dict[str, Any]:
    found = manifest(**spec)
    found["metadata"]["annotations"] = {names.ANNOTATION_RENDERED_HASH: value}
    return found


def test_what_the_api_server_adds_is_no_drift() -> None:
    existing = manifest(replicas=3, strategy={"type": "Recreate", "extra": 1}, paused=False)

    assert is_current(existing, manifest(replicas=3, strategy={"type": "Recreate"}, selector=None, volumes=[]))


@pytest.mark.parametrize(
    "existing",
    [
        manifest(replicas=2, ports=[{"port": 1}]),
        manifest(replicas=3, ports=[{"port": 2}]),
        manifest(replicas=3, ports=[{"port": 1}, {"port": 2}]),
        manifest(replicas=3, ports={"port": 1}),
        manifest(ports=[{"port": 1}]),
    ],
)
def test_a_field_with_another_value_is_drift(existing: dict[str, Any]) -> None:
    assert not is_current(existing, manifest(replicas=3, ports=[{"port": 1}]))


def test_a_list_that_should_be_empty_is_drift() -> None:
    assert not is_current(manifest(ports=[1]), manifest(ports=[]))


def test_a_lost_owner_is_drift() -> None:
    existing = manifest(replicas=3)
    del existing["metadata"]["ownerReferences"]

    assert not is_current(existing, manifest(replicas=3))
    assert not is_current(manifest(replicas=3), existing)


def test_a_hash_decides_alone() -> None:
    assert is_current(hashed("a", completed="by another controller"), hashed("a", replicas=3))
    assert not is_current(hashed("b", replicas=3), hashed("a", replicas=3))
    assert not is_current(manifest(replicas=3), hashed("a", replicas=3))


def test_digest_and_version_change_with_the_object() -> None:
    assert digest(manifest(replicas=3)) != digest(manifest(replicas=4))
    assert version({"metadata": {"uid": "u", "generation": 2, "resourceVersion": "9"}}) == "u/2"
    assert version({"metadata": {"uid": "u", "resourceVersion": "9"}}) == "u/9"
