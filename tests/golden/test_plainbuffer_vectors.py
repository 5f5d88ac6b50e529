"""PlainBuffer, byte for byte."""

from __future__ import annotations

import pytest

from ots_tunnel.errors import CodecError
from ots_tunnel.model import Action
from ots_tunnel.protocol.plainbuffer.building import join_row
from ots_tunnel.protocol.plainbuffer.codec import (
    DecodedRow,
    decode_primary_key,
    decode_row,
    decode_rows,
    encode_primary_key,
    encode_row,
)
from ots_tunnel.protocol.plainbuffer.crc8 import crc8
from ots_tunnel.protocol.plainbuffer.offsets import split_rows, strip_extension
from ots_tunnel.protocol.plainbuffer.spans import scan_row
from ots_tunnel.protocol.record import Record
from tests.support import vectors
from tests.support.vectors import Vector

every_vector = pytest.mark.parametrize("vector", vectors.ALL, ids=lambda vector: vector.name)


def test_checksum_has_the_documented_check_value() -> None:
    assert crc8(b"123456789") == 0xF4
    assert [crc8(bytes((value,))) for value in range(16)] == list(bytes.fromhex("00070e091c1b1215383f363124232a2d"))


def test_row_checksum_of_a_is_built_from_its_cell_checksums() -> None:
    crc, seen = 0, []
    for checksum in bytes.fromhex("522b03c1edd3ed00"):
        crc = crc8(bytes((checksum,)), crc)
        seen.append(crc)

    assert bytes(seen).hex() == "b9f7c209b2206d04"


@every_vector
def test_encoding_gives_the_vector(vector: Vector) -> None:
    wire = encode_row(vector.primary_key, vector.columns, delete=vector.delete, sequence=vector.sequence)

    assert wire.hex() == vector.wire.hex()


@every_vector
def test_decoding_gives_the_values(vector: Vector) -> None:
    row = decode_row(vector.wire)

    assert row == DecodedRow(vector.primary_key, vector.columns, vector.delete, vector.sequence)


@every_vector
def test_scanning_and_joining_gives_the_vector_again(vector: Vector) -> None:
    span = scan_row(vector.wire, verify=True)
    cells = [(cell.raw, cell.checksum) for cell in span.cells]

    wire = join_row(span.key, span.key_checksums, cells, delete=span.delete_marker, sequence=span.sequence)

    assert wire.hex() == vector.wire.hex()
    assert span.end == len(vector.wire)


@every_vector
def test_stripping_gives_what_a_write_takes(vector: Vector) -> None:
    write = encode_row(vector.primary_key, vector.columns, delete=vector.delete)

    assert strip_extension(vector.wire).hex() == write.hex()


@every_vector
def test_every_single_changed_byte_of_a_cell_is_noticed_or_harmless(vector: Vector) -> None:
    """A changed byte may hit an extension, which no checksum covers; everything else must raise."""
    covered = len(strip_extension(vector.wire)) - 2
    for position in range(covered):
        changed = bytearray(vector.wire)
        changed[position] ^= 0x40

        with pytest.raises(CodecError):
            decode_row(bytes(changed))


def test_several_rows_share_one_header() -> None:
    rows = [encode_row(v.primary_key, v.columns, header=False) for v in (vectors.BASE_PUT, vectors.KEY_ONLY)]
    page = b"\x75\x00\x00\x00" + b"".join(rows)

    assert split_rows(page) == rows
    assert [row.columns for row in decode_rows(page)] == [vectors.BASE_PUT.columns, ()]


def test_a_key_alone_is_the_row_of_the_live_services_token() -> None:
    assert encode_primary_key((("key", "5"),)) == vectors.KEY_ONLY.wire
    assert decode_primary_key(vectors.KEY_ONLY.wire) == (("key", "5"),)


def test_a_record_shows_the_vector() -> None:
    record = Record(Action.UPDATE, vectors.STREAM_UPDATE.wire, vectors.ORIGIN.wire)

    assert record.primary_key == vectors.KEY
    assert record.columns == vectors.STREAM_UPDATE.columns
    assert record.sequence == vectors.STREAM_UPDATE.sequence
    assert record.origin_columns == vectors.ORIGIN.columns
    assert record.key == scan_row(vectors.STREAM_PUT.wire).key
