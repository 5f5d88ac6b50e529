"""PlainBuffer for any row, and for any damage to one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ots_tunnel.errors import CodecError
from ots_tunnel.model import Action, CellOp, Marker, SequenceInfo
from ots_tunnel.protocol.plainbuffer.building import join_row
from ots_tunnel.protocol.plainbuffer.codec import (
    DecodedRow,
    decode_primary_key,
    decode_row,
    decode_rows,
    decode_value,
    encode_row,
    encode_value,
)
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.plainbuffer.offsets import read_sequence, split_rows, strip_extension
from ots_tunnel.protocol.plainbuffer.spans import scan_row
from ots_tunnel.protocol.record import Record

int64 = st.integers(-(2**63), 2**63 - 1)
int32 = st.integers(-(2**31), 2**31 - 1)
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
# Bytes that are tags are likely to be taken for structure.
blobs = st.lists(st.sampled_from(range(0x18)) | st.integers(0, 255), max_size=40).map(bytes)
key_values = int64 | texts | blobs | st.sampled_from(Marker)
values = int64 | st.floats(allow_nan=False) | st.booleans() | texts | blobs
columns = st.builds(Column, names, values, st.none() | int64, st.just(CellOp.PUT)) | st.builds(
    Column, names, st.none() | values, st.none() | int64, st.sampled_from(CellOp)
)
sequences = st.builds(SequenceInfo, int32, int64, int32)
rows = st.builds(
    DecodedRow,
    st.lists(st.tuples(names, key_values), max_size=4).map(tuple),
    st.lists(columns, max_size=6).map(tuple),
    st.booleans(),
    st.none() | sequences,
)


def encode(row: DecodedRow, *, sequence: bool = True, header: bool = True) -> bytes:
    return encode_row(
        row.primary_key,
        row.columns,
        delete=row.delete_marker,
        sequence=row.sequence if sequence else None,
        header=header,
    )


@given(rows)
def test_row_survives_the_wire(row: DecodedRow) -> None:
    assert decode_row(encode(row)) == row


@given(rows)
def test_spans_rebuild_the_row(row: DecodedRow) -> None:
    wire = encode(row)
    span = scan_row(wire, verify=True)

    cells = [(cell.raw, cell.checksum) for cell in span.cells]
    rebuilt = join_row(span.key, span.key_checksums, cells, delete=span.delete_marker, sequence=span.sequence)

    assert (span.end, rebuilt) == (len(wire), wire)
    assert [cell.value for cell in span.cells] == [
        None if column.value is None else encode_value(column.value) for column in row.columns
    ]


@given(rows)
def test_stripping_is_writing_without_sequence(row: DecodedRow) -> None:
    wire = encode(row)

    assert strip_extension(wire) == encode(row, sequence=False)
    assert read_sequence(wire) == row.sequence


@given(st.lists(rows, max_size=4))
def test_page_splits_into_its_rows(page: list[DecodedRow]) -> None:
    raw = [encode(row, header=False) for row in page]
    wire = b"\x75\x00\x00\x00" + b"".join(raw)

    assert split_rows(wire) == raw
    assert decode_rows(wire) == page


@given(rows, rows)
def test_record_key_identifies_the_key(one: DecodedRow, other: DecodedRow) -> None:
    first, second = Record(Action.PUT, encode(one)), Record(Action.PUT, encode(other))

    assert first.primary_key == one.primary_key
    same = repr(one.primary_key) == repr(other.primary_key)
    assert (first.key == second.key) == same


READERS: list[Callable[[bytes], object]] = [
    decode_row,
    lambda buf: decode_row(buf, verify=False),
    decode_rows,
    lambda buf: decode_rows(buf, verify=False),
    decode_primary_key,
    decode_value,
    lambda buf: scan_row(buf, verify=False),
    strip_extension,
    read_sequence,
    split_rows,
    lambda buf: Record(Action.PUT, buf).primary_key,
    lambda buf: Record(Action.PUT, buf).columns,
]


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A row with bytes changed, removed, inserted, or the rest cut off."""
    wire = bytearray(encode(draw(rows)))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(wire)))
        match draw(st.sampled_from(["change", "remove", "insert", "cut"])):
            case "change":
                wire[at : at + 1] = bytes((draw(st.integers(0, 255)),))
            case "remove":
                del wire[at : at + draw(st.integers(1, 8))]
            case "insert":
                wire[at:at] = draw(blobs)
            case "cut":
                del wire[at:]
    return bytes(wire)


@given(damaged() | st.binary(max_size=80) | st.binary(max_size=80).map(b"\x75\x00\x00\x00\x01".__add__))
def test_damage_raises_codec_error_and_nothing_else(buf: bytes) -> None:
    for read in READERS:
        try:
            read(buf)
        except CodecError as error:
            assert error.offset >= -1  # noqa: PT017 - most damage, not all, is an error


@given(rows, st.data())
def test_damage_to_a_checked_byte_is_noticed(row: DecodedRow, data: st.DataObject) -> None:
    wire = bytearray(encode(row, sequence=False))
    at = data.draw(st.integers(0, len(wire) - 1))
    wire[at] ^= 1 << data.draw(st.integers(0, 7))

    with pytest.raises(CodecError):
        decode_row(bytes(wire))


@given(rows)
def test_stripping_what_is_damaged_never_gives_another_valid_row(row: DecodedRow) -> None:
    wire = encode(row)[:-1]

    with pytest.raises(CodecError):
        decode_row(strip_extension(wire))
