"""Column lists of the option `columns`: names, types, and what to use instead of others."""

from __future__ import annotations

import pytest

from ots_tunnel.errors import ConfigError
from ots_tunnel.spark.columns import COLUMN_TYPES
from ots_tunnel.spark.reader.ddl import TYPES, parse_columns, parse_names


def test_the_types_are_those_of_the_columns() -> None:
    assert tuple(COLUMN_TYPES) == TYPES


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("", ()),
        ("price DOUBLE", (("price", "double"),)),
        (" a  bigint ,b: String,c LONG", (("a", "bigint"), ("b", "string"), ("c", "bigint"))),
        ("`order id` BIGINT, `a``b, c(d` BOOLEAN", (("order id", "bigint"), ("a`b, c(d", "boolean"))),
        ("ü.x BINARY", (("ü.x", "binary"),)),
    ],
)
def test_lists_are_read(text: str, columns: tuple[tuple[str, str], ...]) -> None:
    assert parse_columns(text) == columns
    assert parse_names(text) == tuple((name, "") for name, _ in columns)


def test_names_need_no_types() -> None:
    assert parse_names("a, `b c` DOUBLE,d") == (("a", ""), ("b c", ""), ("d", ""))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a INT", "column 'a': found type int, allowed are bigint, .*; use bigint"),
        ("a INTEGER", "found type integer, .*; use bigint"),
        ("a smallint", "found type smallint, .*; use bigint"),
        ("a FLOAT", "found type float, .*; use double"),
        ("a DECIMAL(10, 2)", r"found type decimal\(10, 2\), .*; use double"),
        ("a VARCHAR(10)", r"found type varchar\(10\), .*; use string"),
        ("a CHAR(1)", "; use string"),
        ("a BLOB", "; use binary"),
        ("a TIMESTAMP", "; use bigint or string, as stored, and cast it"),
        ("a DATE", "; use bigint or string, as stored, and cast it"),
        ("a ARRAY<INT>", "found type array<int>, allowed are bigint, double, boolean, string, binary$"),
        ("a", "column 'a': found no type"),
        ("a BIGINT NOT NULL", "column 'a': found NOT NULL"),
        ("a BIGINT, b DOUBLE, a STRING", "column 'a': found twice"),
        ("a BIGINT,,b BIGINT", "option 'columns': found 'a BIGINT,,b BIGINT', allowed is a list"),
        ("a BIGINT,", "option 'columns': found"),
        ("`a BIGINT", "option 'columns': found"),
        ("a STRUCT<x:(,y", "option 'columns': found"),
    ],
)
def test_mistakes_are_named_in_one_line(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        parse_columns(text)
    assert "\n" not in str(caught.value)
