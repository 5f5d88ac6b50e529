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
from ots_tunnel.protocol.plainbuffer import decode_value
from ots_tunnel.protocol.spans import CellSpan, RowSpan
from ots_tunnel.verify.comparison import CellDifference, ShownValue

#: Versions of one row that are shown.
SHOWN_CELLS = 5

#: Characters of a value that are shown.
SHOWN_CHARACTERS = 60

#: Column and version of a cell, and its value as bytes.
Contents = dict[tuple[bytes, int], bytes]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Versions that differ between two rows.

    Args:
        judged: (column, version) of those that count, columns in order, newest version first.
        left_out: number of those near the end of their life.
    """

    judged: tuple[tuple[bytes, int], ...]
    left_out: int = 0


SAME = Verdict(())


def contents(cells: Iterable[CellSpan]) -> Contents:
    """Cells by column and version."""
    return {(cell.name, cell.timestamp_ms or 0): cell.value or b"" for cell in cells}


def compare_rows(first: RowSpan, second: RowSpan, doubtful: int | None = None) -> Verdict:
    """Compare two rows of one key cell by cell.

    Args:
        first: row of the first table.
        second: row of the second table.
        doubtful: versions up to here are left out; None leaves out none.
    """
    one, other = contents(first.cells), contents(second.cells)
    if one == other:
        return SAME
    differing = [where for where in one.keys() | other.keys() if one.get(where) != other.get(where)]
    judged = differing if doubtful is None else [where for where in differing if where[1] > doubtful]
    judged.sort(key=lambda where: (where[0], -where[1]))
    return Verdict(tuple(judged), len(differing) - len(judged))


def is_doubtful(row: RowSpan, doubtful: int | None) -> bool:
    """Whether a row may be hidden as a whole because all its cells are near the end of their life."""
    return doubtful is not None and bool(row.cells) and all((cell.timestamp_ms or 0) <= doubtful for cell in row.cells)


def show_cells(first: RowSpan, second: RowSpan, verdict: Verdict) -> tuple[CellDifference, ...]:
    """The first versions that differ, with what both rows hold."""
    one, other = contents(first.cells), contents(second.cells)
    return tuple(
        CellDifference(
            where[0].decode(errors="backslashreplace"), where[1], _shown(one.get(where)), _shown(other.get(where))
        )
        for where in verdict.judged[:SHOWN_CELLS]
    )


def _shown(raw: bytes | None) -> ShownValue | None:
    if raw is None:
        return None
    value = decode_value(raw)
    assert not isinstance(value, Marker), "a stored cell holds data"
    return show_value(value)


def show_value(value: Value) -> ShownValue:
    """A value as a text with its type; long texts and binaries are cut and say how many bytes they have."""
    match value:
        case bool():
            return ShownValue("BOOLEAN", str(value).lower())
        case int():
            return ShownValue("INTEGER", str(value))
        case float():
            return ShownValue("DOUBLE", _show_double(value))
        case str():
            return ShownValue("STRING", _cut(repr(value[: SHOWN_CHARACTERS + 1]), len(value.encode())))
        case bytes():
            return ShownValue("BINARY", _cut(value[: SHOWN_CHARACTERS // 2 + 1].hex(), len(value)))


def _show_double(value: float) -> str:
    """All digits that tell a double from its neighbours; bits where digits do not tell them apart."""
    return f"nan (bits {struct.pack('>d', value).hex()})" if math.isnan(value) else repr(value)


def _cut(text: str, size: int) -> str:
    return text if len(text) <= SHOWN_CHARACTERS + 2 else f"{text[:SHOWN_CHARACTERS]}... ({size:,} bytes)"
