"""PlainBuffer for any row, and for any damage to one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ots_tunnel.errors import CodecError
from ots_tunnel.model import Action
from ots_tunnel.protocol.plainbuffer.building import join_row
from ots_tunnel.protocol.plainbuffer.codec import (
    DecodedRow,
    decode_primary_key,
    decode_row,
    decode_rows,
    decode_value,
    encode_value,
)
from ots_tunnel.protocol.plainbuffer.offsets import read_sequence, rows_of_page, split_rows, strip_extension
from ots_tunnel.protocol.plainbuffer.spans import scan_row
from ots_tunnel.protocol.record import Record
from tests.support.row_strategies import damaged, encode, rows


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
    assert rows_of_page(wire) == [wire[:4] + row for row in raw]
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
    rows_of_page,
    lambda buf: Record(Action.PUT, buf).primary_key,
    lambda buf: Record(Action.PUT, buf).columns,
]


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
def test_stripping_a_damaged_row_never_gives_another_valid_row(row: DecodedRow) -> None:
    wire = encode(row)[:-1]

    with pytest.raises(CodecError):
        decode_row(strip_extension(wire))
