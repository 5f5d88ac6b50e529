"""The compiled twin against the Python reference: the same results for any row, the same errors for any damage."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable
from typing import Any

import fastcrc
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ots_tunnel.errors import CodecError
from ots_tunnel.model import Action
from ots_tunnel.protocol import table_pb2, tunnel_pb2
from ots_tunnel.protocol.page import encode_batch_write_in_python, read_page_in_python
from ots_tunnel.protocol.plainbuffer import compiled
from ots_tunnel.protocol.plainbuffer.codec import DecodedRow
from ots_tunnel.protocol.plainbuffer.offsets import rows_of_page, split_rows
from ots_tunnel.protocol.plainbuffer.spans import scan_row, scan_row_in_python
from ots_tunnel.protocol.plainbuffer.tags import HEADER
from ots_tunnel.protocol.record import PythonRecord
from tests.support.row_strategies import damaged, encode, rows

native = compiled.native
pytestmark = pytest.mark.usefixtures("compiled_codec")

LOOKS: dict[str, Callable[[Any], object]] = {
    name: lambda record, name=name: getattr(record, name)
    for name in ("key", "primary_key", "columns", "sequence", "write_body", "size", "body", "origin_columns")
}
LOOKS["decode_columns"] = lambda record: record.decode_columns()


def outcome(look: Callable[[Any], object], record: object) -> object:
    """Everything that can be read from a record; NaN and signed zero differ by their text."""
    try:
        return repr(look(record))
    except CodecError as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("look", LOOKS)
@given(wire=rows.map(encode) | damaged(), action=st.sampled_from(Action))
def test_a_record_equals_its_reference(look: str, wire: bytes, action: Action) -> None:
    ours, reference = native.Record(action, wire), PythonRecord(action, wire)

    assert outcome(LOOKS[look], ours) == outcome(LOOKS[look], reference)


@given(rows, st.sampled_from(Action))
def test_single_columns_are_those_of_the_row(row: DecodedRow, action: Action) -> None:
    wire = encode(row)
    for name in {"absent", *(column.name for column in row.columns)}:
        ours = outcome(lambda record, name=name: record.column(name), native.Record(action, wire))
        reference = outcome(lambda record, name=name: record.column(name), PythonRecord(action, wire))
        # A put without a value elsewhere in the row does not matter for this column.
        assert ours == reference or "put without a value" in str(reference)


def test_a_column_with_a_wrong_checksum_is_refused() -> None:
    wire = bytearray(
        bytes.fromhex(
            "75000000 01030402000000706b05060000000301000000760ab1 0203040100000063 0506000000030100000078 0af4 09c1"
        )
    )
    wire[-5] ^= 1  # the value's last byte

    with pytest.raises(CodecError, match="checksum"):
        native.Record(Action.PUT, bytes(wire)).column("c")


@given(rows)
def test_records_survive_pickling(row: DecodedRow) -> None:
    record = native.Record(Action.PUT, encode(row))

    assert pickle.loads(pickle.dumps(record)) == record


pages = st.builds(
    tunnel_pb2.ReadRecordsResponse,
    records=st.lists(
        st.builds(
            tunnel_pb2.Record,
            action_type=st.sampled_from([1, 2, 3]),
            record=rows.map(encode) | st.binary(max_size=300),
            origin_record=st.none() | st.binary(max_size=20),
        ),
        max_size=5,
    ),
    next_token=st.text(st.characters(exclude_categories=["Cs"]), max_size=300),
    may_more_record=st.none() | st.booleans(),
)


@st.composite
def damaged_pages(draw: st.DrawFn) -> bytes:
    wire = bytearray(draw(pages).SerializeToString())
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(wire)))
        wire[place : place + draw(st.integers(0, 2))] = draw(st.binary(max_size=2))
    return bytes(wire)


@given(pages)
def test_sound_pages_are_read_by_the_twin(page: tunnel_pb2.ReadRecordsResponse) -> None:
    assert native.read_page(page.SerializeToString()) is not None


@given(pages.map(lambda page: page.SerializeToString()) | damaged_pages())
@example(b"")
def test_a_page_equals_its_reference(wire: bytes) -> None:
    ours = native.read_page(wire)
    if ours is not None:  # None means that the reference has to read it
        assert repr(ours) == repr(tuple(read_page_in_python(wire)))
        assert [record.body for record in ours[0]] == [record.body for record in read_page_in_python(wire).records]


def spans_of(read: Callable[..., object], wire: bytes, offset: int, *, verify: bool) -> object:
    """The parts of a row with their types, or the error of reading it."""
    try:
        row = read(wire, offset, verify=verify)
        return repr(row), type(row)
    except CodecError as error:
        return f"{type(error).__name__}: {error}"


@given(rows.map(encode) | damaged(), st.integers(0, 8), st.booleans())
def test_spans_equal_those_of_the_reference(wire: bytes, more: int, verify: bool) -> None:
    for offset in (4, more):
        ours = spans_of(scan_row, wire, offset, verify=verify)
        assert ours == spans_of(scan_row_in_python, wire, offset, verify=verify)


@given(rows)
def test_sound_rows_without_extension_are_scanned_by_the_twin(row: DecodedRow) -> None:
    wire = encode(row)

    assert (native.scan_row(wire, 4, True) is not None) == (row.sequence is None)


def rows_of(read: Callable[[bytes], list[bytes]], page: bytes) -> object:
    """The rows of a page, or the error of reading it."""
    try:
        return read(page)
    except CodecError as error:
        return f"{type(error).__name__}: {error}"


_pages_of_rows = st.lists(rows.map(lambda row: encode(row, header=False)), max_size=4).map(b"".join).map(HEADER.__add__)


@given(_pages_of_rows | damaged() | st.binary(max_size=40))
@example(b"")
@example(HEADER)
def test_the_rows_of_a_page_are_those_of_the_reference(page: bytes) -> None:
    assert rows_of(rows_of_page, page) == rows_of(lambda buf: [HEADER + row for row in split_rows(buf)], page)


@given(st.lists(rows, min_size=1, max_size=4))
def test_sound_pages_without_extension_are_parted_by_the_twin(page: list[DecodedRow]) -> None:
    wire = HEADER + b"".join(encode(row, header=False) for row in page)

    assert (native.rows_of_page(wire, 4) is not None) == all(row.sequence is None for row in page)


def index_is_usual(row: DecodedRow) -> bool:
    """Whether the row index is usual; a larger one looks like a row without extension and is left to the reference."""
    return row.sequence is None or 0 <= row.sequence.row_index < 655_360


usual = rows.filter(index_is_usual).map(encode)


_requests = st.lists(st.lists(st.tuples(st.sampled_from(Action), usual), max_size=5), max_size=3)


@given(_requests, st.text("ab_é", max_size=200))
def test_batches_equal_their_reference(requests: list[list[tuple[Action, bytes]]], table: str) -> None:
    ours = native.encode_batch_writes(table, [[native.Record(*change) for change in each] for each in requests])
    reference = [encode_batch_write_in_python(table, [PythonRecord(*change) for change in each]) for each in requests]

    assert ours == reference


@given(rows.map(encode) | damaged())
def test_batch_leaves_unsound_records_to_the_reference(wire: bytes) -> None:
    ours = native.encode_batch_writes("t", [[native.Record(Action.PUT, wire)]])

    assert ours is None or ours == [encode_batch_write_in_python("t", [PythonRecord(Action.PUT, wire)])]


outcomes = st.builds(
    table_pb2.RowInBatchWriteRowResponse,
    is_ok=st.booleans() | st.just(True),
    error=st.none() | st.builds(table_pb2.Error, code=st.just("OTSServerBusy"), message=st.just("busy")),
    consumed=st.none(),
)


@given(st.lists(outcomes, max_size=4), st.integers(0, 4))
def test_answers_are_all_stored_or_not(answered: list[table_pb2.RowInBatchWriteRowResponse], count: int) -> None:
    answer = table_pb2.BatchWriteRowResponse()
    answer.tables.add(table_name="t").rows.extend(answered)
    stored = len(answered) == count and all(row.is_ok for row in answered)

    assert native.all_rows_stored(answer.SerializeToString(), count) == stored


@given(st.binary(max_size=100), st.integers(0, 255))
def test_checksum_is_that_of_the_library(data: bytes, crc: int) -> None:
    assert native.crc8(data, crc) == fastcrc.crc8.smbus(data, crc)


@given(st.lists(st.binary(max_size=300), max_size=18))
@example([b"", b"a" * 55, b"b" * 56, b"c" * 63, b"d" * 64, b"e" * 119, b"f" * 120, b"g" * 1000, b"h" * 64])
def test_bodies_have_the_md5_of_the_library(bodies: list[bytes]) -> None:
    assert native.md5_of(bodies) == [hashlib.md5(body).digest() for body in bodies]
