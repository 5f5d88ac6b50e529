"""Conditions of the option `where`: read, turned into ranges, or refused in one line."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ots_tunnel.errors import ConfigError
from ots_tunnel.model import KeyColumn, KeyType, Marker
from ots_tunnel.spark.reader.key_filters import Condition, selected
from ots_tunnel.spark.reader.where import parse_where

KEY = (KeyColumn("carrier", KeyType.STRING), KeyColumn("flight", KeyType.INTEGER), KeyColumn("raw", KeyType.BINARY))
LOW, HIGH = Marker.INF_MIN, Marker.INF_MAX


@pytest.mark.parametrize(
    ("text", "conditions"),
    [
        ("", []),
        ("a = 5", [("a", "EqualTo", 5)]),
        ("a<-5 AND b>='x''y'", [("a", "LessThan", -5), ("b", "GreaterThanOrEqual", "x'y")]),
        ("5 < a and 'x' = `b ``c`", [("a", "GreaterThan", 5), ("b `c", "EqualTo", "x")]),
        ("a IN (1, 2 ,3)", [("a", "In", (1, 2, 3))]),
        (
            "a between 1 and 2 and b = X'00fF'",
            [("a", "GreaterThanOrEqual", 1), ("a", "LessThanOrEqual", 2), ("b", "EqualTo", b"\0\xff")],
        ),
        ("ü LIKE 'x%' ", [("ü", "StringStartsWith", "x")]),
        ("x = 'AND'", [("x", "EqualTo", "AND")]),
    ],
)
def test_conditions_are_read(text: str, conditions: list[tuple[str, str, Any]]) -> None:
    assert parse_where(text) == tuple(Condition(*each) for each in conditions)


@given(st.text(), st.integers(), st.binary())
def test_every_value_can_be_written(text: str, number: int, binary: bytes) -> None:
    quoted = text.replace("'", "''")

    found = parse_where(f"a = '{quoted}' AND b = {number} AND c = X'{binary.hex()}'")

    assert [each.value for each in found] == [text, number, binary]


@pytest.mark.parametrize(
    "text",
    [
        "a",
        "a =",
        "a = b",
        "5 = 5",
        "a = 5 OR b = 5",
        "a = 5 AND",
        "a = 5 b = 5",
        "a IN ()",
        "a IN (1; 2)",
        "a IN 1",
        "a LIKE 'x%y%'",
        "a LIKE 5",
        "a LIKE 'x'",
        "a BETWEEN 1 OR 2",
        "a = 'x",
        "a <> 5",
        "a = 1.5",
        "a = X'0'",
        "NOT a = 5",
        "= 5",
        f"a = {'9' * 5_000}",
    ],
)
def test_anything_else_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(ConfigError, match="option 'where': found") as caught:
        parse_where(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", [((LOW,) * 3, (HIGH,) * 3)]),
        ("carrier LIKE '%'", [((LOW,) * 3, (HIGH,) * 3)]),
        ("carrier = 'c'", [(("c", LOW, LOW), ("c", HIGH, HIGH))]),
        ("flight >= 7 AND carrier = 'c'", [(("c", 7, LOW), ("c", HIGH, HIGH))]),
        ("carrier = 'c' AND carrier = 'd'", []),
        # Between neighbours there is no key, and the service refuses a range from a key to itself.
        ("carrier = 'c' AND flight = 7 AND raw > X'00' AND raw < X'0000'", []),
    ],
)
def test_conditions_are_ranges_of_keys(text: str, expected: list[Any]) -> None:
    found = selected(parse_where(text), KEY)

    assert [tuple(tuple(value for _, value in bound) for bound in each) for each in found] == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("price = 5", "option 'where': found column 'price', allowed are the keys carrier, flight, raw"),
        ("Carrier = 'c'", "option 'where': found column 'Carrier', allowed are the keys"),
        ("carrier = 5", "option 'where': column 'carrier': found a value that is no STRING of a key"),
        ("flight = 5", "option 'where': column 'flight': allowed are single values of every key before it"),
        ("carrier > 'c' AND flight = 5", "option 'where': column 'flight': allowed are single values"),
    ],
)
def test_what_ranges_cannot_express_is_named(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        selected(parse_where(text), KEY)
