"""Whom a change of an object concerns: itself, those on its old tunnel, and nobody after a change of its status."""

from __future__ import annotations

from typing import Any

import pytest

from ots_tunnel_operator.concerns import Concerns, competitor
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world.world import Competitor
from tests.support.operator.objects import tunnel_object
from tests.support.operator.worlds import NOW


def body(name: str, uid: str, tunnel: str = "shared", **metadata: Any) -> dict[str, Any]:
    found = tunnel_object(name, source__tunnel__name=tunnel)
    found["metadata"] |= {"namespace": "shop", "uid": uid, "generation": 1, **metadata}
    return found


def test_only_a_change_of_the_user_concerns_an_object() -> None:
    concerns = Concerns()
    first = body("a", "1")
    changes = [
        first,
        first | {"status": {"phase": "Streaming"}},
        body("a", "1", annotations={"ots-tunnel.dev/last-handled": "x"}),
        body("a", "1", generation=2),
        body("a", "1", generation=2, annotations={"note": "x"}),
        body("a", "1", generation=2, annotations={"note": "x"}, deletionTimestamp="t"),
    ]

    assert [len(concerns.changed(change)) for change in changes] == [1, 0, 0, 1, 1, 1]
    assert len(concerns) == 1


def test_who_leaves_a_tunnel_wakes_the_others_on_it() -> None:
    concerns = Concerns()
    for name, uid in (("a", "1"), ("b", "2")):
        concerns.changed(body(name, uid))
    concerns.changed(body("c", "3", tunnel="other"))

    assert concerns.changed(body("a", "1", tunnel="other", generation=2)) == {("shop", "a"), ("shop", "b")}
    assert concerns.deleted(body("a", "1", tunnel="other")) == {("shop", "c")}
    assert concerns.places("shop") == concerns.places() == {("shop", "b"), ("shop", "c")}
    assert concerns.places("lake") == set()


def test_the_deletion_of_a_former_object_of_the_name_concerns_nobody() -> None:
    concerns = Concerns()
    concerns.changed(body("a", "2"))

    assert concerns.deleted(body("a", "1")) == set()
    assert concerns.deleted(body("unknown", "1")) == set()
    assert len(concerns) == 1


def test_a_secret_concerns_the_objects_that_name_it() -> None:
    concerns = Concerns()
    concerns.changed(body("a", "1"))

    assert concerns.users("shop", "ots-credentials") == {("shop", "a")}
    assert concerns.users("lake", "ots-credentials") == set()
    concerns.deleted(body("a", "1"))
    assert concerns.users("shop", "ots-credentials") == set()


@pytest.mark.parametrize("spec", [{"source": 1}, {"source": {"endpoint": "http://["}}, {"sink": [1]}, {}])
def test_a_spec_of_another_release_has_no_rivals(spec: dict[str, Any]) -> None:
    concerns = Concerns()

    assert concerns.changed(body("a", "1") | {"spec": spec}) == {("shop", "a")}


def test_an_object_that_needs_no_tunnel_has_no_rivals() -> None:
    assert Concerns().rivals(None) == ()


def test_a_competitor_is_read_from_any_body() -> None:
    metadata = {"name": "a", "namespace": "b", "uid": "c", "creationTimestamp": timestamp(NOW)}

    assert competitor({"metadata": metadata}) == Competitor("a", "b", NOW, "c")
    assert competitor({"metadata": metadata | {"creationTimestamp": None}}).created == 0.0
