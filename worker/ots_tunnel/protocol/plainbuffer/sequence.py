"""The extension of a stream record: its position in the stream.

The service writes one block, the sequence; with the extension's own tag and length these are 29 bytes. The row's
checksum does not cover them.
"""

from __future__ import annotations

import struct

from ots_tunnel.errors import CodecError
from ots_tunnel.model import SequenceInfo
from ots_tunnel.protocol.plainbuffer.tags import (
    CELL_CHECKSUM,
    CHECKSUM_BYTES,
    DELETE_MARKER,
    EXTENSION,
    FULL_EXTENSION,
    FULL_EXTENSION_BYTES,
    ROW_CHECKSUM,
    SEQUENCE,
    SEQUENCE_BODY,
    SEQUENCE_EPOCH,
    SEQUENCE_LENGTH,
    SEQUENCE_ROW_INDEX,
    SEQUENCE_TAIL_BYTES,
    SEQUENCE_TIMESTAMP,
    TAG_BYTES,
    TAG_LENGTH,
    TAG_LENGTH_BYTES,
)

#: First eleven bytes of an extension that holds a sequence block and nothing else.
_SEQUENCE_START = FULL_EXTENSION.pack(
    EXTENSION, FULL_EXTENSION_BYTES - TAG_LENGTH_BYTES, SEQUENCE, SEQUENCE_LENGTH, SEQUENCE_EPOCH, 0, 0, 0, 0, 0
)[:11]

#: Tags of the last two parts of a sequence, counted from the end of the row: 8 and 4 bytes of value, then the checksum.
_ROW_INDEX_TAG_AT = -CHECKSUM_BYTES - 4 - TAG_BYTES
_TIMESTAMP_TAG_AT = _ROW_INDEX_TAG_AT - 8 - TAG_BYTES

_tag_length = TAG_LENGTH.unpack_from


def encode_sequence(sequence: SequenceInfo) -> bytes:
    """The extension of a stream record, 29 bytes.

    Raises:
        CodecError: a part does not fit its field.
    """
    try:
        return FULL_EXTENSION.pack(
            EXTENSION,
            FULL_EXTENSION_BYTES - TAG_LENGTH_BYTES,
            SEQUENCE,
            SEQUENCE_LENGTH,
            SEQUENCE_EPOCH,
            sequence.epoch,
            SEQUENCE_TIMESTAMP,
            sequence.timestamp_us,
            SEQUENCE_ROW_INDEX,
            sequence.row_index,
        )
    except struct.error as error:
        raise CodecError(f"{sequence} does not fit its fields") from error


def scan_extension(buf: bytes, pos: int) -> tuple[int, SequenceInfo | None]:
    """Offset after the extension at `pos`, and its sequence if it has one.

    Other blocks are skipped by their length, as the vendor's Java reader does (docs/protocol.md 3.4).
    """
    end = pos + TAG_LENGTH_BYTES + _tag_length(buf, pos)[1]
    pos += TAG_LENGTH_BYTES
    sequence = None
    while pos < end:
        tag, length = _tag_length(buf, pos)
        if tag == SEQUENCE:
            sequence = _scan_sequence(buf, pos + TAG_LENGTH_BYTES, length)
        pos += TAG_LENGTH_BYTES + length
    if pos != end:
        raise CodecError("the blocks of an extension do not add up to its length", end)
    return end, sequence


def _scan_sequence(buf: bytes, pos: int, length: int) -> SequenceInfo:
    epoch_tag, epoch, timestamp_tag, timestamp_us, index_tag, row_index = SEQUENCE_BODY.unpack_from(buf, pos)
    tags = (epoch_tag, timestamp_tag, index_tag)
    if length != SEQUENCE_LENGTH or tags != (SEQUENCE_EPOCH, SEQUENCE_TIMESTAMP, SEQUENCE_ROW_INDEX):
        raise CodecError("a sequence is 19 bytes: epoch, timestamp and row index", pos)
    return SequenceInfo(epoch, timestamp_us, row_index)


def ends_in_sequence(buf: bytes) -> bool:
    """Whether the last 31 bytes are a full extension and a row checksum, and cannot be anything else.

    A row without extension ends in ``0A crc [08] 09 crc``: its fourth byte from the end is 0A, or its third is 08.
    These two bytes tell a value that looks like an extension from a real extension, where they belong to the row index.
    A row index above 655,359 can have the same bytes; such a row takes the slow path.
    An extension with more blocks whose last bytes repeat the pattern would match too. The service writes none, and the
    rest after stripping would end inside the outer extension, which no reader accepts.
    A key without cells (``01 [08] 09 crc``) is too short to match, because the header precedes it.
    """
    return (
        buf[-SEQUENCE_TAIL_BYTES : -SEQUENCE_TAIL_BYTES + len(_SEQUENCE_START)] == _SEQUENCE_START
        and buf[_TIMESTAMP_TAG_AT] == SEQUENCE_TIMESTAMP
        and buf[_ROW_INDEX_TAG_AT] == SEQUENCE_ROW_INDEX
        and buf[-2] == ROW_CHECKSUM
        and buf[-4] != CELL_CHECKSUM
        and buf[-3] != DELETE_MARKER
    )
