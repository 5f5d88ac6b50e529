"""Result of a comparison: counts, and the first differences with the values of both tables. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from ots_tunnel.model import PrimaryKey

#: Default number of differences that are kept with their keys; all are counted.
KEPT_DIFFERENCES = 10


class Difference(StrEnum):
    """How a row of the second table differs from that of the first."""

    MISSING = "missing"
    EXTRA = "extra"
    DIFFERENT = "different"


@dataclass(frozen=True, slots=True)
class ShownValue:
    """A cell's value for display: the service's name of its type, and a text that is shortened if it is long."""

    type: str
    text: str

    def __str__(self) -> str:
        return f"{self.type} {self.text}"


@dataclass(frozen=True, slots=True)
class CellDifference:
    """One version of one column that differs; None if a table has no such version.

    Args:
        version: milliseconds.
        first: value in the first table.
        second: value in the second table.
    """

    column: str
    version: int
    first: ShownValue | None
    second: ShownValue | None

    def __str__(self) -> str:
        return f"{self.column} @ {self.version}: {self.first or 'absent'} | {self.second or 'absent'}"


@dataclass(frozen=True, slots=True)
class DifferingRow:
    """A row that differs between the tables.

    Args:
        cells: the first differing versions, if both tables have the row.
        more: number of further differing versions.
    """

    kind: Difference
    primary_key: PrimaryKey
    cells: tuple[CellDifference, ...] = ()
    more: int = 0

    def __str__(self) -> str:
        return f"{self.kind}: " + ", ".join(f"{name}={value!r}" for name, value in self.primary_key)


@dataclass(slots=True)
class Comparison:
    """Counts of what was compared and what differs.

    `rows`, `cells` and `versions` count the first table; a cell is a column of a row and has one or more versions.
    `in_values`, `in_columns` and `in_versions` say in what the rows of `different` differ (see `nature`).
    `near_expiry` counts differing versions that were left out, because one table may hide them before the other.
    `settled` counts rows that differed at first and were equal when they were read again. `first` holds the first
    `keep` differences.
    """

    rows: int = 0
    cells: int = 0
    versions: int = 0
    missing: int = 0
    extra: int = 0
    different: int = 0
    in_values: int = 0
    in_columns: int = 0
    in_versions: int = 0
    near_expiry: int = 0
    settled: int = 0
    first: list[DifferingRow] = field(default_factory=list)
    keep: int = KEPT_DIFFERENCES

    @property
    def differences(self) -> int:
        """Number of rows that differ."""
        return self.missing + self.extra + self.different

    @property
    def equal(self) -> bool:
        """Whether no row differs."""
        return self.differences == 0

    @property
    def keeps_more(self) -> bool:
        """Whether the next difference is kept with its key."""
        return len(self.first) < self.keep

    def count(self, kind: Difference) -> None:
        """Count a row that differs."""
        match kind:
            case Difference.MISSING:
                self.missing += 1
            case Difference.EXTRA:
                self.extra += 1
            case Difference.DIFFERENT:
                self.different += 1

    def add(self, other: Comparison) -> None:
        """Add the result of another part of the tables; parts are added in key order."""
        for name in COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.first = (self.first + other.first)[: self.keep]


#: Fields of a comparison that are counts, in the order of a state file.
COUNTS = (
    "rows",
    "cells",
    "versions",
    "missing",
    "extra",
    "different",
    "in_values",
    "in_columns",
    "in_versions",
    "near_expiry",
    "settled",
)
