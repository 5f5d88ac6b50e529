"""The compiled transform against its reference: the same records, the same counts, the same errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ots_tunnel.config import DeliveryConfig
from ots_tunnel.errors import CodecError, SinkRejected
from ots_tunnel.model import Action, CellOp, KeyValue, Marker, PrimaryKey, SequenceInfo
from ots_tunnel.protocol import tunnel_pb2
from ots_tunnel.protocol.page import read_page
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.middleware.key_range import KeyBounds
from ots_tunnel.sinks.middleware.selection import Selection
from ots_tunnel.sinks.middleware.transform import Omitted, Transform
from tests.support.row_strategies import blobs, damaged, encode, int64, key_values, rows, sequences, texts, values

pytestmark = pytest.mark.usefixtures("compiled_codec")

NAMES = ("a", "b", "price", "ö", "")
names = st.sampled_from(NAMES)
cells = st.builds(Column, names, values, st.none() | int64) | st.builds(
    Column, names, st.none(), st.none() | int64, st.sampled_from([*CellOp][1:])
)
keys: st.SearchStrategy[PrimaryKey] = st.tuples(
    st.tuples(st.just("name"), st.sampled_from(["", "a", "ab", "ü"]) | texts),
    st.tuples(st.just("id"), st.integers(-2, 2) | int64),
    st.tuples(st.just("raw"), st.sampled_from([b"", b"\x01", b"\x01\x02"]) | blobs),
)
bodies = st.builds(
    lambda key, columns, delete, sequence: encode_row(key, columns, delete=delete, sequence=sequence),
    keys,
    st.lists(cells, max_size=6),
    st.booleans(),
    st.none() | sequences,
)
records = st.builds(Record, st.sampled_from(Action), bodies, st.none() | bodies)
sets = st.frozensets(names.map(str.encode), max_size=3)
renames = st.dictionaries(names.map(str.encode), st.sampled_from([b"a", b"b", b"new", b"price"]), max_size=2)
_values = (st.sampled_from(["", "a", "ab"]), st.integers(-1, 1), st.sampled_from([b"", b"\x01"]))
bounds = st.integers(0, 3).flatmap(lambda count: st.tuples(*_values[:count])) | st.sampled_from([(5,), ("a", 2**63)])
transforms = st.builds(
    Transform,
    st.none() | sets,
    sets,
    renames,
    st.frozensets(st.sampled_from(Action), min_size=1),
    st.dictionaries(st.sampled_from(["name", "id", "absent"]), st.sampled_from(["", "a", "ü"]), max_size=1),
    st.none() | st.builds(KeyBounds, bounds, bounds),
)


def parts(transform: Transform, some: Sequence[Record]) -> tuple[list[Record], Omitted, str]:
    """Records and counts, and the error behind them."""
    selection, omitted, passed, at = Selection(transform), Omitted(), list[Record](), 0
    found = list(some)
    while at < len(found):
        before = replace(omitted)
        try:
            part, at = selection.part(found, at, omitted)
        except (CodecError, SinkRejected) as error:
            return passed, before, str(error)
        passed += part
    return passed, omitted, ""


def in_a_page(some: Sequence[Record]) -> list[Record]:
    """The same records as views of a page, where others lie before and behind their bytes."""
    message = tunnel_pb2.ReadRecordsResponse(next_token="next")
    for each in some:
        message.records.add(action_type=int(each.action), record=each.body, origin_record=each.origin)
    return read_page(message.SerializeToString()).records


def reference(transform: Transform, some: Sequence[Record]) -> tuple[list[Record], Omitted, str]:
    """The same by the reference."""
    omitted, passed = Omitted(), list[Record]()
    for record in some:
        before = replace(omitted)
        try:
            passed += transform.apply([record], omitted)
        except (CodecError, SinkRejected) as error:
            return passed, before, str(error)
    return passed, omitted, ""


@given(st.lists(records, max_size=8), transforms)
def test_records_are_those_of_the_reference(some: list[Record], transform: Transform) -> None:
    assert parts(transform, some) == reference(transform, some)


#: Keys that no table has: a name twice, more columns than four, values of ranges.
odd_keys: st.SearchStrategy[PrimaryKey] = st.lists(
    st.tuples(st.sampled_from(["name", "id", "absent"]), st.sampled_from(["", "a", "ü"]) | key_values), max_size=10
).map(tuple)
#: Rows of more cells than the twin remembers.
wide = st.builds(
    lambda key, columns, times: encode_row(key, columns * times),
    keys,
    st.lists(cells, min_size=1, max_size=7),
    st.integers(10, 30),
)
_wires = bodies | rows.map(encode) | damaged() | odd_keys.map(encode_row) | wide


@given(st.lists(st.builds(Record, st.sampled_from(Action), _wires), max_size=3), transforms)
@example([Record(Action.PUT, bytes(7))], Transform(key_bounds=KeyBounds()))
def test_damage_is_found_as_the_reference_finds_it(some: list[Record], transform: Transform) -> None:
    expected = reference(transform, some)

    assert parts(transform, some) == expected
    assert parts(transform, in_a_page(some)) == expected


@given(st.lists(st.tuples(st.just("name"), key_values), min_size=1, max_size=1), transforms)
def test_keys_of_every_kind_are_judged_as_by_the_reference(key: PrimaryKey, transform: Transform) -> None:
    some = [Record(Action.PUT, encode_row(tuple(key), ()))]

    assert parts(transform, some) == reference(transform, some)


@pytest.mark.parametrize("prefix", ["a", "b"])
def test_of_two_key_columns_of_one_name_the_same_one_counts(prefix: str) -> None:
    """No table has them; a damaged row may, whose checksums have eight bits."""
    some = [Record(Action.PUT, encode_row((("name", "a"), ("name", "b"))))]
    transform = Transform(key_prefixes={"name": prefix})

    assert parts(transform, some) == reference(transform, some)


@pytest.mark.parametrize("bound", [2**63, -(2**63) - 1, True, Marker.INF_MIN], ids=repr)
def test_a_bound_that_no_key_can_have_is_left_to_the_reference(bound: KeyValue) -> None:
    """No document can give one."""
    some = [Record(Action.PUT, encode_row((("id", number),))) for number in (-(2**63), 2**63 - 1)]

    for limits in (KeyBounds((bound,)), KeyBounds(end=(bound,))):
        transform = Transform(key_bounds=limits)
        assert parts(transform, some) == reference(transform, some)


def settings(**delivery: Any) -> Transform:
    made = Transform.of(DeliveryConfig.model_validate(delivery))
    assert made is not None
    return made


def change(number: int, *columns: Column, action: Action = Action.PUT) -> Record:
    key = (("name", "a"), ("id", number))
    return Record(action, encode_row(key, columns, sequence=SequenceInfo(0, 1, number)))


USUAL = [change(number, Column("a", number, 5), Column("b", "x", 5)) for number in range(5)]


@pytest.mark.parametrize(
    "delivery",
    [
        {"columns": {"include": ["a"]}},
        {"columns": {"exclude": ["a"], "rename": {"b": "c"}}},
        {"filter": {"actions": ["UPDATE"]}},
        {"filter": {"keyPrefix": {"name": "a"}}},
        {"filter": {"keyRange": {"begin": ["a", 1], "end": ["a", 3]}}},
    ],
    ids=str,
)
def test_usual_records_are_never_left_to_the_reference(
    delivery: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    transform, left = settings(**delivery), list[object]()
    expected = reference(transform, USUAL)
    monkeypatch.setattr(Transform, "apply", lambda *call: left.append(call) or [])

    assert parts(transform, USUAL) == expected
    assert not left


def test_a_record_that_is_left_to_the_reference_ends_no_part_for_good() -> None:
    """The extension of a row index that looks like a checksum is rare, and the twin does not know it."""
    key = (("name", "a"), ("id", 9))
    rare = Record(Action.PUT, encode_row(key, (Column("a", 1, 5),), sequence=SequenceInfo(0, 1, 655_370)))
    some, transform = [*USUAL, rare, *USUAL], settings(columns={"exclude": ["b"]})

    assert parts(transform, some) == reference(transform, some)


@pytest.mark.parametrize("columns", [{"exclude": ["b"]}, {"rename": {"a": "c"}}])
def test_a_cell_with_a_wrong_checksum_gets_no_right_one(columns: dict[str, Any]) -> None:
    """A row that is joined anew has a checksum of its own, which would make the damage look sound."""
    body = bytearray(change(1, Column("a", "xyz", 5), Column("b", 1, 5)).body)
    body[body.index(b"xyz")] ^= 1
    some = [Record(Action.PUT, bytes(body))]

    for apply in (parts, reference):
        passed, _, error = apply(settings(columns=columns), some)
        assert not passed
        assert "checksum" in error


@pytest.mark.parametrize("columns", [{"exclude": ["b"]}, {"rename": {"a": "c"}}, {"exclude": ["absent"]}])
def test_a_second_row_behind_the_first_is_not_lost_in_silence(columns: dict[str, Any]) -> None:
    """A row that is joined anew would be without it, and every sink would take it."""
    row = change(1, Column("a", "xyz", 5), Column("b", 1, 5)).body
    some = [Record(Action.PUT, row + row[4:])]

    for apply in (parts, reference):
        passed, _, error = apply(settings(columns=columns), some)
        assert not passed
        assert "bytes after it" in error
