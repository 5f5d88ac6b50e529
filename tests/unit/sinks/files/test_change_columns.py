"""Arrow arrays of records: those of the reference, whatever the record."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ots_tunnel.errors import CodecError
from ots_tunnel.model import Action, CellOp, ChannelId, PrimaryKey, SequenceInfo
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.plainbuffer.compiled import native
from ots_tunnel.protocol.plainbuffer.tags import EXTENSION
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.files.rows import change_columns as module
from ots_tunnel.sinks.files.rows.arrow_rows import ArrowRows, schema_of
from ots_tunnel.sinks.files.rows.change_columns import change_batches
from ots_tunnel.sinks.files.rows.coded_texts import coded
from tests.support.row_strategies import blobs, columns, damaged, int64, sequences, texts

CHANNEL = ChannelId("channel 1")
KEY: PrimaryKey = (("name", "ü"), ("id", -5), ("raw", b"\0\xff"))
SCHEMA = schema_of(KEY)

keys = st.tuples(st.tuples(st.just("name"), texts), st.tuples(st.just("id"), int64), st.tuples(st.just("raw"), blobs))
records = st.builds(
    lambda action, key, cells, delete, sequence: Record(
        action, encode_row(key, cells, delete=delete, sequence=sequence)
    ),
    st.sampled_from(Action),
    keys,
    st.lists(columns.filter(lambda cell: cell.op is not CellOp.PUT or cell.value is not None), max_size=6),
    st.booleans(),
    st.none() | sequences,
)


def reference(some: Sequence[Record]) -> pa.Table:
    rows = ArrowRows()
    for record in some:
        rows.add(record, CHANNEL)
    return pa.Table.from_batches([rows.batch(SCHEMA)])


def found(some: Sequence[Record], most: int = 2**20) -> pa.Table:
    batches = list(change_batches(some, CHANNEL, SCHEMA, most))
    for batch in batches:
        batch.validate(full=True)
    return pa.Table.from_batches(batches, SCHEMA).combine_chunks()


def put(*cells: Column) -> Record:
    return Record(Action.PUT, encode_row(KEY, cells, sequence=SequenceInfo(-1, 2, 3)))


@given(st.lists(records, min_size=1, max_size=20), st.integers(1, 2_000))
def test_rows_are_those_of_the_reference(some: list[Record], most: int) -> None:
    assert found(some, most).equals(reference(some))


@given(st.lists(records, min_size=1, max_size=20), st.integers(1, 2_000), st.booleans())
def test_codes_stand_for_the_texts_of_the_reference(some: list[Record], most: int, by_twin: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        if not by_twin:
            patch.setattr(module, "native", None)
        batches = list(change_batches(some, CHANNEL, coded(SCHEMA), most))

    for batch in batches:
        batch.validate(full=True)
    assert pa.Table.from_batches(batches, coded(SCHEMA)).cast(SCHEMA).combine_chunks().equals(reference(some))


@given(st.lists(records, max_size=3), damaged())
def test_what_the_reference_refuses_is_refused(before: list[Record], body: bytes) -> None:
    some = [*before, Record(Action.UPDATE, body)]
    try:
        expected = reference(some)
    except CodecError:
        with pytest.raises(CodecError):
            found(some)
    else:
        assert found(some).equals(expected)


@pytest.mark.parametrize("count", range(18))
def test_bits_are_right_at_every_length(count: int) -> None:
    values = [True, None, b"b", 7, "s", False, 0.5]
    cells = [
        Column("c", value, None if index % 3 else 5, CellOp.INCREMENT)
        for index, value in enumerate((values * 3)[:count])
    ]

    assert found([put(*cells)]).equals(reference([put(*cells)]))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -0.0], ids=repr)
def test_numbers_that_are_rare(value: float) -> None:
    (row,) = found([put(Column("v", value))]).to_pylist()
    other = row["cells"][0]["value"]["double"]

    assert (str(other), math.copysign(1, other)) == (str(value), math.copysign(1, value))


def test_no_records() -> None:
    assert list(change_batches([], CHANNEL, SCHEMA)) == []


@pytest.mark.usefixtures("compiled_codec")
def test_well_formed_records_make_no_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    some = [put(Column("v", 1)), Record(Action.DELETE, encode_row(KEY, delete=True))]
    expected = reference(some)
    monkeypatch.setattr(ArrowRows, "add", lambda *_: pytest.fail("the reference was asked"))

    assert found(some).equals(expected)


@pytest.mark.usefixtures("compiled_codec")
def test_a_rare_record_goes_through_the_reference_in_its_place() -> None:
    """An extension without a block."""
    body = encode_row(KEY)
    rare = Record(Action.PUT, body[:-2] + bytes((EXTENSION, 0, 0, 0, 0)) + body[-2:])
    some = [put(Column("v", "a" * 9)), rare, rare, put(Column("w", b"2"))]

    assert [len(batch) for batch in change_batches(some, CHANNEL, SCHEMA)] == [1, 2, 1]
    assert found(some).equals(reference(some))


def test_without_the_twin_rows_are_in_large_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "native", None)
    record = put(Column("v", "x" * 1_000))
    count = 3 * module.REFERENCE_BYTES // record.size

    sizes = [len(batch) * record.size for batch in change_batches([record] * count, CHANNEL, SCHEMA)]

    assert len(sizes) == 3
    assert all(abs(size - module.REFERENCE_BYTES) <= record.size for size in sizes[:-1])


@pytest.mark.parametrize(
    "key",
    [KEY[1:], (*KEY, ("more", 1)), (("other", "x"), *KEY[1:]), (KEY[2], KEY[1], KEY[0]), (("name", 1), *KEY[1:])],
    ids=["fewer columns", "more columns", "another name", "another order", "another type"],
)
def test_another_key_than_the_files_is_refused(key: PrimaryKey) -> None:
    with pytest.raises(CodecError, match="key"):
        found([put(), Record(Action.PUT, encode_row(key))])


def test_columns_of_one_type_in_another_order_are_refused() -> None:
    schema = schema_of((("a", "1"), ("b", "2")))
    record = Record(Action.DELETE, encode_row((("b", "2"), ("a", "1")), delete=True))

    with pytest.raises(CodecError, match="found b, a, allowed are a, b"):
        list(change_batches([record], CHANNEL, schema))


@pytest.mark.usefixtures("compiled_codec")
def test_memory_of_the_twin_outlives_it() -> None:
    assert native is not None
    (columns_, end) = native.change_log([put(Column("v", "text"))], 0, ((b"name", 3), (b"id", 0), (b"raw", 7)), 1)
    assert columns_ is not None
    _, filled, _ = columns_

    block = filled[-3]
    view = memoryview(block)
    del columns_, filled, block

    assert end == 1
    assert (bytes(view), view.readonly) == (b"text", True)
