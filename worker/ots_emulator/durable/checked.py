"""What is read from a database is checked as far as it can be: an emulator that has lost something must not start.

SQLite notices broken pages, but no flipped bit in a value. Rows and records carry checksums, a record has the time
under which it is stored, and the positions of a log have no gap. Nothing tells of a row that is missing as a whole, or
of missing records at the end of a log. `datadir` checks the files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from google.protobuf.message import DecodeError

from ots_tunnel.model import SequenceInfo
from ots_tunnel.protocol import tunnel_pb2 as pb
from ots_tunnel.protocol.plainbuffer.sequence import encode_sequence
from ots_tunnel.protocol.plainbuffer.spans import scan_row, scan_whole_row
from ots_tunnel.protocol.plainbuffer.tags import CHECKSUM_BYTES, FULL_EXTENSION_BYTES, U32


def check_image(image: bytes) -> None:
    """Compare the checksums of a stored row.

    Raises:
        CodecError: it is not as it was written. ValueError: there are bytes behind it.
    """
    end = scan_row(image, 0, verify=True).end
    if end != len(image):
        raise ValueError(f"a row of {len(image)} bytes ends after {end}")


def checked_entries(entries: Iterable[tuple[int, int, bytes]], base: int) -> Iterator[tuple[int, bytes]]:
    """Yield time in us and record of the entries of a log, which come with their positions from `base` on.

    Raises:
        CodecError: a record is not as it was written. ValueError: one is missing between others.
    """
    last = (0, 0)
    for expected, (position, time_us, record) in enumerate(entries, base):
        if position != expected:
            raise ValueError(f"the log goes on with position {position}, expected is {expected}")
        place = (time_us, _row_index_of(record, time_us))
        if place <= last:
            raise ValueError(f"time and row index {place} of position {position} are not after {last}")
        last = place
        yield time_us, record


def _row_index_of(record: bytes, time_us: int) -> int:
    """Return the row index of a record, which must be as it was written."""
    try:
        (found,) = pb.ReadRecordsResponse.FromString(record).records
    except DecodeError as error:
        raise ValueError(f"the record at {time_us} us is none: {error}") from error
    if not found.HasField("action_type"):
        raise ValueError(f"the record at {time_us} us has no action")
    body, end = found.record, -CHECKSUM_BYTES
    extension = body[end - FULL_EXTENSION_BYTES : end]
    row_index: int = U32.unpack(extension[-U32.size :])[0]
    if extension != encode_sequence(SequenceInfo(0, time_us, row_index)):
        raise ValueError(f"the record at {time_us} us has another time")
    # Without its extension it is checked by compiled code.
    scan_whole_row(body[: end - FULL_EXTENSION_BYTES] + body[end:])
    if found.origin_record:
        scan_whole_row(found.origin_record)
    return row_index
