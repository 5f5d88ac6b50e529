"""Which columns and versions of a row a read returns, its filters and column conditions; pure.

Source: tablestore-api 2.1 (filters), 2.6.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from google.protobuf.message import DecodeError

from ots_emulator.cells import Cell, build_image, cells_of, key_image, scan_image
from ots_emulator.keys import key_columns
from ots_emulator.refusal import parameter_invalid, request_invalid
from ots_tunnel.errors import CodecError
from ots_tunnel.model import Marker, Value
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.values import decode_value, encode_value

COLUMN_LIMIT: Final = 1024
FILTER_LIMIT: Final = 32
_COMPARE: Final[Mapping[int, Callable[[Any, Any], bool]]] = {
    pb.CT_EQUAL: operator.eq,
    pb.CT_NOT_EQUAL: operator.ne,
    pb.CT_GREATER_THAN: operator.gt,
    pb.CT_GREATER_EQUAL: operator.ge,
    pb.CT_LESS_THAN: operator.lt,
    pb.CT_LESS_EQUAL: operator.le,
}


@dataclass(frozen=True, slots=True)
class Projection:
    """What a read wants of each row; `None` and empty mean everything.

    `start_ms` and `end_ms` are half-open.
    """

    names: frozenset[bytes] = frozenset()
    max_versions: int | None = None
    start_ms: int | None = None
    end_ms: int | None = None
    start_column: bytes | None = None
    end_column: bytes | None = None
    condition: pb.Filter | None = None

    def is_whole(self, stored_versions: int, single: bool) -> bool:
        """Whether a stored row can be returned as it is."""
        return (
            not self.names
            and self.start_ms is None
            and self.condition is None
            and self.start_column is None
            and self.end_column is None
            and (single or self.max_versions is None or self.max_versions >= stored_versions)
        )

    def apply(self, image: bytes, key_names: frozenset[bytes]) -> bytes | None:
        """Cut a stored row down to what is wanted; None when nothing of it is."""
        span = scan_image(image)
        stored = cells_of(span)
        if self.condition is not None and not passes(self.condition, stored, key_values(span.key)):
            return None
        cells = [cell for cell in stored if self._wants(cell)]
        if self.max_versions is not None:
            cells = [
                cell
                for _, versions in groupby(cells, key=lambda cell: cell.name)
                for cell in list(versions)[: self.max_versions]
            ]
        if self.condition is not None:
            cells = paginate(self.condition, cells)
        if not cells:
            # A row without attributes is found unless only attributes were asked for (tablestore-api 2.6).
            return key_image(span) if not self.names or self.names & key_names else None
        return build_image(span, cells)

    def _wants(self, cell: Cell) -> bool:
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


def projection_of(request: ReadRequest, *, missing: str = "No version condition is specified.") -> Projection:
    """Read what a request wants of each row.

    Raises:
        RequestRefusal: no version condition, or one that contradicts itself.
    """
    if len(request.columns_to_get) > COLUMN_LIMIT:
        raise request_invalid(
            f"The number of columns from the request exceeds the limit, limit count: {COLUMN_LIMIT}, "
            f"column count: {len(request.columns_to_get)}."
        )
    max_versions = request.max_versions if request.HasField("max_versions") else None
    if max_versions is not None and max_versions <= 0:
        raise request_invalid("The max versions must be greater than 0.")
    start_ms = end_ms = None
    if request.HasField("time_range"):
        start_ms, end_ms = _time_range(request.time_range, max_versions)
    elif max_versions is None:
        raise request_invalid(missing)
    return Projection(
        frozenset(name.encode() for name in request.columns_to_get),
        max_versions,
        start_ms,
        end_ms,
        request.start_column.encode() if request.HasField("start_column") else None,
        request.end_column.encode() if request.HasField("end_column") else None,
        read_filter(request.filter) if request.filter else None,
    )


def _time_range(time_range: pb.TimeRange, max_versions: int | None) -> tuple[int, int]:
    if time_range.HasField("specific_time"):
        if max_versions is not None:
            # The typo is the service's.
            raise request_invalid("Specific tiemstamp and max versions cannot be given at the same time.")
        return time_range.specific_time, time_range.specific_time + 1
    if time_range.end_time <= time_range.start_time:
        raise request_invalid("End timestamp should be greater than begin timestamp.")
    return time_range.start_time, time_range.end_time


def read_filter(encoded: bytes) -> pb.Filter:
    """Read a filter or column condition.

    Raises:
        RequestRefusal: it is malformed.
    """
    try:
        condition = pb.Filter.FromString(encoded)
        _check_filter(condition, Counter())
    except (DecodeError, CodecError) as error:
        raise request_invalid(f"Invalid filter: {error}.") from error
    return condition


def _check_filter(condition: pb.Filter, seen: Counter[bool]) -> None:
    # Composites count apart from what they are made of; both together bound the depth.
    seen[condition.type == pb.FT_COMPOSITE_COLUMN_VALUE] += 1
    if max(seen.values()) > FILTER_LIMIT:
        raise request_invalid(f"The count of filter exceeds the max: {FILTER_LIMIT}.")
    if condition.type == pb.FT_SINGLE_COLUMN_VALUE:
        single = pb.SingleColumnValueFilter.FromString(condition.filter)
        if single.HasField("value_trans_rule"):
            raise parameter_invalid("value_trans_rule of a filter is not supported yet.")
        if single.comparator not in (pb.CT_EXIST, pb.CT_NOT_EXIST):
            decode_value(single.column_value)
    elif condition.type == pb.FT_COMPOSITE_COLUMN_VALUE:
        composite = pb.CompositeColumnValueFilter.FromString(condition.filter)
        count = len(composite.sub_filters)
        if count != 1 if composite.combinator == pb.LO_NOT else count < 2:
            raise request_invalid(f"Invalid filter: {count} sub-filters for combinator {composite.combinator}.")
        for sub_filter in composite.sub_filters:
            _check_filter(sub_filter, seen)
    else:
        pb.ColumnPaginationFilter.FromString(condition.filter)


def key_values(key: bytes) -> dict[bytes, bytes]:
    """Return the key columns of a row as filters see them."""
    return {name.encode(): encode_value(value) for name, value in key_columns(key)}


def passes(condition: pb.Filter, cells: Sequence[Cell], key: dict[bytes, bytes]) -> bool:
    """Whether a row passes a filter or column condition; a row that does not exist has no cells and no key."""
    if condition.type == pb.FT_COMPOSITE_COLUMN_VALUE:
        composite = pb.CompositeColumnValueFilter.FromString(condition.filter)
        results = (passes(sub_filter, cells, key) for sub_filter in composite.sub_filters)
        if composite.combinator == pb.LO_NOT:
            return not next(results)
        return all(results) if composite.combinator == pb.LO_AND else any(results)
    if condition.type == pb.FT_COLUMN_PAGINATION:
        return True
    single = pb.SingleColumnValueFilter.FromString(condition.filter)
    name = single.column_name.encode()
    values = [key[name]] if name in key else [cell.value for cell in cells if cell.name == name]
    if single.comparator in (pb.CT_EXIST, pb.CT_NOT_EXIST):
        return bool(values) == (single.comparator == pb.CT_EXIST)
    if not values:
        return not single.filter_if_missing
    if single.latest_version_only:
        values = values[:1]
    return any(_compares(decode_value(value), decode_value(single.column_value), single.comparator) for value in values)


def paginate(condition: pb.Filter, cells: Sequence[Cell]) -> list[Cell]:
    """Apply a column pagination filter, wherever in the filter it stands."""
    if condition.type == pb.FT_COMPOSITE_COLUMN_VALUE:
        for sub_filter in pb.CompositeColumnValueFilter.FromString(condition.filter).sub_filters:
            cells = paginate(sub_filter, cells)
    elif condition.type == pb.FT_COLUMN_PAGINATION:
        page = pb.ColumnPaginationFilter.FromString(condition.filter)
        columns = [list(versions) for _, versions in groupby(cells, key=lambda cell: cell.name)]
        cells = [cell for versions in columns[page.offset : page.offset + page.limit] for cell in versions]
    return list(cells)


def _compares(found: Value | Marker, wanted: Value | Marker, comparator: int) -> bool:
    if type(found) is not type(wanted):
        return comparator == pb.CT_NOT_EQUAL
    return bool(_COMPARE[comparator](_ordered(found), _ordered(wanted)))


def _ordered(value: Value | Marker) -> float | bytes:
    if isinstance(value, str):
        return value.encode()
    return 0 if isinstance(value, Marker) else value
