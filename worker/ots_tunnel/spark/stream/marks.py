"""Marks: which records of a channel come before which, whatever pages they are in. Pure.

The service may answer a second read from a token with other pages and other tokens, but with the same records in the
same order (docs/protocol.md 2.4, 3.3). So what a batch holds is told by records, and tokens only tell where to begin.

    channel of the stream    the record's sequence, which grows within a channel
    channel of base data     the record's key: rows come in the order of keys, and the scan is live, so that their
                             number may differ between two reads
"""

from __future__ import annotations

from collections.abc import Sequence

from ots_tunnel.errors import CodecError
from ots_tunnel.model import SequenceInfo
from ots_tunnel.protocol.key_order import key_order
from ots_tunnel.protocol.plainbuffer.codec import decode_key_cells
from ots_tunnel.protocol.record import Record

#: The place of a record in its channel: its sequence, or the wire bytes of its key (`Record.key`).
Mark = SequenceInfo | bytes


def mark_of(record: Record) -> Mark:
    """The mark of a record: its sequence, or its key if it has none.

    Raises:
        CodecError: the record is malformed.
    """
    sequence = record.sequence
    return record.key if sequence is None else sequence


def is_behind(mark: Mark, other: Mark) -> bool:
    """Whether a record with this mark comes after the one with the other.

    Raises:
        CodecError: one is of the stream and the other of base data, which no channel holds together.
    """
    if isinstance(mark, SequenceInfo) and isinstance(other, SequenceInfo):
        return mark > other
    if isinstance(mark, bytes) and isinstance(other, bytes):
        return key_order(decode_key_cells(mark)) > key_order(decode_key_cells(other))
    raise CodecError("records with a sequence and records without one in one channel")


def rows_until(records: Sequence[Record], mark: Mark) -> int:
    """Number of the first records that are not behind a mark.

    Raises:
        CodecError: a record is malformed.
    """
    return next((place for place, record in enumerate(records) if is_behind(mark_of(record), mark)), len(records))
