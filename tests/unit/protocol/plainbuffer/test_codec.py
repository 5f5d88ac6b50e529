"""Values that do not fit the wire, accessors of records, and contents that a record does not show."""

from __future__ import annotations

import math

import pytest

from ots_tunnel.errors import CodecError
from ots_tunnel.model import Action, CellOp, Marker, PrimaryKey, SequenceInfo
from ots_tunnel.protocol.plainbuffer.building import rename_cell
from ots_tunnel.protocol.plainbuffer.codec import (
    decode_key_cells,
    decode_primary_key,
    decode_row,
    decode_value,
    encode_primary_key,
    encode_row,
    encode_value,
)
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.plainbuffer.spans import scan_row, scan_whole_row
from ots_tunnel.protocol.record import Record

KEY: PrimaryKey = (("pk", "secret-key"),)
SEQUENCE = SequenceInfo(0, 1700000000123456, 3)


@pytest.mark.parametrize(
    ("value", "wire"),
    [
        (0, "000000000000000000"),
        (-1, "00ffffffffffffffff"),
        (-(2**63), "000000000000000080"),
        (2**63 - 1, "00ffffffffffffff7f"),
        (99.5, "010000000000e05840"),
        (True, "0201"),
        (False, "0200"),
        ("", "0300000000"),
        ("ä", "0302000000c3a4"),
        (b"\x00", "070100000000"),
        (Marker.INF_MIN, "09"),
        (Marker.INF_MAX, "0a"),
        (Marker.AUTO_INCREMENT, "0b"),
    ],
)
def test_value_has_one_wire_form(value: int | float | bool | str | bytes | Marker, wire: str) -> None:
    assert encode_value(value).hex() == wire
    decoded = decode_value(bytes.fromhex(wire))
    assert (type(decoded), decoded) == (type(value), value)


@pytest.mark.parametrize("value", [math.inf, -math.inf, -0.0])
def test_special_doubles_survive(value: float) -> None:
    decoded = decode_value(encode_value(value))

    assert isinstance(decoded, float)
    assert (decoded, math.copysign(1, decoded)) == (value, math.copysign(1, value))


def test_nan_survives() -> None:
    decoded = decode_value(encode_value(math.nan))

    assert isinstance(decoded, float)
    assert math.isnan(decoded)


def test_any_buffer_is_written_as_blob() -> None:
    assert encode_value(bytearray(b"ab")) == encode_value(memoryview(b"ab")) == encode_value(b"ab")


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, "\ud800", None, [1]])
def test_value_that_does_not_fit_is_refused(value: object) -> None:
    with pytest.raises(CodecError):
        encode_value(value)


@pytest.mark.parametrize("column", [Column("\ud800", 1), Column("c", 1, 2**63), Column("c", 1, 1.5)])
def test_cell_that_does_not_fit_is_refused(column: Column) -> None:
    with pytest.raises(CodecError):
        encode_row(KEY, [column])


@pytest.mark.parametrize("sequence", [SequenceInfo(2**31, 0, 0), SequenceInfo(0, 2**63, 0), SequenceInfo(0, 0, 2**31)])
def test_sequence_that_does_not_fit_is_refused(sequence: SequenceInfo) -> None:
    with pytest.raises(CodecError):
        encode_row(KEY, sequence=sequence)


def test_range_bounds_are_keys() -> None:
    bound: PrimaryKey = (("pk", Marker.INF_MIN), ("pk2", Marker.INF_MAX))

    assert decode_primary_key(encode_primary_key(bound)) == bound


@pytest.mark.parametrize("length", range(1, 50))
def test_truncated_key_is_refused_at_every_length(length: int) -> None:
    key = scan_row(encode_row((("pk1", "text"), ("pk2", 1)))).key
    first = len(scan_row(encode_row((("pk1", "text"),))).key)
    assert len(key) == 50
    if length == first:
        assert decode_key_cells(key[:length]) == (("pk1", "text"),)
        return

    with pytest.raises(CodecError):
        decode_key_cells(key[:length])


@pytest.mark.parametrize("at", [0, 1, 9])
def test_key_with_another_tag_is_refused(at: int) -> None:
    key = bytearray(scan_row(encode_row((("pk1", "text"),))).key)
    key[at] ^= 0x10

    with pytest.raises(CodecError):
        decode_key_cells(bytes(key))


def test_name_is_counted_in_bytes() -> None:
    row = encode_row((("schlüssel", 1),), [Column("größe", 2)])

    assert scan_row(row, verify=True).cells[0].name == "größe".encode()


def test_base_record_has_no_sequence() -> None:
    record = Record(Action.PUT, encode_row(KEY, [Column("c", 1, 5)]))

    assert record.sequence is None
    assert record.columns == (Column("c", 1, 5),)
    assert record.origin_columns == ()


def test_record_decodes_once() -> None:
    record = Record(Action.PUT, encode_row(KEY, [Column("c", 1, 5)], sequence=SEQUENCE))

    assert record.columns is record.columns
    assert record.key is record.key
    assert record.primary_key == KEY


def test_record_counts_both_rows() -> None:
    body, origin = encode_row(KEY), encode_row((), [Column("c", 1, 5)])

    assert Record(Action.PUT, body, origin).size == len(body) + len(origin)
    assert Record(Action.PUT, body).size == len(body)


def test_a_put_without_a_value_is_refused_as_a_cell_of_a_record() -> None:
    record = Record(Action.UPDATE, encode_row(KEY, [Column("c", None, 5)]))

    with pytest.raises(CodecError, match="put without a value"):
        _ = record.columns


def test_a_deleted_column_differs_from_a_put() -> None:
    columns = (Column("c", None, None, CellOp.DELETE_ALL_VERSIONS),)

    assert Record(Action.UPDATE, encode_row(KEY, columns)).columns == columns


@pytest.mark.parametrize("body", [b"", b"noise", b"\x75\x00\x00\x00"])
def test_every_accessor_refuses_a_record_of_other_bytes(body: bytes) -> None:
    for name in ("key", "primary_key", "columns", "sequence"):
        with pytest.raises(CodecError):
            getattr(Record(Action.PUT, body), name)


def test_record_never_shows_its_contents() -> None:
    record = Record(Action.PUT, encode_row(KEY))

    assert repr(record) == f"Record(PUT, {record.size} bytes)"


def test_records_compare_by_their_bytes() -> None:
    body = encode_row(KEY)

    assert Record(Action.PUT, body) == Record(Action.PUT, body)
    assert Record(Action.PUT, body) != Record(Action.DELETE, body)
    assert decode_row(body).primary_key == KEY


def test_the_example_of_the_codec_is_what_it_writes() -> None:
    example = "75000000 01 0304 02000000 6964 05 09000000 000700000000000000 0a60 09f5"

    assert encode_row((("id", 7),)) == bytes.fromhex(example)


@pytest.mark.parametrize("body", [b"", b"\x76\x00\x00\x00"])
def test_a_buffer_without_its_header_is_refused(body: bytes) -> None:
    with pytest.raises(CodecError, match="instead of 75000000"):
        decode_row(body)


def test_records_compare_and_hash_by_content() -> None:
    body = encode_row(KEY, [Column("c", 1, 5)])
    origin = encode_row((), [Column("c", 0, 4)])
    record = Record(Action.UPDATE, body, origin)

    assert record != body
    assert len({record, Record(Action.UPDATE, body, origin), Record(Action.UPDATE, body)}) == 2
    for _ in range(2):  # decoded once, then kept
        assert record.origin_columns == (Column("c", 0, 4),)


def test_bytes_after_one_row_are_refused() -> None:
    two = encode_row(KEY) + encode_row(KEY, header=False)

    for decode in (decode_row, scan_whole_row):
        with pytest.raises(CodecError, match="expected one row, found bytes after it"):
            decode(two)


@pytest.mark.parametrize("timestamp", [None, 5])
def test_a_renamed_cell_is_the_cell_of_that_name(timestamp: int | None) -> None:
    (cell,) = scan_row(encode_row(KEY, [Column("c", "value", timestamp)])).cells
    (wanted,) = scan_row(encode_row(KEY, [Column("name", "value", timestamp)])).cells

    assert rename_cell(cell, b"name") == (wanted.raw, wanted.checksum)


def test_a_records_column_is_the_newest_version_of_its_name() -> None:
    record = Record(Action.PUT, encode_row(KEY, [Column("c", 2, 6), Column("c", 1, 5)]))

    assert record.column("c") == Column("c", 2, 6)
    assert record.column("d") is None
