"""In what two rows of one key differ: their values, their columns, or their versions alone. Pure.

The three point to different causes. Other values are changes that were not copied, or were written by another program.
Other columns are left out or renamed on the way. Other versions alone are rows whose newest values agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from ots_tunnel.protocol.plainbuffer.spans import RowSpan
from ots_tunnel.verify.rows import RowDifferences


class Nature(StrEnum):
    """In what a row differs; the first that holds is counted."""

    VALUES = "values"
    COLUMNS = "columns"
    VERSIONS = "versions"


def nature_of(first: RowSpan, second: RowSpan, differences: RowDifferences) -> Nature:
    """In what two rows differ.

    Args:
        differences: what `compare_rows` has found; the columns that it names decide.
    """
    one, other = _newest(first), _newest(second)
    names = {name for name, _ in differences.versions}
    in_both = names & one.keys() & other.keys()
    if any(one[name] != other[name] for name in in_both):
        return Nature.VALUES
    return Nature.VERSIONS if in_both == names else Nature.COLUMNS


def _newest(row: RowSpan) -> Mapping[bytes, bytes]:
    """The newest value of each column."""
    cells = sorted(row.cells, key=lambda cell: cell.timestamp_ms or 0)
    return {cell.name: cell.value or b"" for cell in cells}
