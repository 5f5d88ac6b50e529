"""Which columns occurred in a scan: a column that is in no row at all is misspelt more often than empty.

Each task reports the columns that it has seen, by an accumulator, which Spark delivers once the task has succeeded.
When every split of a scan has reported, the driver's log names the columns of none. A scan that is not read to its end,
as with LIMIT, says nothing. Without an accumulator (Spark Connect) each task says it of its own split, in its own log.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.accumulators import AccumulatorParam

from ots_tunnel.log_actions import LogAction

logger = logging.getLogger(__name__)

#: Scans of which some splits have not reported; older ones are forgotten. Own choice.
MAX_OPEN_SCANS = 64


@dataclass(frozen=True, slots=True)
class Scan:
    """One planned query, as its tasks name it."""

    identity: str
    table: str
    splits: int
    columns: tuple[str, ...]
    """Attribute columns of the schema."""


@dataclass(frozen=True, slots=True)
class SplitSeen:
    """What one split held."""

    rows: int
    columns: frozenset[str]


Seen = Mapping[Scan, Mapping[int, SplitSeen]]


class Union(AccumulatorParam):  # type: ignore[misc]  # pyspark has no types we follow
    """Reports by split, so that a split that is reported twice counts once; the form for executors."""

    def zero(self, value: Seen) -> Seen:
        """No report."""
        return {}

    def addInPlace(self, value1: Seen, value2: Seen) -> Seen:
        """The union of both."""
        return {scan: {**value1.get(scan, {}), **value2.get(scan, {})} for scan in {**value1, **value2}}


class WarnWhenComplete(Union):
    """The form for the driver: warns when every split of a scan has reported."""

    def __reduce__(self) -> tuple[type[Union], tuple[()]]:
        return Union, ()

    def addInPlace(self, value1: Seen, value2: Seen) -> Seen:
        """The union of both without scans that are complete."""
        reports = {scan: splits for scan, splits in super().addInPlace(value1, value2).items() if splits}
        for scan in [scan for scan, splits in reports.items() if len(splits) == scan.splits]:
            splits = reports.pop(scan).values()
            warn(scan, sum(split.rows for split in splits), frozenset().union(*(split.columns for split in splits)))
        return dict(list(reports.items())[-MAX_OPEN_SCANS:])


def report(accumulator: Any | None, scan: Scan, split: int, seen: SplitSeen) -> None:
    """Report a split that was read to its end; without an accumulator, warn here."""
    if accumulator is None:
        warn(scan, seen.rows, seen.columns, f"split {split} of ")
    else:
        accumulator.add({scan: {split: seen}})


def warn(scan: Scan, rows: int, seen: frozenset[str], part: str = "") -> None:
    """Log the columns that none of the rows has; nothing without rows."""
    never = [name for name in scan.columns if name not in seen]
    if rows and never:
        logger.warning(
            "%stable %r: none of %d rows has column %s: NULL in every row",
            part,
            scan.table,
            rows,
            ", ".join(map(repr, never)),
            extra={"action": LogAction.COLUMN_NEVER_SEEN, "table": scan.table, "rows": rows, "columns": never},
        )
