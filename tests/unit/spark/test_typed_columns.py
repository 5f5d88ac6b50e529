"""Typed columns of a page by the compiled twin: those of the reference, whatever the rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ots_tunnel.client.table_calls import RangePage
from ots_tunnel.errors import CodecError
from ots_tunnel.model import PrimaryKey
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.plainbuffer.tags import HEADER
from ots_tunnel.spark import columns as module
from ots_tunnel.spark.batches import batch_by_reference, typed_batches
from ots_tunnel.spark.columns import compiled_batch
from tests.support.row_strategies import blobs, damaged, int64, texts

COLUMNS = (
    ("id", "bigint"),
    ("raw", "binary"),
    ("text", "string"),
    ("flag", "boolean"),
    ("amount", "double"),
    ("ü", "string"),
)
#: What each column may hold, and a column that nobody wants.
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "text": texts,
    "flag": st.booleans(),
    "amount": st.floats(allow_nan=False) | int64,
    "ü": texts,
    "other": texts | int64 | blobs,
}
keys = st.tuples(st.tuples(st.just("id"), int64), st.tuples(st.just("raw"), blobs))
#: Each column at most once, in any order.
cells = st.sets(st.sampled_from(sorted(VALUES))).flatmap(
    lambda names: st.tuples(*(st.builds(Column, st.just(name), VALUES[name], st.none() | int64) for name in names))
)


def page(*rows: tuple[PrimaryKey, Iterable[Column]]) -> bytes:
    return HEADER + b"".join(encode_row(key, list(some), header=False) for key, some in rows)


def compiled(rows: bytes, columns: tuple[tuple[str, str], ...] = COLUMNS) -> pa.RecordBatch:
    batch = compiled_batch(columns, rows)
    assert batch is not None
    batch.validate(full=True)
    return batch


def typed(rows: bytes) -> list[pa.RecordBatch]:
    return list(typed_batches(COLUMNS, iter([RangePage(rows, None)])))


KEY: PrimaryKey = (("id", 7), ("raw", b"\0"))
pytestmark = pytest.mark.usefixtures("compiled_codec")


@given(st.lists(st.tuples(keys, cells), max_size=20))
def test_rows_are_those_of_the_reference(rows: list[tuple[PrimaryKey, tuple[Column, ...]]]) -> None:
    assert compiled(page(*rows)).equals(batch_by_reference(COLUMNS, page(*rows)))


@given(damaged())
def test_damaged_rows_are_those_of_the_reference_or_left_to_it(rows: bytes) -> None:
    try:
        expected = batch_by_reference(COLUMNS, rows)
    except CodecError:
        return
    found = compiled_batch(COLUMNS, rows)
    assert found is None or found.equals(expected)


@given(st.lists(st.tuples(keys, cells), min_size=1, max_size=5), st.data())
def test_one_wrong_byte_is_never_taken(rows: list[tuple[PrimaryKey, tuple[Column, ...]]], data: st.DataObject) -> None:
    """What nobody wants is left out: there a checksum alone decides, which has eight bits."""
    whole = bytearray(page(*((key, [cell for cell in some if cell.name != "other"]) for key, some in rows)))
    whole[data.draw(st.integers(0, len(whole) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        expected = batch_by_reference(COLUMNS, bytes(whole))
    except CodecError:
        assert compiled_batch(COLUMNS, bytes(whole)) is None
    else:
        assert compiled(bytes(whole)).equals(expected)


@pytest.mark.parametrize("count", range(18))
def test_bits_are_right_at_every_length(count: int) -> None:
    rows = [(KEY, [Column("flag", index % 3 == 0)] if index % 2 else [Column("text", "x")]) for index in range(count)]

    assert compiled(page(*rows)).equals(batch_by_reference(COLUMNS, page(*rows)))


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 64, 1_000])
def test_any_number_of_columns(count: int) -> None:
    columns = tuple((f"c{number}", "bigint") for number in range(count))
    rows = page((KEY, [Column(f"c{number}", number) for number in range(0, 1_024, 3)]))

    assert compiled(rows, columns).equals(batch_by_reference(columns, rows))


def test_no_rows() -> None:
    assert typed(b"") == []
    assert typed(HEADER) == []
    assert compiled(HEADER).num_rows == 0


@pytest.mark.parametrize("value", [2**53 + 1, -(2**63), 2**63 - 1])
def test_an_integer_in_a_column_of_doubles_is_the_nearest_one(value: int) -> None:
    rows = page((KEY, [Column("amount", value)]))

    assert compiled(rows).column("amount").to_pylist() == [float(value)]


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("text", 5, "bigint"),
        ("amount", "x", "string"),
        ("flag", 1, "bigint"),
        ("ü", b"b", "binary"),
        ("amount", True, "boolean"),
    ],
)
def test_a_value_of_another_type_is_named(name: str, value: Any, found: str) -> None:
    rows = page((KEY, [Column("other", 1)]), (KEY, [Column(name, value)]))

    with pytest.raises(CodecError, match=f"column '{name}': found {found} in the row .*, the schema says [a-z]*; "):
        typed(rows)


@pytest.mark.parametrize("at", [0, 10, -3, -1])
def test_a_wrong_byte_is_refused_also_in_what_nobody_wants(at: int) -> None:
    rows = bytearray(page((KEY, [Column("other", "some text")])))
    rows[at] ^= 1

    with pytest.raises(CodecError):
        typed(bytes(rows))


def test_a_row_that_is_cut_off_is_refused() -> None:
    whole = page((KEY, [Column("text", "x")]), (KEY, [Column("flag", True), Column("other", b"")]))
    first = len(page((KEY, [Column("text", "x")])))

    for size in {*range(1, len(whole))} - {len(HEADER), first}:
        with pytest.raises(CodecError):
            typed(whole[:size])


def test_a_name_that_comes_twice_is_left_to_the_reference() -> None:
    twice = page((KEY, [Column("text", "new", 2), Column("text", "old", 1)]))

    assert compiled_batch(COLUMNS, twice) is None
    assert compiled_batch((*COLUMNS, ("id", "bigint")), page((KEY, []))) is None


def test_without_the_twin_the_reference_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = page((KEY, [Column("text", "x")]))
    with_twin = typed(rows)
    monkeypatch.setattr(module, "native", None)

    assert typed(rows) == with_twin
