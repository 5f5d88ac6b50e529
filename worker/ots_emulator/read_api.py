"""Row reads: get, batch get, range, split points (tablestore-api 2.6, 2.7)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ots_emulator.call import Call
from ots_emulator.cells import HEADER
from ots_emulator.columns import Projection, projection_of
from ots_emulator.keys import BOTTOM_KEY, TOP_KEY, Key, read_primary_key
from ots_emulator.refusal import Refusal, RequestRefusal, parameter_invalid, request_invalid
from ots_emulator.rowcheck import capacity_units
from ots_emulator.store import Table
from ots_emulator.table_api import key_schema
from ots_tunnel.model import PrimaryKey
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.plainbuffer import encode_primary_key

GET_ROWS: Final = 100
_SPLIT_UNIT: Final = 100 << 20
_SPLIT_UNIT_MIN: Final = 1 << 20


def get_row(call: Call, request: pb.GetRowRequest) -> bytes:
    """Read one row; a missing one is empty."""
    _refuse_unsupported(request)
    projection = projection_of(request)
    table = call.instance.table(request.table_name)
    row = _read(call, table, read_primary_key(request.primary_key), projection)
    return pb.GetRowResponse(consumed=_consumed(len(row)), row=row).SerializeToString()


def batch_get_row(call: Call, request: pb.BatchGetRowRequest) -> bytes:
    """Read rows by key; what needs the table fails the row, everything else the request."""
    if sum(len(table.primary_key) for table in request.tables) > GET_ROWS:
        raise request_invalid(f"Rows count exceeds the upper limit: {GET_ROWS}.")
    if not request.tables:
        raise request_invalid("No row specified in the request of BatchGetRow.")
    response = pb.BatchGetRowResponse()
    for asked in request.tables:
        projection = projection_of(asked, missing="No version condition is specified while querying row.")
        keys = [read_primary_key(key) for key in asked.primary_key]
        if len(set(asked.primary_key)) != len(keys):
            raise request_invalid("Duplicate rows detected in MultiGet.")
        if len({len(key) for key in keys}) > 1:
            raise request_invalid(f"PK column size not the same for all rows in table: {asked.table_name}.")
        answer = response.tables.add(table_name=asked.table_name)
        for key in keys:
            answer.rows.append(_batch_row(call, asked.table_name, key, projection))
    return response.SerializeToString()


def _batch_row(call: Call, name: str, key: PrimaryKey, projection: Projection) -> pb.RowInBatchGetRowResponse:
    try:
        row = _read(call, call.instance.table(name), key, projection)
    except RequestRefusal:
        raise
    except Refusal as refusal:
        error = pb.Error(code=refusal.code, message=refusal.message)
        return pb.RowInBatchGetRowResponse(is_ok=False, error=error, consumed=_consumed(0))
    return pb.RowInBatchGetRowResponse(is_ok=True, consumed=_consumed(len(row)), row=row)


def _read(call: Call, table: Table, primary_key: PrimaryKey, projection: Projection) -> bytes:
    table.schema.check(primary_key)
    key = table.schema.bound(primary_key)
    image = table.get(key, call.now_ms)
    if image is None:
        return b""
    if not projection.is_whole(table.options.max_versions, table.single_versions(key)):
        image = projection.apply(image, table.schema.names)
    return b"" if image is None else HEADER + image


def get_range(call: Call, request: pb.GetRangeRequest) -> bytes:
    """Read rows between two keys, in either direction, one page of them."""
    _refuse_unsupported(request)
    projection = projection_of(request)
    if request.HasField("limit") and request.limit <= 0:
        raise request_invalid("The limit must be greater than 0.")
    table = call.instance.table(request.table_name)
    start = table.schema.bound(read_primary_key(request.inclusive_start_primary_key))
    end = table.schema.bound(read_primary_key(request.exclusive_end_primary_key))
    backward = request.direction == pb.BACKWARD
    if backward and not start > end:
        raise parameter_invalid("Begin key must more than end key in BACKWARD")
    if not backward and not start < end:
        raise parameter_invalid("Begin key must less than end key in FORWARD")
    limit = request.limit if request.HasField("limit") else None
    rows, following = _page(call, table, (start, end, backward), projection, limit)
    body = HEADER + b"".join(rows) if rows else b""
    return pb.GetRangeResponse(
        consumed=_consumed(len(body)),
        rows=body,
        next_start_primary_key=None if following is None else table.schema.encode(following),
    ).SerializeToString()


def _page(
    call: Call, table: Table, span: tuple[Key, Key, bool], projection: Projection, limit: int | None
) -> tuple[list[bytes], Key | None]:
    """Return the rows of one page and the key of the next one, None at the end of the range."""
    start, end, backward = span
    stored = table.options.max_versions
    as_stored = projection.is_whole(stored, single=False)
    single_as_stored = projection.is_whole(stored, single=True)
    most_rows, most_bytes = call.settings.range_rows, call.settings.range_bytes
    scan = table.scan(start, end, call.now_ms, backward=backward)
    rows: list[bytes] = []
    size = 0
    for scanned, (key, image) in enumerate(scan, 1):
        row: bytes | None = image
        if not as_stored and not (single_as_stored and table.single_versions(key)):
            row = projection.apply(image, table.schema.names)
        if row is not None:
            rows.append(row)
        # Scanning costs what is stored, not what is left of it.
        size += len(image)
        if scanned >= most_rows or size >= most_bytes or len(rows) == limit:
            return rows, next((following for following, _ in scan), None)
    return rows, None


def compute_split_points(call: Call, request: pb.ComputeSplitPointsBySizeRequest) -> bytes:
    """Cut the table into parts of about the given size; N points make N + 1 splits."""
    unit = request.split_size_unit_in_byte if request.HasField("split_size_unit_in_byte") else _SPLIT_UNIT
    if unit < _SPLIT_UNIT_MIN:
        raise parameter_invalid(f"The split_size_unit_in_byte should be greater equal than: {_SPLIT_UNIT_MIN}")
    if request.split_size <= 0:
        raise parameter_invalid("The split_size should be greater than 0.")
    table = call.instance.table(request.table_name)
    points = _partition_keys(call, table, -(-table.size_bytes // (request.split_size * unit)))
    if request.HasField("split_point_limit") and request.split_point_limit > 0:
        points = points[: request.split_point_limit]
    return pb.ComputeSplitPointsBySizeResponse(
        consumed=_consumed(0),
        schema=key_schema(table),
        split_points=[encode_primary_key(table.schema.primary_key(point)[:1]) for point in points],
    ).SerializeToString()


def _partition_keys(call: Call, table: Table, parts: int) -> list[Key]:
    """Return the partition keys at which to cut: rows of one stay together, the other columns count as INF_MIN."""
    lowest = next((key[:1] for key, _ in table.scan(BOTTOM_KEY, TOP_KEY, call.now_ms)), None)
    return [cut for cut in dict.fromkeys(key[:1] for key in table.quantiles(parts)) if cut != lowest]


def _refuse_unsupported(request: pb.GetRowRequest | pb.GetRangeRequest) -> None:
    for name in ("transaction_id", "token"):
        if getattr(request, name):
            raise request_invalid(f"{name} is not supported yet.")


def _consumed(size_bytes: int) -> pb.ConsumedCapacity:
    return pb.ConsumedCapacity(capacity_unit=pb.CapacityUnit(read=capacity_units(size_bytes), write=0))


HANDLERS: Final[Mapping[str, Callable[[Call, Any], bytes]]] = {
    "GetRow": get_row,
    "BatchGetRow": batch_get_row,
    "GetRange": get_range,
    "ComputeSplitPointsBySize": compute_split_points,
}
