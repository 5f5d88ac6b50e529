"""The columns of a table by its description and some rows."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ots_tunnel.client.table_calls import StreamDescription, TableDescription
from ots_tunnel.errors import ConfigError
from ots_tunnel.model import KeyColumn, KeyType
from ots_tunnel.protocol.plainbuffer.codec import DecodedRow, decode_row, encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.spark.reader.inference import infer_columns

KEY = (KeyColumn("b", KeyType.STRING), KeyColumn("a", KeyType.INTEGER, auto_increment=True))
KEYS = [("b", "string"), ("a", "bigint")]


def table(*defined: tuple[str, str]) -> TableDescription:
    return TableDescription("t", KEY, -1, 1, 86_400, StreamDescription(False), defined_columns=defined)


def row(**cells: Any) -> DecodedRow:
    return decode_row(encode_row((("b", "x"), ("a", 1)), [Column(name, value) for name, value in cells.items()]))


def test_the_key_then_defined_columns_then_those_of_rows_by_name() -> None:
    found = infer_columns(table(("z", "DOUBLE"), ("y", "BLOB")), [row(d=1, z=1), row(c="x", e=True)])

    assert found == [*KEYS, ("z", "double"), ("y", "binary"), ("c", "string"), ("d", "bigint"), ("e", "boolean")]


def test_without_rows_there_are_the_key_and_the_defined_columns() -> None:
    assert infer_columns(table(("z", "INTEGER")), []) == [*KEYS, ("z", "bigint")]


@pytest.mark.parametrize(
    ("values", "on_conflict", "kind"),
    [
        ([1, 2.5], "error", "double"),
        ([1, "x"], "string", "string"),
        ([b"x", True], "string", "string"),
        (["x", 1], "null", "bigint"),
        ([1, 2.5, "x"], "null", "double"),
        ([b"x", "x"], "null", "string"),
    ],
)
def test_types_together(values: list[Any], on_conflict: str, kind: str) -> None:
    assert infer_columns(table(), [row(c=value) for value in values], on_conflict) == [*KEYS, ("c", kind)]


@pytest.mark.parametrize(("values", "defined"), [([1, "x"], ()), ([1], (("c", "STRING"),))])
def test_a_conflict_is_named_in_one_line(values: list[Any], defined: tuple[tuple[str, str], ...]) -> None:
    with pytest.raises(ConfigError, match=r"column 'c': found values of types bigint and string.*'onTypeConflict'"):
        infer_columns(table(*defined), [row(c=value) for value in values])


@given(
    st.permutations([row(c=1), row(c=2.5), row(c="x"), row(d=True), row(d=b"x"), row(e=1)]),
    st.sampled_from(["string", "null"]),
)
def test_the_order_of_rows_does_not_matter(rows: list[DecodedRow], on_conflict: str) -> None:
    assert infer_columns(table(), rows, on_conflict) == infer_columns(table(), sorted(rows, key=repr), on_conflict)
