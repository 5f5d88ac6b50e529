"""What the last release accepted is accepted and read as it was: fields, values, defaults."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from ots_tunnel_operator.api import crd
from ots_tunnel_operator.api.object import TablestoreTunnel
from tests.support.operator.released import DEFINITION, OBJECTS, released_object

Schema = dict[str, Any]

#: Keywords of least and of greatest values.
LEAST = ("minimum", "minLength", "minItems", "minProperties")
MOST = ("maximum", "maxLength", "maxItems", "maxProperties")


def version(definition: Schema) -> Schema:
    """The served version of a definition."""
    (found,) = (each for each in definition["spec"]["versions"] if each["served"])
    return dict(found)


def released() -> Schema:
    return version(yaml.safe_load(DEFINITION.read_text()))


def schema_of(found: Schema) -> Schema:
    return dict(found["schema"]["openAPIV3Schema"])


def narrowed(before: Schema, after: Schema, path: str) -> Iterator[str]:
    """What a schema refuses, changes or drops that an earlier one accepted."""
    yield from (f"{path}: {text}" for text in (*changed(before, after), *tightened(before, after)))
    for name, child in before.get("properties", {}).items():
        if name not in after.get("properties", {}):
            yield f"{path}.{name}: is gone"
        else:
            yield from narrowed(child, after["properties"][name], f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if key in before:
            yield from narrowed(before[key], after.get(key, {}), f"{path}[]")


def changed(before: Schema, after: Schema) -> Iterator[str]:
    """The keywords of one node that have to stay as they are."""
    keys = ["type", "format", "pattern", "x-kubernetes-list-type", "x-kubernetes-list-map-keys"]
    if not isinstance(before.get("default"), dict):
        keys.append("default")
    for key in keys:
        if before.get(key) != after.get(key):
            yield f"{key} was {before.get(key)}, is {after.get(key)}"


def tightened(before: Schema, after: Schema) -> Iterator[str]:
    """The limits of one node that refuse more than before."""
    if lost := set(before.get("enum", ())) - set(after.get("enum", before.get("enum", ()))):
        yield f"no longer {', '.join(map(str, lost))}"
    greater = [key for key in LEAST if after.get(key, float("-inf")) > before.get(key, float("-inf"))]
    less = [key for key in MOST if after.get(key, float("inf")) < before.get(key, float("inf"))]
    yield from (f"{key} was {before.get(key)}, is {after[key]}" for key in (*greater, *less))
    if needed := set(after.get("required", ())) - set(before.get("required", ())):
        yield f"now needs {', '.join(sorted(needed))}"


def test_no_field_or_value_of_the_last_release_is_gone() -> None:
    now = version(crd.custom_resource_definition())

    assert list(narrowed(schema_of(released()), schema_of(now), "")) == []
    assert now["name"] == released()["name"]


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ({"enum": ["a", "b"]}, {"enum": ["a"]}, "no longer b"),
        ({"maximum": 5}, {"maximum": 4}, "maximum was 5, is 4"),
        ({}, {"minLength": 1}, "minLength was None, is 1"),
        ({"properties": {"a": {}}}, {}, ".a: is gone"),
        ({"properties": {"a": {"default": 1}}}, {"properties": {"a": {"default": 2}}}, ".a: default was 1, is 2"),
        ({}, {"required": ["a"]}, "now needs a"),
        ({"items": {"type": "string"}}, {"items": {"type": "integer"}}, "[]: type was string, is integer"),
    ],
)
def test_a_schema_that_refuses_more_is_noticed(before: Schema, after: Schema, says: str) -> None:
    assert [text for text in narrowed(before, after, "") if says in text]


def paths(value: Any, path: str = "") -> Iterator[str]:
    """The fields that a document sets."""
    yield path
    for name, child in value.items() if isinstance(value, dict) else ():
        yield from paths(child, f"{path}.{name}")


def fields(schema: Schema, path: str) -> Iterator[str]:
    """The fields that a schema has."""
    yield path
    for name, child in schema.get("properties", {}).items():
        yield from fields(child, f"{path}.{name}")


def test_the_objects_of_the_release_use_every_field_of_it() -> None:
    used = {path for name in OBJECTS for path in paths(released_object(name)["spec"])}

    assert set(fields(schema_of(released())["properties"]["spec"], "")) - used == set()


@pytest.mark.parametrize("name", OBJECTS)
def test_an_object_of_the_release_is_read_whole(name: str) -> None:
    document = released_object(name)

    spec = TablestoreTunnel.from_body(document).spec.model_dump(by_alias=True, mode="json", exclude_none=True)

    assert kept(document["spec"], spec) == document["spec"]


def kept(given: Any, read: Any) -> Any:
    """The part of what was read that was given."""
    if isinstance(given, dict) and isinstance(read, dict):
        return {name: kept(value, read[name]) for name, value in given.items() if name in read}
    return read
