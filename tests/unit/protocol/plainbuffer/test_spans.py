"""Raw spans: stripping, splitting, and bytes that are no rows."""

from __future__ import annotations

import pytest

from ots_tunnel.errors import CodecError
from ots_tunnel.model import CellOp, PrimaryKey, SequenceInfo
from ots_tunnel.protocol.plainbuffer.building import join_row
from ots_tunnel.protocol.plainbuffer.codec import decode_primary_key, decode_row, decode_rows, encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.plainbuffer.crc8 import crc8
from ots_tunnel.protocol.plainbuffer.offsets import read_sequence, scan_key, skip_cells, split_rows, strip_extension
from ots_tunnel.protocol.plainbuffer.sequence import encode_sequence
from ots_tunnel.protocol.plainbuffer.spans import scan_row

KEY: PrimaryKey = (("pk", 1),)
CELLS = (Column("c", "x", 5), Column("d", None, 6, CellOp.DELETE_ONE_VERSION))
SEQUENCE = SequenceInfo(0, 1700000000123456, 3)
ROW = encode_row(KEY, CELLS)
RECORD = encode_row(KEY, CELLS, sequence=SEQUENCE)


def with_extension(extension: bytes) -> bytes:
    return ROW[:-2] + extension + ROW[-2:]


MIMIC = encode_sequence(SequenceInfo(0, 1, 0))


@pytest.mark.parametrize("length", range(len(MIMIC) + 1))
@pytest.mark.parametrize("delete", [False, True])
def test_value_that_looks_like_an_extension_stays(length: int, delete: bool) -> None:
    """With 27 bytes, 26 before a delete marker, the row ends exactly as one with a sequence would."""
    row = encode_row(KEY, [Column("c", MIMIC[:length])], delete=delete)
    if length == (26 if delete else 27):
        assert row[-31:-20] == MIMIC[:11]
        assert (row[-16], row[-7], row[-2]) == (0x0E, 0x0F, 0x09)

    assert strip_extension(row) == row
    assert read_sequence(row) is None


@pytest.mark.parametrize("index", [0, 1, 0x09FFFF, 0x0A0000, 0x0AFFFF, 0x08000000, 0x080A0000, 0x7FFFFFFF, -1])
@pytest.mark.parametrize("delete", [False, True])
def test_extension_is_stripped_and_read_for_every_row_index(index: int, delete: bool) -> None:
    sequence = SequenceInfo(2, 1700000000123456, index)
    record = encode_row(KEY, CELLS, delete=delete, sequence=sequence)

    assert strip_extension(record) == encode_row(KEY, CELLS, delete=delete)
    assert read_sequence(record) == sequence


@pytest.mark.parametrize(
    ("extension", "sequence"),
    [
        (b"\x0b\x00\x00\x00\x00", None),
        (b"\x0b\x07\x00\x00\x00\x20\x02\x00\x00\x00ab", None),
        (b"\x0b\x1f\x00\x00\x00" + encode_sequence(SEQUENCE)[5:] + b"\x20\x02\x00\x00\x00ab", SEQUENCE),
        (b"\x0b\x1f\x00\x00\x00\x20\x02\x00\x00\x00ab" + encode_sequence(SEQUENCE)[5:], SEQUENCE),
    ],
    ids=["empty", "unknown block", "unknown block after", "unknown block before"],
)
def test_extension_of_another_shape_is_stripped_whole(extension: bytes, sequence: SequenceInfo | None) -> None:
    record = with_extension(extension)

    assert strip_extension(record) == ROW
    assert read_sequence(record) == sequence
    assert decode_row(record).sequence == sequence


@pytest.mark.parametrize(
    "extension",
    [
        b"\x0b\x06\x00\x00\x00\x20\x02\x00\x00\x00ab",
        b"\x0b\xff\xff\xff\xff",
        b"\x0b\x18\x00\x00\x00\x0c\x13\x00\x00\x00" + b"\x0d" * 19,
        b"\x0b\x05\x00\x00\x00\x0c\x00\x00\x00\x00",
        b"\x0b\x19\x00\x00\x00\x0c\x14\x00\x00\x00" + encode_sequence(SEQUENCE)[10:] + b"\x00",
    ],
    ids=["blocks longer", "endless", "wrong inner tags", "empty sequence", "long sequence"],
)
def test_malformed_extension_is_refused(extension: bytes) -> None:
    record = with_extension(extension)

    for read in (strip_extension, read_sequence, decode_row):
        with pytest.raises(CodecError):
            read(record)


def test_extension_whose_unknown_block_ends_like_a_sequence_fails_loudly() -> None:
    inner = encode_sequence(SEQUENCE)
    blocks = b"\x20" + len(inner).to_bytes(4, "little") + inner
    record = with_extension(b"\x0b" + len(blocks).to_bytes(4, "little") + blocks)

    assert decode_row(record).columns == CELLS
    with pytest.raises(CodecError):
        decode_row(strip_extension(record))


def test_stripping_takes_exactly_one_row() -> None:
    with pytest.raises(CodecError, match="bytes after it"):
        strip_extension(ROW + ROW[4:])


def test_keys_of_equal_rows_are_equal_bytes() -> None:
    assert scan_key(RECORD) == scan_row(ROW).key
    assert scan_key(encode_row((("pk", 2),))) != scan_key(ROW)


def test_verifying_finds_a_wrong_checksum_and_scanning_alone_does_not() -> None:
    wrong = ROW[:-1] + bytes((ROW[-1] ^ 1,))

    assert scan_row(wrong).end == len(wrong)
    with pytest.raises(CodecError, match="row checksum is 0x"):
        scan_row(wrong, verify=True)


def test_error_names_the_offset_of_the_wrong_cell_checksum() -> None:
    at = skip_cells(ROW, 4) - 1
    wrong = bytearray(ROW)
    wrong[at] ^= 1

    with pytest.raises(CodecError, match=f"cell checksum .* at byte {at}") as caught:
        decode_row(bytes(wrong))
    assert caught.value.offset == at


@pytest.mark.parametrize("length", range(len(RECORD)))
def test_truncated_record_is_refused_at_every_length(length: int) -> None:
    cut = RECORD[:length]

    for read in (decode_row, strip_extension, read_sequence, scan_row):
        with pytest.raises(CodecError):
            read(cut)
    if length not in (0, 4):  # nothing, and a header alone, are pages without rows
        for page in (split_rows, decode_rows):
            with pytest.raises(CodecError):
                page(cut)


def raw_row(key: bytes = b"", cells: bytes = b"") -> bytes:
    return b"\x75\x00\x00\x00\x01" + key + cells + b"\x09\x00"


def raw_cell(rest: bytes, name: bytes = b"c") -> bytes:
    return b"\x03\x04" + len(name).to_bytes(4, "little") + name + rest


VALUE = b"\x05\x09\x00\x00\x00\x00" + bytes(8)


@pytest.mark.parametrize(
    "buf",
    [
        b"",
        b"\x75\x00\x00\x01" + RECORD[4:],
        b"\x75\x00\x00\x00\x02" + RECORD[5:],
        raw_row(raw_cell(b"\x0a\x00")),
        raw_row(raw_cell(VALUE + b"\x06\x01\x0a\x00")),
        raw_row(raw_cell(VALUE + b"\x07" + bytes(8) + b"\x0a\x00")),
        raw_row(b"", b"\x02"),
        raw_row(b"", b"\x02" + raw_cell(VALUE + b"\x06\x02\x0a\x00")),
        raw_row(b"", b"\x02" + raw_cell(VALUE + b"\x07" + bytes(8) + b"\x06\x01\x0a\x00")),
        raw_row(b"", b"\x02\x03\x05" + bytes(20)),
        raw_row(b"", b"\x02" + raw_cell(b"\x05\xff\xff\xff\xff\x00\x0a\x00")),
        raw_row(b"", b"\x02\x03\x04\xff\xff\xff\xffc"),
        raw_row(b"", b"\x08\x08"),
        raw_row(b"", b"\x10"),
    ],
    ids=[
        "empty",
        "wrong header",
        "no key section",
        "key without value",
        "key with op",
        "key with timestamp",
        "attribute section without cells",
        "unknown op",
        "timestamp before op",
        "no name tag",
        "value beyond the end",
        "name beyond the end",
        "two markers",
        "unknown tag",
    ],
)
def test_bytes_that_break_the_grammar_are_refused(buf: bytes) -> None:
    with pytest.raises(CodecError):
        decode_row(buf, verify=False)


def checked_row(name: bytes, value: bytes) -> bytes:
    """A row with right checksums around an attribute value of any bytes."""
    checksum = crc8(name + value)
    raw = raw_cell(b"\x05" + len(value).to_bytes(4, "little") + value + bytes((0x0A, checksum)), name)
    return join_row(b"", b"", [(raw, checksum)])


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\x00" + bytes(7),
        b"\x00" + bytes(9),
        b"\x01" + bytes(7),
        b"\x02",
        b"\x02\x02",
        b"\x03",
        b"\x03\x02\x00\x00\x00a",
        b"\x03\x01\x00\x00\x00ab",
        b"\x03\x01\x00\x00\x00\xff",
        b"\x07\x02\x00\x00\x00a",
        b"\x06",
        b"\x09",
        b"\x0a",
        b"\x0b",
        b"\x0c",
    ],
    ids=bytes.hex,
)
def test_malformed_value_is_refused(value: bytes) -> None:
    with pytest.raises(CodecError):
        decode_row(checked_row(b"c", value))


def test_name_that_is_not_utf_8_is_refused() -> None:
    with pytest.raises(CodecError, match="not UTF-8"):
        decode_row(checked_row(b"\xff", b"\x02\x01"))


def test_key_cannot_be_double_or_boolean() -> None:
    for value in (1.5, True):
        row = encode_row((("pk", value),))

        with pytest.raises(CodecError, match="a primary key cannot be"):
            decode_row(row)


def test_primary_key_alone_has_neither_columns_nor_marks() -> None:
    for row in (ROW, encode_row(KEY, delete=True), encode_row(KEY, sequence=SEQUENCE)):
        with pytest.raises(CodecError, match="primary key columns only"):
            decode_primary_key(row)


def test_no_rows_are_empty_bytes() -> None:
    assert split_rows(b"") == []
    assert decode_rows(b"") == []
