"""Two rows of the same key: whether they hold the same, and how they differ; pure.

The order of a row's cells on the wire is no part of its contents. Values are compared as bytes, so doubles by their
bits.
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

#: Characters or bytes that are shown in front of the place where two long values part.
SHOWN_BEFORE = 10

#: Seconds around the end of a cell's life in which nothing is said of it; more than clocks and pages differ.
EXPIRY_MARGIN = 300.0

#: Column and version of a cell, and its value as bytes.
Contents = dict[tuple[bytes, int], bytes]


@dataclass(frozen=True, slots=True)
class RowDifferences:
    """Versions that differ between two rows.

    Args:
        versions: (column, version) of those that count, columns in order, newest version first.
        near_expiry: number of further ones, left out because they are about to expire.
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
        limit_ms: versions up to here are left out; None leaves out none.
    """
    one, other = contents(first.cells), contents(second.cells)
    if one == other:
        return SAME
    differing = [where for where in one.keys() | other.keys() if one.get(where) != other.get(where)]
    counted = differing if limit_ms is None else [where for where in differing if where[1] > limit_ms]
    counted.sort(key=lambda where: (where[0], -where[1]))
    return RowDifferences(tuple(counted), len(differing) - len(counted))


def near_expiry_limit(times_to_live: Iterable[int], now: float, margin: float = EXPIRY_MARGIN) -> int | None:
    """The newest version, milliseconds, that is left out when tables are compared; None where nothing expires.

    Args:
        times_to_live: seconds, of both tables; not positive is for ever. The shorter one decides, since what one
            table has hidden says nothing of the other.
        now: seconds since 1970.
        margin: seconds.
    """
    finite = [seconds for seconds in times_to_live if seconds > 0]
    return int((now + margin - min(finite)) * 1000) if finite else None


def is_near_expiry(row: RowSpan, limit_ms: int | None) -> bool:
    """Whether a row may be hidden as a whole because all its cells are near the end of their life."""
    return limit_ms is not None and bool(row.cells) and all((cell.timestamp_ms or 0) <= limit_ms for cell in row.cells)


def show_cells(first: RowSpan, second: RowSpan, differences: RowDifferences) -> tuple[CellDifference, ...]:
    """The first versions that differ, with what both rows hold."""
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
    """Where to begin so that the place where two values part is seen."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[low:middle] == other[low:middle] else (low, middle - 1)
    return low - SHOWN_BEFORE if low > SHOWN_CHARACTERS // 3 else 0


def show_value(value: Value, skip: int = 0) -> ShownValue:
    """A value as a text with its type; long texts and binaries are cut and say how many bytes they have.

    Args:
        value: what a cell holds.
        skip: characters or bytes of a text or binary that are not shown.
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
    """All digits that tell a double from its neighbours; bits where digits do not tell them apart."""
    return f"nan (bits {struct.pack('>d', value).hex()})" if math.isnan(value) else repr(value)


def _size(value: str | bytes, shown: int) -> str:
    size = len(value.encode() if isinstance(value, str) else value)
    return f"... ({size:,} bytes)" if shown < len(value) else ""
