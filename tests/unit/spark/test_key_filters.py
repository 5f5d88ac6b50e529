"""Filters as ranges of keys: with the filters that are left to Spark they give the rows that all filters give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import datasource as spark

from ots_tunnel.model import KeyColumn, KeyType, Marker, PrimaryKey
from ots_tunnel.protocol.key_order import key_order
from ots_tunnel.spark.reader.key_filters import push
from ots_tunnel.spark.reader.key_ranges import MAX_RANGES, MAX_VALUE_BYTES, KeyBounds, within

#: Few values, so that filters and rows meet; the ends of each type are among them.
VALUES: dict[KeyType, list[Any]] = {
    KeyType.INTEGER: [-(2**63), -1, 0, 1, 2, 2**63 - 2, 2**63 - 1],
    KeyType.STRING: ["", "\0", "a", "a\0", "aa", "b", "\ud7ff", "\ue000", "ü", "\U0010ffff", "\U0010ffff\U0010ffff"],
    KeyType.BINARY: [b"", b"\0", b"a", b"a\0", b"\x7f", b"\x80", b"\xff", b"\xff\xff"],
}
#: Values that Spark does not send for a column of this type, or that fit no bound.
STRANGE = [None, 1.5, True, 2**63, "x" * 1_024, b"x" * 1_024, "a", b"a", 0]
COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "EqualTo": lambda a, b: bool(a == b),
    "EqualNullSafe": lambda a, b: bool(a == b),
    "GreaterThan": lambda a, b: bool(a > b),
    "GreaterThanOrEqual": lambda a, b: bool(a >= b),
    "LessThan": lambda a, b: bool(a < b),
    "LessThanOrEqual": lambda a, b: bool(a <= b),
}

types = st.lists(st.sampled_from(KeyType), min_size=1, max_size=4)


def comparable(value: Any) -> Any:
    """Text in the order of its bytes, as in Spark and in the table."""
    return value.encode() if isinstance(value, str) else value


def holds(each: Any, row: dict[str, Any]) -> bool:
    """Spark's own judgement; a value of another type differs from every value, and is neither less nor greater."""
    value, name = row[each.attribute[0]], type(each).__name__
    if name in ("IsNull", "IsNotNull"):
        return (value is None) == (name == "IsNull")
    if name == "In":
        return any(type(one) is type(value) and one == value for one in each.value)
    if name == "StringStartsWith":
        return isinstance(value, str) and value.startswith(each.value)
    return type(each.value) is type(value) and COMPARISONS[name](comparable(value), comparable(each.value))


def columns(kinds: Sequence[KeyType]) -> list[KeyColumn]:
    return [KeyColumn(f"k{number}", kind) for number, kind in enumerate(kinds)]


@st.composite
def filters(draw: st.DrawFn, key: Sequence[KeyColumn]) -> Any:
    column = draw(st.sampled_from(key))
    values = st.sampled_from(VALUES[column.type]) | st.sampled_from(VALUES[column.type]) | st.sampled_from(STRANGE)
    name, path = draw(st.sampled_from([*COMPARISONS, *COMPARISONS, "In", "In", "Null", "Starts"])), (column.name,)
    if name == "In":
        return spark.In(path, tuple(draw(st.lists(values, max_size=4))))
    if name == "Null":
        return draw(st.sampled_from([spark.IsNull, spark.IsNotNull]))(path)
    if name == "Starts" and column.type is KeyType.STRING:
        return spark.StringStartsWith(path, draw(st.sampled_from(VALUES[KeyType.STRING])))
    return getattr(spark, name if name != "Starts" else "EqualTo")(path, draw(values))


def read(rows: Sequence[PrimaryKey], ranges: Sequence[KeyBounds]) -> list[PrimaryKey]:
    """What GetRange returns; it refuses a range that is empty or turned."""
    assert all(key_order(start) < key_order(end) for start, end in ranges)
    return [row for start, end in ranges for row in rows if key_order(start) <= key_order(row) < key_order(end)]


@given(st.data(), types)
def test_the_rows_are_those_of_a_filter_over_all_rows(data: st.DataObject, kinds: list[KeyType]) -> None:
    key = columns(kinds)
    keys = st.tuples(*(st.tuples(st.just(each.name), st.sampled_from(VALUES[each.type])) for each in key))
    rows: list[PrimaryKey] = sorted(data.draw(st.sets(keys, max_size=30)), key=key_order)
    given_filters = data.draw(st.lists(filters(key), max_size=5))
    points = sorted(data.draw(st.sets(keys, max_size=4)), key=key_order)
    ends = [tuple((each.name, end) for each in key) for end in (Marker.INF_MIN, Marker.INF_MAX)]
    bounds = [ends[0], *points, ends[1]]

    left, ranges = push(given_filters, key, [each.name for each in key])
    parts = [within(ranges, start, end) for start, end in pairwise(bounds)]
    found = [row for part in parts for row in read(rows, part)]

    assert [row for row in found if all(holds(each, dict(row)) for each in left)] == [
        row for row in rows if all(holds(each, dict(row)) for each in given_filters)
    ]
    assert all(any(each is one for one in given_filters) for each in left)


ONE, TWO = columns([KeyType.INTEGER]), columns([KeyType.STRING, KeyType.INTEGER])


def values(bounds: PrimaryKey) -> tuple[Any, ...]:
    return tuple(value for _, value in bounds)


@pytest.mark.parametrize(
    ("key", "given_filters", "expected", "left"),
    [
        (TWO, [spark.EqualTo(("k0",), "a")], [(("a", Marker.INF_MIN), ("a", Marker.INF_MAX))], 0),
        (TWO, [spark.EqualTo(("k0",), "a"), spark.EqualTo(("k1",), 7)], [(("a", 7), ("a", 8))], 0),
        (
            TWO,
            [spark.In(("k0",), ("b", "a", None, "b")), spark.GreaterThan(("k1",), 7)],
            [(("a", 8), ("a", Marker.INF_MAX)), (("b", 8), ("b", Marker.INF_MAX))],
            0,
        ),
        (
            TWO,
            [spark.LessThanOrEqual(("k0",), "b"), spark.EqualTo(("k1",), 7)],
            [((Marker.INF_MIN, Marker.INF_MIN), ("b", Marker.INF_MAX))],
            1,
        ),
        (TWO, [spark.StringStartsWith(("k0",), "ab")], [(("ab", Marker.INF_MIN), ("ac", Marker.INF_MIN))], 0),
        (TWO, [spark.EqualTo(("k1",), 7)], [((Marker.INF_MIN,) * 2, (Marker.INF_MAX,) * 2)], 1),
        (ONE, [spark.GreaterThan(("k0",), 2), spark.LessThan(("k0",), 2)], [], 0),
        (ONE, [spark.IsNotNull(("k0",)), spark.EqualTo(("k0",), 2**63 - 1)], [((2**63 - 1,), (Marker.INF_MAX,))], 0),
        (ONE, [spark.IsNull(("k0",))], [], 0),
        (ONE, [spark.EqualTo(("k0",), None)], [], 0),
        (ONE, [spark.Not(spark.EqualTo(("k0",), 2))], [((Marker.INF_MIN,), (Marker.INF_MAX,))], 1),
        (ONE, [spark.EqualTo(("k0", "part"), 2)], [((Marker.INF_MIN,), (Marker.INF_MAX,))], 1),
        (ONE, [spark.EqualTo(("price",), 2)], [((Marker.INF_MIN,), (Marker.INF_MAX,))], 1),
        (ONE, [spark.In(("k0",), tuple(range(MAX_RANGES + 1)))], [((Marker.INF_MIN,), (Marker.INF_MAX,))], 1),
    ],
)
def test_what_becomes_a_range(key: list[KeyColumn], given_filters: list[Any], expected: list[Any], left: int) -> None:
    found, ranges = push(given_filters, key, [*(each.name for each in key), "price"])

    assert [(values(start), values(end)) for start, end in ranges] == expected
    assert len(found) == left


def test_a_bound_is_no_longer_than_a_key_may_be() -> None:
    key = columns([KeyType.STRING])

    for size, left in ((MAX_VALUE_BYTES, 0), (MAX_VALUE_BYTES + 1, 1)):
        found, ranges = push([spark.GreaterThan(("k0",), "x" * size)], key, ["k0"])
        assert len(found) == left
        assert max(len(str(value)) for bounds in ranges for _, value in bounds[0]) <= MAX_VALUE_BYTES + 1


def test_a_key_that_the_schema_leaves_out_has_no_filter() -> None:
    found, _ = push([spark.EqualTo(("k0",), 1)], ONE, ["price"])

    assert len(found) == 1
