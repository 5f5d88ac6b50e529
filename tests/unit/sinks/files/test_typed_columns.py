"""Typed rows of records: those of the reference, whatever the record, and nothing of it is lost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ots_tunnel.errors import CodecError
from ots_tunnel.model import Action, CellOp, ChannelId, PrimaryKey, SequenceInfo
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.files.rows import typed_columns as module
from ots_tunnel.sinks.files.rows.declared import Declared
from ots_tunnel.sinks.files.rows.refusals import refusals
from ots_tunnel.sinks.files.rows.typed_columns import typed_batches
from ots_tunnel.sinks.files.rows.typed_rows import TypedRows, typed_schema
from tests.support.row_strategies import blobs, damaged, int64, sequences, texts

CHANNEL = ChannelId("channel 1")
KEY: PrimaryKey = (("name", "ü"), ("id", -5), ("raw", b"\0\xff"))
DECLARED = Declared({"i": "integer", "d": "double", "b": "boolean", "s": "string", "y": "binary", "never": "integer"})
STRICT = Declared(DECLARED.types, keeps_unknown=False)
SCHEMA = typed_schema(KEY, DECLARED)

keys = st.tuples(st.tuples(st.just("name"), texts), st.tuples(st.just("id"), int64), st.tuples(st.just("raw"), blobs))
_numbers = st.integers(-(2**53), 2**53) | st.sampled_from([2**53 + 1, 2**63 - 1])
_values = {"i": int64, "d": st.floats(allow_nan=False) | _numbers, "b": st.booleans(), "s": texts, "y": blobs}
_names = st.sampled_from([*_values, "other", "ö", ""])
_versions = st.none() | st.integers(1, 3)
#: Attributes come several times, and a few values do not fit.
cells = st.one_of(
    *(st.builds(Column, st.just(name), kind, _versions) for name, kind in _values.items()),
    st.builds(Column, _names, st.none(), st.none(), st.just(CellOp.DELETE_ALL_VERSIONS)),
    st.builds(Column, _names, st.none() | texts, _versions, st.sampled_from([*CellOp][1:])),
    st.builds(Column, st.sampled_from(["other", "ö", ""]), int64 | texts | st.booleans(), _versions),
    st.builds(Column, _names, int64, _versions),
)
records = st.builds(
    lambda action, key, columns, delete, sequence: Record(
        action, encode_row(key, columns, delete=delete, sequence=sequence)
    ),
    st.sampled_from(Action),
    keys,
    st.lists(cells, max_size=6),
    st.booleans(),
    st.none() | sequences,
)


def reference(some: Sequence[Record], declared: Declared = DECLARED) -> pa.Table:
    rows = TypedRows(declared)
    for record in some:
        rows.add(record, CHANNEL)
    return pa.Table.from_batches([rows.batch(typed_schema(KEY, declared))])


def found(some: Sequence[Record], declared: Declared = DECLARED, most: int = 2**20) -> pa.Table:
    schema = typed_schema(KEY, declared)
    batches = list(typed_batches(some, CHANNEL, schema, declared, most))
    for batch in batches:
        batch.validate(full=True)
    return pa.Table.from_batches(batches, schema).combine_chunks()


def put(*columns: Column) -> Record:
    return Record(Action.PUT, encode_row(KEY, columns, sequence=SequenceInfo(-1, 2, 3)))


def fitting(some: Sequence[Record], declared: Declared = DECLARED) -> list[Record]:
    unfit = [refusal.record for refusal in refusals(some, declared)]
    return [record for record in some if not any(record is other for other in unfit)]


def cells_of(row: Mapping[str, Any]) -> list[tuple[object, ...]]:
    """The cells of a record from its typed row; names, operations, values and versions."""
    versions = dict(row["versions"])
    others = {name: next(each for each in value.values() if each is not None) for name, value in row["others"]}
    told = {name: row[name] for name in DECLARED.types if row[name] is not None} | others
    rest = [
        (cell["name"], cell["operation"], cell["value"] and cell["value"][cell["type"]], cell["version"])
        for cell in row["cells"]
    ]
    values = [(name, "PUT", value, versions.get(name, row["version"])) for name, value in told.items()]
    return [*values, *((name, "DELETE_ALL_VERSIONS", None, None) for name in row["deleted"]), *rest]


@given(st.lists(records, max_size=5))
def test_no_cell_is_lost(some: list[Record]) -> None:
    kept = fitting(some)
    for record, row in zip(kept, found(kept).to_pylist(), strict=True):
        expected = [(cell.name, cell.op.name, cell.value, cell.timestamp_ms) for cell in record.columns]

        assert sorted(map(_comparable, cells_of(row))) == sorted(map(_comparable, expected))


def _comparable(cell: tuple[object, ...]) -> str:
    # an integer in a column of doubles is the double that is equal to it
    name, operation, value, version = cell
    is_number = name == "d" and type(value) is int and operation == "PUT" and float(value) == value
    return repr((name, operation, float(value) if is_number else value, version))


@given(st.lists(records, min_size=1, max_size=8), st.integers(1, 2_000), st.sampled_from([DECLARED, STRICT]))
def test_rows_are_those_of_the_reference(some: list[Record], most: int, declared: Declared) -> None:
    kept = fitting(some, declared)

    assert found(kept, declared, most).equals(reference(kept, declared))


@given(st.lists(records, min_size=1, max_size=5))
def test_what_does_not_fit_is_in_no_row(some: list[Record]) -> None:
    if len(fitting(some)) == len(some):
        found(some)
    else:
        with pytest.raises(CodecError, match=r"column '\w': found .*, allowed is "):
            found(some)


@given(st.lists(records, max_size=3), damaged())
def test_what_the_reference_refuses_is_refused(before: list[Record], body: bytes) -> None:
    some = [*fitting(before), Record(Action.UPDATE, body)]
    try:
        expected = reference(some)
    except CodecError:
        with pytest.raises(CodecError):
            found(some)
    else:
        assert found(some).equals(expected)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -0.0], ids=repr)
def test_numbers_that_are_rare(value: float) -> None:
    (row,) = found([put(Column("d", value))]).to_pylist()

    assert (str(row["d"]), math.copysign(1, row["d"])) == (str(value), math.copysign(1, value))


def test_untouched_deleted_and_put_can_be_told_apart() -> None:
    changes = [Column("s", None, None, CellOp.DELETE_ALL_VERSIONS), Column("i", 7, 5), Column("other", True, 5)]
    record = Record(Action.UPDATE, encode_row(KEY, changes))
    (row,) = found([record]).to_pylist()

    assert (row["i"], row["s"], row["d"], row["deleted"]) == (7, None, None, ["s"])
    assert [(name, value["boolean"]) for name, value in row["others"]] == [("other", True)]
    assert (row["version"], row["versions"], row["cells"]) == (5, [], [])


def test_without_unknown_columns_there_is_no_column_for_them() -> None:
    assert "others" not in typed_schema(KEY, STRICT).names
    assert [name for name in SCHEMA.names if name not in DECLARED.types] == [
        *("action", "channel", "sequence", "key", "deleted", "others", "version", "versions", "cells")
    ]


def test_no_records() -> None:
    assert list(typed_batches([], CHANNEL, SCHEMA, DECLARED)) == []


def test_another_key_than_the_files_is_refused() -> None:
    with pytest.raises(CodecError, match="key"):
        found([put(), Record(Action.PUT, encode_row((("id", 5),)))])


def test_without_the_twin_rows_are_in_large_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "native", None)
    record = put(Column("s", "x" * 1_000))
    count = 3 * module.REFERENCE_BYTES // record.size

    sizes = [len(batch) * record.size for batch in typed_batches([record] * count, CHANNEL, SCHEMA, DECLARED)]

    assert len(sizes) == 3
    assert all(abs(size - module.REFERENCE_BYTES) <= record.size for size in sizes[:-1])
