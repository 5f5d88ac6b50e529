"""Two rows with the same key: which versions differ, and how they are shown. Pure.

The order of cells on the wire does not matter. Values are compared as bytes, so doubles by their bits.

Cells near their expiry are left out: each table hides an expired cell at its own moment (docs/architecture.md 4.5).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from dataclasses import dataclass

from ots_tunnel.model import Marker, Value
from ots_tunnel.protocol.plainbuffer.codec import decode_value
from ots_tunnel.protocol.plainbuffer.spans import CellSpan, RowSpan
from ots_tunnel.verify.comparison import CellDifference, ShownValue

#: Versions of one row that are shown.
SHOWN_CELLS = 5

#: Characters of a value that are shown.
SHOWN_CHARACTERS = 60

#: Characters or bytes that are shown before the first difference of two long values.
SHOWN_BEFORE = 10

#: Seconds around a cell's expiry in which it is left out: this machine's clock may be 900 s behind a service's before
#: that refuses its requests, and pages are some minutes old. Equal cells are compared nevertheless.
EXPIRY_MARGIN = 900.0 + 300.0

#: Column and version of a cell, and its value as bytes.
Contents = dict[tuple[bytes, int], bytes]


@dataclass(frozen=True, slots=True)
class RowDifferences:
    """Versions that differ between two rows.

    Args:
        versions: (column, version) pairs, ordered by column, newest version first.
        near_expiry: number of differing versions that were left out because they are near their expiry.
    """

    versions: tuple[tuple[bytes, int], ...]
    near_expiry: int = 0


SAME = RowDifferences(())


def contents(cells: Iterable[CellSpan]) -> Contents:
    """Cells by column and version."""
    return {(cell.name, cell.timestamp_ms or 0): cell.value or b"" for cell in cells}


def compare_rows(first: RowSpan, second: RowSpan, limit_ms: int | None = None) -> RowDifferences:
    """Compare two rows of one key cell by cell.

    Args:
        first: row of the first table.
        second: row of the second table.
        limit_ms: versions up to this one are left out, see `near_expiry_limit`; None leaves out none.
    """
    one, other = contents(first.cells), contents(second.cells)
    if one == other:
        return SAME
    differing = [where for where in one.keys() | other.keys() if one.get(where) != other.get(where)]
    counted = differing if limit_ms is None else [where for where in differing if where[1] > limit_ms]
    counted.sort(key=lambda where: (where[0], -where[1]))
    return RowDifferences(tuple(counted), len(differing) - len(counted))


def near_expiry_limit(times_to_live: Iterable[int], now: float, margin: float = EXPIRY_MARGIN) -> int | None:
    """The newest version, milliseconds, that a comparison leaves out; None if nothing expires.

    Args:
        times_to_live: seconds, of both tables; -1 means that cells never expire. The shorter one decides, because a
            cell that one table hides cannot be compared.
        now: seconds since 1970.
        margin: seconds.
    """
    finite = [seconds for seconds in times_to_live if seconds > 0]
    return int((now + margin - min(finite)) * 1000) if finite else None


def is_near_expiry(row: RowSpan, limit_ms: int | None) -> bool:
    """Whether a table may hide the whole row, because all its cells are near their expiry."""
    return limit_ms is not None and bool(row.cells) and all((cell.timestamp_ms or 0) <= limit_ms for cell in row.cells)


def show_cells(first: RowSpan, second: RowSpan, differences: RowDifferences) -> tuple[CellDifference, ...]:
    """The first `SHOWN_CELLS` differing versions with the values of both rows."""
    one, other = contents(first.cells), contents(second.cells)
    return tuple(
        CellDifference(
            where[0].decode(errors="backslashreplace"), where[1], *_show_both(one.get(where), other.get(where))
        )
        for where in differences.versions[:SHOWN_CELLS]
    )


def _show_both(first: bytes | None, second: bytes | None) -> tuple[ShownValue | None, ShownValue | None]:
    one, other = _value(first), _value(second)
    skip = 0
    if (isinstance(one, str) and isinstance(other, str)) or (isinstance(one, bytes) and isinstance(other, bytes)):
        skip = _first_shown(one, other)
    return _shown(one, skip), _shown(other, skip)


def _value(raw: bytes | None) -> Value | None:
    value = None if raw is None else decode_value(raw)
    assert not isinstance(value, Marker), "a stored cell holds data"
    return value


def _shown(value: Value | None, skip: int) -> ShownValue | None:
    return None if value is None else show_value(value, skip)


def _first_shown(one: str | bytes, other: str | bytes) -> int:
    """Offset at which the shown part of two long values starts, so that their first difference is visible."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[low:middle] == other[low:middle] else (low, middle - 1)
    return low - SHOWN_BEFORE if low > SHOWN_CHARACTERS // 3 else 0


def show_value(value: Value, skip: int = 0) -> ShownValue:
    """A value as text with its type; long strings and binaries are shortened and followed by their size in bytes.

    Args:
        value: value of a cell.
        skip: characters or bytes at the start of a string or binary that are not shown.
    """
    match value:
        case bool():
            return ShownValue("BOOLEAN", str(value).lower())
        case int():
            return ShownValue("INTEGER", str(value))
        case float():
            return ShownValue("DOUBLE", _show_double(value))
        case str():
            part, start = value[skip : skip + SHOWN_CHARACTERS], f"from character {skip}: " if skip else ""
            return ShownValue("STRING", start + repr(part) + _size(value, skip + SHOWN_CHARACTERS))
        case bytes():
            binary, start = value[skip : skip + SHOWN_CHARACTERS // 2], f"from byte {skip}: " if skip else ""
            return ShownValue("BINARY", start + binary.hex() + _size(value, skip + SHOWN_CHARACTERS // 2))


def _show_double(value: float) -> str:
    """The shortest digits that identify a double; for NaN, whose digits identify nothing, also its bits."""
    return f"nan (bits {struct.pack('>d', value).hex()})" if math.isnan(value) else repr(value)


def _size(value: str | bytes, shown: int) -> str:
    size = len(value.encode() if isinstance(value, str) else value)
    return f"... ({size:,} bytes)" if shown < len(value) else ""
