"""Selection of columns and versions that a read returns; pure.

Source: docs/data-plane.md 2.6.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from ots_emulator.api.rows.change_check import check_name
from ots_emulator.api.rows.filters import Filter, key_values, read_filter
from ots_emulator.api.rows.patterns import Work
from ots_emulator.refusal import check_table_name, request_invalid
from ots_emulator.tables.cells import Cell, build_image, cells_of, key_image, scan_image
from ots_tunnel.protocol import table_pb2 as pb

COLUMN_LIMIT: Final = 1024
#: In place of a number of versions.
ALL_VERSIONS: Final = -1
_TOGETHER: Final = "cannot be given at the same time."


@dataclass(frozen=True, slots=True)
class Projection:
    """The selection of a read; None and empty select everything, `start_ms` to `end_ms` is half-open."""

    names: frozenset[bytes] = frozenset()
    max_versions: int | None = None
    start_ms: int | None = None
    end_ms: int | None = None
    start_column: bytes | None = None
    end_column: bytes | None = None
    filter: Filter | None = None
    work: Work = field(default_factory=Work)
    """What the filter's expressions may still do for this request."""

    def is_whole(self, stored_versions: int, single: bool) -> bool:
        """Whether a stored row can be returned unchanged."""
        return (
            not self.names
            and self.start_ms is None
            and self.filter is None
            and self.start_column is None
            and self.end_column is None
            and (single or self.max_versions is None or self.max_versions >= stored_versions)
        )

    def apply(self, image: bytes, key_names: frozenset[bytes]) -> bytes | None:
        """Return the selected part of a stored row, None if nothing is selected."""
        span = scan_image(image)
        cells = [cell for cell in cells_of(span) if self._selects(cell)]
        if self.max_versions is not None:
            cells = [
                cell
                for _, versions in groupby(cells, key=lambda cell: cell.name)
                for cell in list(versions)[: self.max_versions]
            ]
        if self.filter is not None:
            # A filter applies to the selected cells, not the stored ones.
            if not self.filter.passes(cells, key_values(span.key)):
                return None
            cells = list(self.filter.paginate(cells))
        if not cells:
            # A row is returned without attributes unless only attributes were requested (docs/data-plane.md 2.6).
            return key_image(span) if not self.names or self.names & key_names else None
        return build_image(span, cells)

    def _selects(self, cell: Cell) -> bool:
        if self.names and cell.name not in self.names:
            return False
        if self.start_column is not None and cell.name < self.start_column:
            return False
        if self.end_column is not None and cell.name >= self.end_column:
            return False
        if self.start_ms is None or self.end_ms is None:
            return True
        return self.start_ms <= cell.timestamp_ms < self.end_ms


ReadRequest = pb.GetRowRequest | pb.GetRangeRequest | pb.TableInBatchGetRowRequest


def projection_of(
    request: ReadRequest, work: Work, *, missing: str = "No version condition is specified."
) -> Projection:
    """Check the table's name and read the selection of a request: columns, filter, versions, in this order.

    `work` is what the expressions of the whole call may still do.

    Raises:
        RequestRefusal: no table has this name, a malformed filter, no version condition, or one that contradicts
            itself.
    """
    check_table_name(request.table_name)
    if len(request.columns_to_get) > COLUMN_LIMIT:
        raise request_invalid(
            f"The number of columns from the request exceeds the limit, limit count: {COLUMN_LIMIT}, "
            f"column count: {len(request.columns_to_get)}."
        )
    names = [name.encode() for name in request.columns_to_get]
    for name in names:
        check_name(name)
    condition = read_filter(request.filter, work) if request.filter else None
    has_versions = request.HasField("max_versions")
    if has_versions and request.max_versions <= 0 and request.max_versions != ALL_VERSIONS:
        raise request_invalid(f"Invalid max versions: {request.max_versions}. Reason: Max versions must be positive.")
    start_ms = end_ms = None
    if request.HasField("time_range"):
        start_ms, end_ms = _time_range(request.time_range, has_versions=has_versions)
    elif not has_versions:
        raise request_invalid(missing)
    return Projection(
        frozenset(names),
        request.max_versions if has_versions and request.max_versions != ALL_VERSIONS else None,
        start_ms,
        end_ms,
        request.start_column.encode() if request.HasField("start_column") else None,
        request.end_column.encode() if request.HasField("end_column") else None,
        condition,
        work,
    )


def _time_range(time_range: pb.TimeRange, *, has_versions: bool) -> tuple[int, int]:
    has_start, has_end = time_range.HasField("start_time"), time_range.HasField("end_time")
    if time_range.HasField("specific_time"):
        has_range = has_start or has_end
        if has_range and has_versions:
            raise request_invalid(f"Specific timestamp, time range and max versions {_TOGETHER}")
        if has_range or has_versions:
            other = "time range" if has_range else "max versions"
            # The typo is the service's.
            raise request_invalid(f"Specific tiemstamp and {other} {_TOGETHER}")
        if time_range.specific_time < 0:
            raise request_invalid("Specific timestamp cannot be less than 0.")
        return time_range.specific_time, time_range.specific_time + 1
    if not (has_start and has_end):
        raise request_invalid("Start and end time must be given at the same time.")
    if time_range.end_time <= time_range.start_time:
        raise request_invalid("End timestamp should be greater than begin timestamp.")
    return time_range.start_time, time_range.end_time
