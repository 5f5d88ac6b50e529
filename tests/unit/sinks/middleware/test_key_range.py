"""Ranges of keys as a filter."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from pydantic import ValidationError

from ots_tunnel.config import FilterConfig, KeyRangeConfig
from ots_tunnel.errors import SinkRejected
from ots_tunnel.model import KeyValue, Marker
from ots_tunnel.sinks.middleware.key_range import KeyBounds


def bounds(begin: Any = (), end: Any = ()) -> KeyBounds:
    return KeyBounds.of(KeyRangeConfig.model_validate({"begin": begin, "end": end}))


def key(*values: KeyValue) -> tuple[tuple[str, KeyValue], ...]:
    return tuple((f"pk{number}", value) for number, value in enumerate(values))


@pytest.mark.parametrize(
    ("begin", "end", "inside", "outside"),
    [
        (["b"], ["d"], [("b", 1), ("c", 5), ("cz", -1)], [("a", 9), ("d", 0), ("e", 1)]),
        (["b", 5], [], [("b", 5), ("b", 6), ("c", -1)], [("b", 4), ("a", 9)]),
        ([], ["b", 5], [("b", 4), ("a", 9)], [("b", 5), ("c", 0)]),
        (["ü"], [], [("ü", 1), ("\U0001f600", 1)], [("z", 1)]),
    ],
)
def test_rows_lie_inside_or_outside(begin: Any, end: Any, inside: Any, outside: Any) -> None:
    found = bounds(begin, end)
    assert [found.holds(key(*values)) for values in inside] == [True] * len(inside)
    assert [found.holds(key(*values)) for values in outside] == [False] * len(outside)


def test_bytes_are_given_in_base64() -> None:
    found = bounds([{"base64": base64.b64encode(b"\x80").decode()}])
    assert found.holds(key(b"\x80"))
    assert not found.holds(key(b"\x7f\xff"))


@pytest.mark.parametrize(
    ("begin", "row", "text"),
    [
        ([5], ("a",), "keyRange.begin: key column 'pk0' is of type STRING, found INTEGER"),
        (["a", 1], ("a",), "keyRange.begin: found 2 values, the key has 1 columns"),
    ],
)
def test_a_bound_that_does_not_fit_the_table_is_named(begin: Any, row: Any, text: str) -> None:
    with pytest.raises(SinkRejected, match=text):
        bounds(begin).holds(key(*row))


@pytest.mark.parametrize("wrong", [{}, {"begin": [1.5]}, {"begin": [True]}, {"begin": [{"base64": "%"}]}])
def test_a_wrong_range_is_refused(wrong: Any) -> None:
    with pytest.raises(ValidationError):
        FilterConfig.model_validate({"keyRange": wrong})


def test_columns_that_no_bound_names_may_hold_anything() -> None:
    placeholder = key("b", Marker.AUTO_INCREMENT)
    assert bounds(["b"], ["c"]).holds(placeholder)
    with pytest.raises(SinkRejected, match=r"keyRange\.end: key column 'pk1' is of type Marker, found INTEGER"):
        bounds([], ["b", 5]).holds(placeholder)
