"""What a scan has read, and which columns occurred: one that is in no row at all is misspelt more often than empty.

Each task reports what it has read and seen, by an accumulator, which Spark delivers once the task has succeeded. When
every split of a scan has reported, the driver's log has a line of figures, and one that names the columns of none. A
scan that is not read to its end, as with LIMIT, says nothing. Without an accumulator (Spark Connect) each task says it
of its own split, in its own log. Spark has no metrics of its own for sources in Python.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
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
    """What one split held, and what reading it took."""

    rows: int
    columns: frozenset[str] = frozenset()
    pages: int = 0
    """Answers of the service."""
    size: int = 0
    """Bytes of rows in them."""
    waited: float = 0.0
    """Seconds for which the task waited for them."""


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
            tell(scan, reports.pop(scan).values())
        return dict(list(reports.items())[-MAX_OPEN_SCANS:])


def report(accumulator: Any | None, scan: Scan, split: int, seen: SplitSeen) -> None:
    """Report a split that was read to its end; without an accumulator, tell it here."""
    if accumulator is None:
        tell(scan, (seen,), f"split {split} of ")
    else:
        accumulator.add({scan: {split: seen}})


def tell(scan: Scan, splits: Collection[SplitSeen], part: str = "") -> None:
    """Log what was read, and warn of the columns that none of the rows has."""
    rows, pages, size = (sum(getattr(split, name) for split in splits) for name in ("rows", "pages", "size"))
    waited = sum(split.waited for split in splits)
    logger.info(
        "%stable %r: %d rows in %d pages with %d bytes, for which tasks waited %.1f s",
        part,
        scan.table,
        rows,
        pages,
        size,
        waited,
        extra={
            "action": LogAction.SCAN_READ,
            "table": scan.table,
            "rows": rows,
            "pages": pages,
            "bytes": size,
            "seconds": round(waited, 3),
        },
    )
    seen = frozenset[str]().union(*(split.columns for split in splits))
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
