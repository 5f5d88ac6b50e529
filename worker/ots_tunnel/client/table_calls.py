"""Requests and answers of the table calls, without input or output; both table clients use them.

Source: docs/data-plane.md 2.1, 2.4-2.7.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ots_tunnel.errors import CodecError
from ots_tunnel.model import Action, KeyColumn, KeyType, Marker, PrimaryKey
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.http.message import HttpResponse
from ots_tunnel.protocol.http.operations import Operation
from ots_tunnel.protocol.http.rpc import body_of, parse_response
from ots_tunnel.protocol.page import all_rows_stored, batch_write_message
from ots_tunnel.protocol.plainbuffer.building import join_row
from ots_tunnel.protocol.plainbuffer.codec import decode_primary_key, encode_primary_key
from ots_tunnel.protocol.plainbuffer.spans import check_header, scan_row

#: Default unit of ComputeSplitPointsBySize: 100 MiB, as in the service (docs/data-plane.md 2.7).
DEFAULT_SPLIT_UNIT_BYTES = 104_857_600
#: Most columns that a read may name. The vendor's documentation says 128 and its tests 1,024 (docs/data-plane.md 2.2).
MAX_COLUMNS = 128


@dataclass(frozen=True, slots=True)
class RowChange:
    """One change of one row; `body` is a PlainBuffer row with header and without extension."""

    action: Action
    body: bytes

    def __repr__(self) -> str:
        return f"RowChange({self.action.name}, {len(self.body)} bytes)"


@dataclass(frozen=True, slots=True)
class RowOutcome:
    """Outcome of one row change; `code` is None if it was stored."""

    code: str | None
    message: str = ""


@dataclass(frozen=True, slots=True)
class RangePage:
    """Rows of one GetRange: one PlainBuffer header, then all rows; empty bytes for no rows."""

    rows: bytes
    next_start: PrimaryKey | None

    def __repr__(self) -> str:
        return f"RangePage({len(self.rows)} bytes, last={self.next_start is None})"


@dataclass(frozen=True, slots=True)
class KeyRange:
    """A slice of a table in key order: `start` inclusive, `end` exclusive."""

    start: PrimaryKey
    end: PrimaryKey
    location: str = ""

    def __repr__(self) -> str:
        return f"KeyRange(location={self.location!r})"


@dataclass(frozen=True, slots=True)
class StreamDescription:
    """The change log of a table: its retention, and the time since which it is enabled in Unix seconds, if known."""

    enabled: bool
    stream_id: str = ""
    expiration_hours: int = 0
    enabled_time: float | None = None


@dataclass(frozen=True, slots=True)
class TableDescription:
    """The service's description of a table.

    Args:
        time_to_live: seconds; -1 means without end.
        max_version_deviation: seconds by which an explicit version may differ from the server's clock.
        created_us: creation time, microseconds; None if the service does not tell. It tells a table from a later one
            of the same name.
        defined_columns: (name, type) with the service's type names, such as ``("price", "DOUBLE")``.
        service_time: Unix seconds of the answer by the service's clock; None where it does not tell. No part of the
            table.
    """

    name: str
    primary_key: tuple[KeyColumn, ...]
    time_to_live: int
    max_versions: int
    max_version_deviation: int
    stream: StreamDescription
    created_us: int | None = None
    defined_columns: tuple[tuple[str, str], ...] = ()
    allow_update: bool = True
    service_time: float | None = field(default=None, compare=False)


def batch_write_request(table: str, rows: Sequence[RowChange]) -> pb.BatchWriteRowRequest:
    """Unconditional changes of one table, in order."""
    return batch_write_message(table, ((row.action, row.body) for row in rows))


def batch_write_outcomes(response: pb.BatchWriteRowResponse, count: int) -> list[RowOutcome]:
    """One outcome per row, in the request's order.

    Raises:
        CodecError: the answer does not list every row.
    """
    rows = [row for table in response.tables for row in table.rows]
    if len(rows) != count:
        raise CodecError(f"answer to BatchWriteRow lists {len(rows)} rows, sent were {count}")
    return [STORED if row.is_ok else RowOutcome(row.error.code, row.error.message) for row in rows]


def outcomes_unless_stored(count: int, operation: Operation, response: HttpResponse) -> list[RowOutcome] | None:
    """The outcomes of a batch of `count` rows; None, recognized without its objects, means that all are stored."""
    if all_rows_stored(body_of(operation, response), count):
        return None
    return batch_write_outcomes(parse_response(operation, response), count)


def get_range_request(
    table: str,
    start: PrimaryKey,
    end: PrimaryKey,
    *,
    max_versions: int,
    limit: int | None = None,
    direction_forward: bool = True,
    columns: Sequence[str] = (),
    versions: tuple[int, int] | None = None,
) -> pb.GetRangeRequest:
    """Rows from `start` (inclusive) to `end` (exclusive) with up to `max_versions` versions per column.

    The service cuts a row that is larger than an answer; `rest_of_row` returns the request for the rest.

    Args:
        columns: those to return, at most `MAX_COLUMNS`; none for all. A row that has none of them is left out, unless a
            column of the key is among them. The key is part of every row.
        versions: the cells to return, by their version: milliseconds, the first inclusive, the second exclusive.
    """
    request = pb.GetRangeRequest(
        table_name=table,
        direction=pb.FORWARD if direction_forward else pb.BACKWARD,
        max_versions=max_versions,
        inclusive_start_primary_key=encode_primary_key(start),
        exclusive_end_primary_key=encode_primary_key(end),
        columns_to_get=columns,
    )
    if limit is not None:
        request.limit = limit
    if versions is not None:
        request.time_range.start_time, request.time_range.end_time = versions
    return request


def get_range_page(response: pb.GetRangeResponse) -> RangePage:
    """The rows as received, and the start of the next call; None after the last row."""
    following = response.next_start_primary_key
    return RangePage(response.rows, decode_primary_key(following) if following else None)


def rest_of_row(request: pb.GetRangeRequest, response: pb.GetRangeResponse) -> pb.GetRangeRequest | None:
    """Request for the rest of the last row of an answer; None if that row is whole (docs/data-plane.md 2.6)."""
    if not response.next_token:
        return None
    following = pb.GetRangeRequest()
    following.CopyFrom(request)
    following.inclusive_start_primary_key = response.next_start_primary_key
    following.token = response.next_token
    following.limit = 1
    return following


def join_parts(response: pb.GetRangeResponse, part: pb.GetRangeResponse) -> pb.GetRangeResponse:
    """Join an answer with the next one, whose first row is the rest of the last row.

    Raises:
        CodecError: the first row of the part has another key, or one of the answers has no rows.
    """
    offset, last = check_header(response.rows), None
    while offset < len(response.rows):
        start, last = offset, scan_row(response.rows, offset)
        offset = last.end
    added = scan_row(part.rows, check_header(part.rows)) if part.rows else None
    if last is None or added is None or last.key != added.key:
        raise CodecError("the next answer does not continue the row that was cut")
    cells = [(cell.raw, cell.checksum) for cell in (*last.cells, *added.cells)]
    whole = join_row(last.key, last.key_checksums, cells, header=False)
    joined = pb.GetRangeResponse()
    joined.CopyFrom(part)
    joined.rows = response.rows[:start] + whole + part.rows[added.end :]
    return joined


def compute_splits_request(table: str, size_units: int, unit_bytes: int) -> pb.ComputeSplitPointsBySizeRequest:
    """Slices of about `size_units` x `unit_bytes`; the unit is at least 1 MiB."""
    return pb.ComputeSplitPointsBySizeRequest(
        table_name=table, split_size=size_units, split_size_unit_in_byte=unit_bytes
    )


def compute_splits_ranges(response: pb.ComputeSplitPointsBySizeResponse) -> tuple[KeyRange, ...]:
    """The N + 1 ranges of N split points; key columns that a point omits count as INF_MIN."""
    names = [column.name for column in response.schema]
    points = [_complete(decode_primary_key(point), names) for point in response.split_points]
    bounds = [tuple((name, Marker.INF_MIN) for name in names), *points, tuple((name, Marker.INF_MAX) for name in names)]
    places = [place.location for place in response.locations for _ in range(place.repeat)]
    places += [""] * (len(bounds) - 1 - len(places))
    return tuple(KeyRange(start, end, place) for start, end, place in zip(bounds, bounds[1:], places, strict=False))


def describe_table_result(response: pb.DescribeTableResponse, service_time: float | None = None) -> TableDescription:
    """The parts of a table's description that reading and copying need.

    Args:
        service_time: of the answer.

    Raises:
        CodecError: the answer has no time to live.
    """
    options = response.table_options
    if not options.time_to_live:
        # optional on the wire, and no table has 0: read as 0 it would say that every cell has expired
        raise CodecError("answer to DescribeTable: time_to_live: found 0 or none, allowed is -1 or a number of seconds")
    return TableDescription(
        name=response.table_meta.table_name,
        primary_key=tuple(
            KeyColumn(column.name, KeyType(column.type), column.HasField("option"))
            for column in response.table_meta.primary_key
        ),
        time_to_live=options.time_to_live,
        max_versions=options.max_versions,
        max_version_deviation=options.deviation_cell_version_in_sec,
        stream=describe_stream_result(response),
        created_us=response.creation_time or None,
        defined_columns=tuple(
            (column.name, pb.DefinedColumnType.Name(column.type).removeprefix("DCT_"))
            for column in response.table_meta.defined_column
        ),
        # a release of the service that does not know the option allows updates
        allow_update=options.allow_update or not options.HasField("allow_update"),
        service_time=service_time,
    )


def describe_stream_result(response: pb.DescribeTableResponse) -> StreamDescription:
    """The part of a table's description about its change log."""
    stream = response.stream_details
    return StreamDescription(
        stream.enable_stream, stream.stream_id, stream.expiration_time, stream.last_enable_time / 1e6 or None
    )


def _complete(point: PrimaryKey, names: Sequence[str]) -> PrimaryKey:
    return point + tuple((name, Marker.INF_MIN) for name in names[len(point) :])


STORED = RowOutcome(None)
