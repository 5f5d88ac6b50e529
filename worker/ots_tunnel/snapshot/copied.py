"""What of a table is copied: finished splits, cursors of the others, and how reports of tasks change it. Pure.

A task copies its split from where it stands, and reports how far it came. A report counts only where it begins where
the split stands now. So one that comes twice, or that of an earlier attempt, changes nothing: neither the cursor, which
never goes back, nor the number of omitted cells.

Example: split 3 has the keys 100 to 200. A task copies it up to 140 and reports (100, 140): its cursor is 140. The same
report once more begins at 100 and is ignored. The next task reports (140, None): the split is finished.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ots_tunnel.model import PrimaryKey
from ots_tunnel.snapshot.cursors import MAX_BYTES, key_bytes
from ots_tunnel.snapshot.splits import Split, SplitList


class Report(NamedTuple):
    """What one task has copied of its split; every row in between is stored."""

    split: int
    start: PrimaryKey
    """Where it began."""
    cursor: PrimaryKey | None
    """Where the split resumes; None where it is finished."""
    rows: int
    """Row changes that were written."""
    omitted: int
    """Cells that were left out, because they are past the destination's time to live."""


@dataclass(frozen=True, slots=True)
class Copied:
    """What is copied."""

    done: frozenset[int] = frozenset()
    """Finished splits."""
    cursors: Mapping[int, PrimaryKey] = field(default_factory=dict)
    """Where unfinished splits resume; one without a cursor begins at its start."""
    omitted: int | None = 0
    """Cells that were left out; None where an earlier release did not count some of them."""

    def pending(self, splits: SplitList) -> list[Split]:
        """What is left of every unfinished split, those that are copied in part first: they hold room for cursors."""
        left = [splits.split(index) for index in range(len(splits)) if index not in self.done]
        resumed = [replace(split, start=self.cursors[split.index]) for split in left if split.index in self.cursors]
        return resumed + [split for split in left if split.index not in self.cursors]

    def after(self, reports: Iterable[Report], splits: SplitList) -> Copied:
        """What is copied with these reports; those that begin elsewhere, or whose cursor has no room, do not count."""
        done, cursors, omitted = set(self.done), dict(self.cursors), self.omitted
        used = sum(map(key_bytes, cursors.values()))
        for report in reports:
            before = cursors.get(report.split)
            stands = splits.split(report.split).start if before is None else before
            if report.split in done or report.start != stands:
                continue
            freed = 0 if before is None else key_bytes(before)
            taken = 0 if report.cursor is None else key_bytes(report.cursor)
            # a single cursor always has room: the copy advances whatever the length of its keys
            if used - freed + taken > MAX_BYTES and cursors.keys() - {report.split}:
                continue
            used += taken - freed
            if report.cursor is None:
                done.add(report.split)
                cursors.pop(report.split, None)
            else:
                cursors[report.split] = report.cursor
            omitted = None if omitted is None else omitted + report.omitted
        return Copied(frozenset(done), cursors, omitted)
