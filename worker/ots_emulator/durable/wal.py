"""Damage in a write-ahead log of SQLite, from its bytes alone; pure.

SQLite takes the frames before the first invalid one, and drops what follows without a word. A kill leaves invalid
frames as well: those of a commit that it has cut short, also where a later one has overwritten their beginning. No
valid commit follows them. Where one does, stored changes would be dropped.

    log    := header frame*
    header := magic version page-bytes sequence salt salt sum sum
    frame  := page-number pages-after-commit salt salt sum sum page

All numbers have 32 bits, big-endian. Frames of the log's last use have the header's salts. The sums of a frame cover
its first two numbers and its page, and begin with the sums before it. A frame that ends a commit has
`pages-after-commit`, others have 0 there.

Source: https://sqlite.org/fileformat2.html#the_write_ahead_log
"""

from __future__ import annotations

import struct
from typing import Final

_HEADER: Final = struct.Struct(">8I")
_FRAME: Final = struct.Struct(">6I")
#: Bytes at the beginning of header and frame that the sums cover.
_COVERED_HEADER_BYTES: Final = 24
_COVERED_FRAME_BYTES: Final = 8
#: The byte order in which sums read what they cover, by the magic number.
_ORDERS: Final = {0x377F0682: "<", 0x377F0683: ">"}
_MASK: Final = (1 << 32) - 1


def damage_in(log: bytes) -> int | None:
    """Return where a write-ahead log is damaged before a valid commit, None where it is not.

    A log that merely ends early cannot be told from one that a kill left.
    """
    if len(log) <= _HEADER.size:
        return None
    magic, _, page_bytes, _, *salts, first, second = _HEADER.unpack_from(log)
    order = _ORDERS.get(magic)
    if order is None or _sums(log[:_COVERED_HEADER_BYTES], order, 0, 0) != (first, second):
        return 0
    damaged = None
    step = _FRAME.size + page_bytes
    for start in range(_HEADER.size, len(log) - step + 1, step):
        before = first, second
        _, is_commit, *found_salts, first, second = _FRAME.unpack_from(log, start)
        # The sums of the frame before count as they are stored: it may be the damaged one.
        covered = log[start : start + _COVERED_FRAME_BYTES] + log[start + _FRAME.size : start + step]
        is_valid = found_salts == salts and _sums(covered, order, *before) == (first, second)
        if not is_valid and damaged is None:
            damaged = start
        elif is_valid and is_commit and damaged is not None:
            return damaged
    return None


def _sums(covered: bytes, order: str, first: int, second: int) -> tuple[int, int]:
    """Continue two sums over an even count of numbers."""
    numbers = iter(struct.unpack(f"{order}{len(covered) // 4}I", covered))
    for even, odd in zip(numbers, numbers, strict=True):
        first = first + even + second & _MASK
        second = second + odd + first & _MASK
    return first, second
