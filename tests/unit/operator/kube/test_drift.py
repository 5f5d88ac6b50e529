"""Which differences between an object and its manifest are drift: what was applied, and who owns which field."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ots_tunnel_operator.kube.drift import is_current, owned_fields, owned_hash, owns_exactly, stamp, stamped
from ots_tunnel_operator.names import FIELD_MANAGER

Fields = dict[str, Any]

MANIFEST = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "copy", "namespace": "shop", "labels": {"a": "1"}},
    "spec": {"replicas": 3, "tolerations": [{"key": "x"}], "volumes": []},
}
FIELDS = {
    "f:metadata": {"f:labels": {"f:a": {}}, "f:annotations": {"f:ots-tunnel.dev/rendered-hash": {}}},
    "f:spec": {"f:replicas": {}, "f:tolerations": {}},
}


def existing(fields: Fields = FIELDS, **changes: Any) -> dict[str, Any]:
    """The object right after the manifest was applied; `changes` are those of its managedFields entry."""
    found = copy.deepcopy(stamped(MANIFEST))
    entry = {"manager": FIELD_MANAGER, "operation": "Apply", "fieldsV1": fields} | changes
    other = {"manager": "kube-controller-manager", "operation": "Update", "fieldsV1": {"f:status": {}}}
    found["metadata"]["managedFields"] = [other, entry]
    return found


def test_what_the_api_server_completes_is_no_drift() -> None:
    found = existing()
    found["spec"] |= {"paused": False, "replicas": 3}

    assert is_current(found, stamped(MANIFEST))


def test_another_manifest_is_drift_even_where_the_object_has_all_of_it() -> None:
    less = copy.deepcopy(MANIFEST)
    less["spec"] = {"replicas": 3}

    assert not is_current(existing(), stamped(less))
    assert not is_current(existing(), stamped(less), owned_hash(existing()))


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {**FIELDS, "f:spec": {"f:tolerations": {}}},
        {**FIELDS, "f:spec": {"f:replicas": {}, "f:tolerations": {}, "f:paused": {}}},
        {"f:spec": FIELDS["f:spec"]},
    ],
    ids=["nothing", "less", "more", "no labels"],
)
def test_a_field_that_is_not_ours_any_more_is_drift(fields: Fields) -> None:
    assert not is_current(existing(fields), stamped(MANIFEST))
    assert not is_current(existing(fields), stamped(MANIFEST), owned_hash(existing()))


def test_what_the_api_server_accepted_counts_as_complete() -> None:
    kept = {**FIELDS, "f:spec": {"f:replicas": {}}}

    assert is_current(existing(kept), stamped(MANIFEST), owned_hash(existing(kept)))


@pytest.mark.parametrize(
    "changes", [{"manager": "kubectl"}, {"operation": "Update"}, {"subresource": "status"}], ids=lambda item: str(item)
)
def test_only_our_own_apply_counts(changes: dict[str, str]) -> None:
    assert owned_fields(existing(**changes)) == {}
    assert not is_current(existing(**changes), stamped(MANIFEST))


def test_the_stamp_changes_with_every_field() -> None:
    other = copy.deepcopy(MANIFEST)
    other["metadata"]["labels"] = {"a": "2"}

    assert stamp(stamped(MANIFEST)) != stamp(stamped(other))
    assert stamp(MANIFEST) == ""
    assert "annotations" not in MANIFEST["metadata"]


def test_a_key_with_a_default_may_be_left_out() -> None:
    port = 'k:{"containerPort":8080,"protocol":"TCP"}'

    assert owns_exactly({port: {".": {}, "f:containerPort": {}}}, [{"containerPort": 8080}])
    assert not owns_exactly({port: {".": {}, "f:containerPort": {}}}, [{"containerPort": 8081}])
    assert not owns_exactly({port: {".": {}, "f:containerPort": {}}}, ["8080"])


@pytest.mark.parametrize("value", [{}, "", None, 3, "text", [1]])
def test_members_of_a_value_that_has_none_are_drift(value: Any) -> None:
    assert not owns_exactly({"f:a": {}}, value)
    assert not owns_exactly({"i:0": {}}, value)


# A value of a manifest, with the fields that the API server tracks of it.


@dataclass(frozen=True)
class Tracked:
    value: Any
    fields: Fields


#: Names with every character that FieldsV1 uses itself.
NAMES = st.text(alphabet='ab.:/{}"ä', min_size=1, max_size=4)
SCALARS = st.one_of(st.integers(0, 9), st.booleans(), NAMES, st.none())
#: Scalars, empty maps, and lists and maps that are owned as a whole.
LEAVES = st.one_of(
    SCALARS, st.just({}), st.lists(SCALARS, min_size=1, max_size=2), st.dictionaries(NAMES, SCALARS, min_size=1)
).map(lambda value: Tracked(value, {}))


def map_of(members: dict[str, Tracked]) -> Tracked:
    fields = {f"f:{name}": member.fields for name, member in members.items()}
    return Tracked({name: member.value for name, member in members.items()}, fields)


def keyed_list(items: dict[str, Tracked]) -> Tracked:
    """Items by their name; an atomic one has no fields."""
    value = [{"name": name, "of": item.value} for name, item in items.items()]
    fields = {
        f"k:{json.dumps({'name': name})}": {".": {}, "f:name": {}, "f:of": item.fields} for name, item in items.items()
    }
    return Tracked(value, fields)


def set_of(items: set[str]) -> Tracked:
    return Tracked(sorted(items), {f"v:{json.dumps(item, ensure_ascii=False)}": {} for item in items})


TREES = st.recursive(
    LEAVES,
    lambda below: st.one_of(
        st.dictionaries(NAMES, below, min_size=1, max_size=3).map(map_of),
        st.dictionaries(NAMES, below, min_size=1, max_size=3).map(keyed_list),
        st.sets(NAMES, min_size=1, max_size=3).map(set_of),
    ),
    max_leaves=12,
)


def places(fields: Fields) -> Iterator[list[str]]:
    """Every path in the fields but the marks of items."""
    for name, below in fields.items():
        if name != ".":
            yield [name]
            yield from ([name, *rest] for rest in places(below))


def at(fields: Fields, path: list[str]) -> Fields:
    for name in path:
        fields = fields[name]
    return fields


@given(TREES)
def test_what_was_applied_is_owned(tree: Tracked) -> None:
    assert owns_exactly(tree.fields, tree.value)


@given(st.dictionaries(NAMES, TREES, min_size=1, max_size=3).map(map_of), st.data())
def test_every_lost_field_is_seen(tree: Tracked, data: st.DataObject) -> None:
    *above, last = data.draw(st.sampled_from(list(places(tree.fields))))
    fields = copy.deepcopy(tree.fields)
    parent = at(fields, above)
    del parent[last]
    # the API server keeps no map without fields
    while above and not parent:
        *above, last = above
        parent = at(fields, above)
        del parent[last]

    assert not owns_exactly(fields, tree.value) or not fields


@given(st.dictionaries(NAMES, TREES, min_size=1, max_size=3).map(map_of), st.data())
def test_every_field_too_many_is_seen(tree: Tracked, data: st.DataObject) -> None:
    # an item of a set has no members
    path = data.draw(st.sampled_from([[], *(path for path in places(tree.fields) if not path[-1].startswith("v:"))]))
    fields = copy.deepcopy(tree.fields)
    place = at(fields, path)
    kinds = {name[0] for name in place if name != "."} or {"f"}
    added = {"f": "f:zzz", "k": 'k:{"name":"zzz"}', "v": 'v:"zzz"'}[kinds.pop()]
    place[added] = {}

    assert not owns_exactly(fields, tree.value)
