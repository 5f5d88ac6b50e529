"""What a comparison finds: counts, and the first differences with what both tables hold; pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from ots_tunnel.model import PrimaryKey

#: Differences that are kept with their keys where nobody says otherwise; all are counted.
KEPT_DIFFERENCES = 10


class Difference(StrEnum):
    """How a row of the second table differs from that of the first."""

    MISSING = "missing"
    EXTRA = "extra"
    DIFFERENT = "different"


@dataclass(frozen=True, slots=True)
class ShownValue:
    """A cell's value for people: its type with the service's name, and a text that is cut where it is long."""

    type: str
    text: str

    def __str__(self) -> str:
        return f"{self.type} {self.text}"


@dataclass(frozen=True, slots=True)
class CellDifference:
    """One version of one column that the tables do not have alike; None where a table has no such version.

    Args:
        version: milliseconds.
        first: what the first table holds.
        second: what the second table holds.
    """

    column: str
    version: int
    first: ShownValue | None
    second: ShownValue | None

    def __str__(self) -> str:
        return f"{self.column} @ {self.version}: {self.first or 'absent'} | {self.second or 'absent'}"


@dataclass(frozen=True, slots=True)
class DifferingRow:
    """A row that is not the same in both tables.

    Args:
        cells: the first versions that differ, of a row that both tables have.
        more: versions that differ beside them.
    """

    kind: Difference
    primary_key: PrimaryKey
    cells: tuple[CellDifference, ...] = ()
    more: int = 0

    def __str__(self) -> str:
        return f"{self.kind}: " + ", ".join(f"{name}={value!r}" for name, value in self.primary_key)


@dataclass(slots=True)
class Comparison:
    """What was compared so far, and what differs.

    `rows`, `cells` and `versions` count the first table: a cell is a column of a row, which has one or more versions.
    `near_expiry` counts versions that differ and were left out, because one table may hide them before the other;
    `settled` rows that differed at first and no longer when they were read again. The first `keep` differences are
    kept.
    """

    rows: int = 0
    cells: int = 0
    versions: int = 0
    missing: int = 0
    extra: int = 0
    different: int = 0
    near_expiry: int = 0
    settled: int = 0
    first: list[DifferingRow] = field(default_factory=list)
    keep: int = KEPT_DIFFERENCES

    @property
    def differences(self) -> int:
        """Rows that are not the same in both tables."""
        return self.missing + self.extra + self.different

    @property
    def equal(self) -> bool:
        """Whether both tables hold the same."""
        return self.differences == 0

    @property
    def keeps_more(self) -> bool:
        """Whether a further difference is kept with its key."""
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
        """Take over what another part of the tables gave; parts are added in key order."""
        for name in COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.first = (self.first + other.first)[: self.keep]


#: Fields of a comparison that are counted, in the order of a state file.
COUNTS = ("rows", "cells", "versions", "missing", "extra", "different", "near_expiry", "settled")
