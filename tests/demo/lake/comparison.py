"""Compares a table with its mirror, row by row in the order of their keys. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

#: The values of the key, and value and version of each attribute.
Row = tuple[tuple[Any, ...], dict[str, tuple[Any, int | None]]]
#: Differences that are kept with their words.
KEPT = 10
#: Rows between two reports.
STEP = 2000


@dataclass
class Comparison:
    """What was compared, and what differs."""

    rows: int = 0
    values: int = 0
    differences: int = 0
    first: list[str] = field(default_factory=list)

    def differ(self, text: str) -> None:
        """Count a difference."""
        self.differences += 1
        if len(self.first) < KEPT:
            self.first.append(text)


def compare(table: Iterator[Row], mirror: Iterator[Row], progress: Callable[[int], None]) -> Comparison:
    """Compare every row, value and version; both sides are in the order of their keys.

    Args:
        progress: called with the number of rows of the table so far.
    """
    found = Comparison()
    ours, theirs = next(table, None), next(mirror, None)
    while ours is not None or theirs is not None:
        if theirs is None or (ours is not None and ours[0] < theirs[0]):
            assert ours is not None
            found.differ(f"{ours[0]}: missing in the mirror")
            ours = next(table, None)
        elif ours is None or theirs[0] < ours[0]:
            found.differ(f"{theirs[0]}: only in the mirror")
            theirs = next(mirror, None)
        else:
            _compare_values(found, ours, theirs)
            found.rows += 1
            if found.rows % STEP == 0:
                progress(found.rows)
            ours, theirs = next(table, None), next(mirror, None)
    progress(found.rows)
    return found


def _compare_values(found: Comparison, ours: Row, theirs: Row) -> None:
    key, values = ours
    found.values += len(values)
    for name in sorted(values.keys() | theirs[1].keys()):
        one, other = values.get(name), theirs[1].get(name)
        # 1 and True, or 0.0 and -0.0, are equal to Python
        if repr(one) != repr(other):
            found.differ(f"{key} {name}: {one} in the table, {other} in the mirror")
