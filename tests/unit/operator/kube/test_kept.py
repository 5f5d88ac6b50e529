"""What a watch keeps of an object between two reads."""

from __future__ import annotations

import sys
from typing import Any

from ots_tunnel_operator.kube.kept import Kept

BODY: dict[str, Any] = {
    "metadata": {
        "namespace": "shop",
        "name": "orders",
        "uid": "1",
        "resourceVersion": "17",
        "labels": {"team": "grün"},
        "managedFields": [{"fieldsV1": {f"f:{number}": {} for number in range(500)}}],
    },
    "spec": {"replicas": 3, "paused": None, "weight": 0.5, "args": ["--lag", "\U0001f4c8", "a\nb"]},
}


def test_a_body_is_read_back_as_it_was_and_belongs_to_the_reader() -> None:
    kept = Kept.of(BODY, "team", packed=True)
    first = kept.manifest()
    assert first == BODY
    first["spec"]["replicas"] = 0
    assert kept.manifest() == BODY


def test_what_tells_objects_apart_is_known_without_reading_the_body() -> None:
    for packed in (True, False):
        kept = Kept.of(BODY, "team", packed=packed)
        assert (kept.key, kept.uid, kept.version, kept.value) == (("shop", "orders"), "1", "17", "grün")
    bare = Kept.of({"metadata": {"name": "node"}}, "", packed=True)
    assert (bare.key, bare.uid, bare.version, bare.value) == (("", "node"), "", "", "")


def test_a_body_that_is_looked_through_often_stays_as_it_is() -> None:
    assert Kept.of(BODY, "", packed=False).manifest() is BODY


def test_a_packed_body_takes_a_small_part_of_its_dictionaries() -> None:
    body = Kept.of(BODY, "", packed=True).body
    fields = BODY["metadata"]["managedFields"][0]["fieldsV1"]
    assert isinstance(body, bytes)
    assert len(body) * 5 < sys.getsizeof(fields) + sum(map(sys.getsizeof, fields))
