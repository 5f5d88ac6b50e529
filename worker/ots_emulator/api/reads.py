"""Row reads: get, batch get, range, split points (docs/data-plane.md 2.6, 2.7)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ots_emulator.api.call import Call
from ots_emulator.api.rows.capacity import capacity_units, consumed, read_bytes, version_bytes
from ots_emulator.api.rows.matrix import matrix_of
from ots_emulator.api.rows.projection import Projection, projection_of
from ots_emulator.api.rows.range_page import Span, read_page
from ots_emulator.api.rows.wide_rows import Cut, cut_row
from ots_emulator.api.table_messages import key_schema_message
from ots_emulator.ledger import DOTNET, ERRORS, GO, JAVA, PYTHON, documented, guessed, tested
from ots_emulator.refusal import Refusal, RequestRefusal, check_table_name, parameter_invalid, request_invalid
from ots_emulator.tables.keys import TYPE_NAME, Key, type_of
from ots_emulator.tables.sent_keys import read_primary_key
from ots_emulator.tables.table import Table
from ots_emulator.tables.transactions import Scope
from ots_tunnel.model import Marker, PrimaryKey
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.plainbuffer.codec import encode_primary_key
from ots_tunnel.protocol.plainbuffer.tags import HEADER

#: Rows in one BatchGetRow (docs/data-plane.md 2.2).
GET_ROWS: Final = 100
#: Default and least unit of split sizes, in bytes (docs/data-plane.md 2.7).
_SPLIT_UNIT: Final = 100 << 20
_SPLIT_UNIT_MIN: Final = 1 << 20
#: Location of every split; the service's have the same length.
_LOCATION: Final = "0" * 32


def get_row(call: Call, request: pb.GetRowRequest) -> bytes:
    """Read one row; the answer for a missing row is empty."""
    projection = projection_of(request, call.work)
    key = read_primary_key(request.primary_key)
    table = call.row_table(request.table_name)
    scope = call.instance.transactions.scope(table, request.transaction_id, call.now)
    cut = _read(call, scope, key, projection, request.token)
    answer = pb.GetRowResponse(consumed=_row_consumed(cut, table), row=cut.image, next_token=cut.token)
    return answer.SerializeToString()


def batch_get_row(call: Call, request: pb.BatchGetRowRequest) -> bytes:
    """Read rows by key; a mistake that needs the table refuses its row, any other refuses the request.

    A key may be asked for twice, and a table without any key: a test of the vendor's expects both, although its table
    of errors lists a refusal of the first.
    """
    if sum(len(table.primary_key) for table in request.tables) > GET_ROWS:
        raise request_invalid(f"Rows count exceeds the upper limit: {GET_ROWS}.")
    if not request.tables:
        raise request_invalid("No row specified in the request of BatchGetRow.")
    counts = Counter(asked.table_name for asked in request.tables)
    response = pb.BatchGetRowResponse()
    room = _Room(call.settings.batch_get_bytes)
    for asked in request.tables:
        if counts[asked.table_name] > 1:
            raise request_invalid(f"Duplicated table name: {asked.table_name}.")
        if not asked.primary_key:
            # Nothing is read, so neither versions nor columns are asked for.
            check_table_name(asked.table_name)
            response.tables.add(table_name=asked.table_name)
            continue
        projection = projection_of(asked, call.work, missing="No version condition is specified while querying row.")
        keys = [read_primary_key(key) for key in asked.primary_key]
        if len({len(key) for key in keys}) > 1:
            raise request_invalid(f"PK column size not the same for all rows in table: {asked.table_name}.")
        answer = response.tables.add(table_name=asked.table_name)
        tokens = list(asked.token) or [b""] * len(keys)
        if len(tokens) != len(keys):
            raise request_invalid(f"The number of tokens must be that of the rows: {len(keys)}, found: {len(tokens)}.")
        for key, token in zip(keys, tokens, strict=True):
            answer.rows.append(_batch_row(call, asked.table_name, key, projection, token, room))
    return response.SerializeToString()


@dataclass(slots=True)
class _Room:
    """Bytes that the rows of an answer may still take; the row that uses them up is the last one."""

    left: int

    def take(self, size: int) -> None:
        self.left -= size

    def check(self) -> None:
        # The clients of the vendor ask again for the rows that are refused so, and for no other.
        if self.left <= 0:
            raise Refusal("OTSServerBusy", "Server is busy.")


def _batch_row(
    call: Call, name: str, key: PrimaryKey, projection: Projection, token: bytes, room: _Room
) -> pb.RowInBatchGetRowResponse:
    try:
        table = call.row_table(name)
        room.check()
        cut = _read(call, Scope(table), key, projection, token)
        room.take(len(cut.image))
    except RequestRefusal:
        raise
    except Refusal as refusal:
        error = pb.Error(code=refusal.code, message=refusal.message)
        return pb.RowInBatchGetRowResponse(is_ok=False, error=error, consumed=consumed(1, 0))
    cost = _row_consumed(cut, table)
    return pb.RowInBatchGetRowResponse(is_ok=True, consumed=cost, row=cut.image, next_token=cut.token)


def _read(call: Call, scope: Scope, primary_key: PrimaryKey, projection: Projection, token: bytes) -> Cut:
    table = scope.table
    table.schema.check(primary_key)
    key = table.schema.bound(primary_key)
    scope.check_range(key, key)
    image = table.get(key, call.now_ms)
    if image is not None and not projection.is_whole(table.options.max_versions, table.single_versions(key)):
        image = projection.apply(image, table.schema.names)
    if image is None:
        return Cut(b"", None)
    cut = cut_row(image, call.settings.range_bytes, token)
    return Cut(HEADER + cut.image, cut.token)


def get_range(call: Call, request: pb.GetRangeRequest) -> bytes:
    """Read one page of the rows between two keys, in either direction; the rows are a PlainBuffer or a row matrix."""
    projection = projection_of(request, call.work)
    if request.HasField("limit") and request.limit <= 0:
        raise request_invalid("The limit must be greater than 0.")
    as_matrix = request.data_block_type_hint == pb.DBT_SIMPLE_ROW_MATRIX
    if as_matrix and not request.columns_to_get:
        raise request_invalid("DBT_SIMPLE_ROW_MATRIX need at least one column to get.")
    begin = read_primary_key(request.inclusive_start_primary_key)
    behind = read_primary_key(request.exclusive_end_primary_key)
    scope = call.instance.transactions.scope(call.row_table(request.table_name), request.transaction_id, call.now)
    table = scope.table
    start, end = _bounds(table, begin, behind)
    backward = request.direction == pb.BACKWARD
    if backward and not start > end:
        raise parameter_invalid("Begin key must more than end key in BACKWARD")
    if not backward and not start < end:
        raise parameter_invalid("Begin key must less than end key in FORWARD")
    scope.check_range(start, end)
    limit = request.limit if request.HasField("limit") else None
    span = Span(start, end, backward)
    page = read_page(table, span, projection, limit, request.token, call.settings, call.now_ms)
    whole_key = request.return_entire_primary_keys or not request.HasField("return_entire_primary_keys")
    if not page.rows:
        body = b""
    elif as_matrix:
        body = matrix_of(page.rows, table.schema, request.columns_to_get, whole_key=whole_key)
    else:
        body = HEADER + b"".join(page.rows)
    return pb.GetRangeResponse(
        consumed=consumed(capacity_units(page.size_bytes), 0),
        data_block_type=request.data_block_type_hint if request.HasField("data_block_type_hint") else None,
        rows=body,
        next_start_primary_key=None if page.following is None else table.schema.encode(page.following),
        next_token=page.token,
    ).SerializeToString()


def _bounds(table: Table, begin: PrimaryKey, end: PrimaryKey) -> tuple[Key, Key]:
    """Return both ends of a range; checked are the first, the names of the second, then the types of the second."""
    table.schema.check(begin, bounds=True)
    table.schema.check_names(end)
    for (_, low), (_, high) in zip(begin, end, strict=False):
        if type(low) is not type(high) and not isinstance(low, Marker) and not isinstance(high, Marker):
            names = f"{TYPE_NAME[type_of(low)]}:{TYPE_NAME[type_of(high)]}"
            raise request_invalid(f"invalid range, the begin's type is different from the end's,{names}")
    return table.schema.bound(begin), table.schema.bound(end)


def compute_split_points(call: Call, request: pb.ComputeSplitPointsBySizeRequest) -> bytes:
    """Return points that cut the table into splits of about the given size; N points make N + 1 splits."""
    unit = request.split_size_unit_in_byte if request.HasField("split_size_unit_in_byte") else _SPLIT_UNIT
    if unit < _SPLIT_UNIT_MIN:
        raise parameter_invalid(f"The split_size_unit_in_byte should be greater equal than: {_SPLIT_UNIT_MIN}")
    if request.split_size <= 0:
        raise parameter_invalid("The split_size should be greater than 0.")
    table = call.row_table(request.table_name)
    table.expire(call.now_ms)
    points = table.quantiles(-(-table.size_bytes // (request.split_size * unit)))
    if request.HasField("split_point_limit") and request.split_point_limit > 0:
        points = points[: request.split_point_limit]
    return pb.ComputeSplitPointsBySizeResponse(
        consumed=consumed(1, 0),
        schema=key_schema_message(table),
        split_points=[encode_primary_key(table.schema.primary_key(point)[:1]) for point in points],
        # The vendor's Java client expects one location per split.
        locations=[pb.ComputeSplitPointsBySizeResponse.SplitLocation(location=_LOCATION, repeat=len(points) + 1)],
    ).SerializeToString()


def _row_consumed(cut: Cut, table: Table) -> pb.ConsumedCapacity:
    return consumed(capacity_units(read_bytes([cut.image[len(HEADER) :]], version_bytes(table.options))), 0)


HANDLERS: Final[Mapping[str, Callable[[Call, Any], bytes]]] = {
    "GetRow": get_row,
    "BatchGetRow": batch_get_row,
    "GetRange": get_range,
    "ComputeSplitPointsBySize": compute_split_points,
}

LEDGER: Final = (
    tested(
        "GetRow, BatchGetRow, GetRange",
        "filters: at most 32 parts, names and values of columns, numbers of parts",
        JAVA(
            "UnifiedFilterRestrictionAndParamCheckingTest.testCompositeColumnValueFilter_ExceedMaxDepth_GetRow",
            "UnifiedFilterRestrictionAndParamCheckingTest.testLogicOperatorRestriction",
            "UnifiedFilterRestrictionAndParamCheckingTest.testValueExceedMaxLength",
            "UnifiedFilterRestrictionAndParamCheckingTest.testColumnNameMaxLength",
        ),
    ),
    tested(
        "GetRow, BatchGetRow, GetRange",
        "the table's name and the filter are checked before the versions",
        JAVA(
            "ParameterLegalityTest.testInvalidTableName",
            "UnifiedFilterRestrictionAndParamCheckingTest.testCompositeColumnValueFilter_ExceedMaxDepth_GetRange",
            "UnifiedFilterRestrictionAndParamCheckingTest.testCompositeColumnValueFilter_ExceedMaxDepth_BatchGetRow",
        ),
    ),
    guessed(
        "GetRow, BatchGetRow, GetRange",
        "the table's name is checked before the filter",
        "no test makes both mistakes",
    ),
    guessed(
        "GetRow, BatchGetRow, GetRange", "the names of columns are checked before the filter", "the order was not seen"
    ),
    guessed(
        "GetRow, BatchGetRow, GetRange",
        "a filter's part that cannot be converted counts as missing",
        "no source says so",
    ),
    guessed(
        "GetRow, BatchGetRow, GetRange, PutRow, UpdateRow, DeleteRow, BatchWriteRow",
        "the regular expressions of a request have a bound of work, beyond which rows are OTSParameterInvalid; a range "
        "has shorter pages",
        "the service's limits are not known",
    ),
    documented(
        "GetRow, BatchGetRow, GetRange",
        "the words for filters that cannot be parsed, and for pages of columns that are out of range",
        ERRORS,
    ),
    documented(
        "GetRow, BatchGetRow, GetRange",
        "which of versions, a time and a range of times go together; -1 versions are all of them",
        ERRORS,
    ),
    documented(
        "GetRow, BatchGetRow, GetRange", "a key with columns, a delete marker or a placeholder is refused", ERRORS
    ),
    tested("GetRow", "a missing row is empty", PYTHON("row_op_test.test_get_row_miss")),
    documented("GetRow", "a missing row costs one unit"),
    tested(
        "BatchGetRow",
        "100 rows; a table without keys",
        JAVA("RestrictedItemTest.testCase29"),
        PYTHON("row_op_test.test_no_item_in_batch_ops"),
    ),
    guessed(
        "BatchGetRow",
        "rows behind the one that reaches 32 MiB (`batch_get_bytes`) are refused with OTSServerBusy, each by itself",
        "no source has a limit; without one a small request would have an answer of 400 MB",
    ),
    guessed(
        "BatchGetRow",
        "a table without keys needs no versions either",
        "a test of the PHP SDK says so in a remark, but takes a refusal as well",
    ),
    tested(
        "BatchGetRow",
        "a missing table is an error of its rows; contested: a test of the Elixir client expects the call to fail",
        DOTNET("MultiRowOperationTest.TestEmptyTableInBatchGetRow"),
    ),
    tested(
        "BatchGetRow",
        "a key may come twice; contested: the table of errors has a refusal of it",
        PYTHON("row_op_test.test_batch_get_on_the_same_row"),
    ),
    tested(
        "GetRange",
        "keys: name, then type, before the order of the ends",
        JAVA("ParameterLegalityTest.testInvalidPkOrder"),
    ),
    guessed(
        "GetRange", "types of both ends are compared when only the second is wrong", "the text is known, not its place"
    ),
    tested(
        "GetRange",
        "direction and limit, 5,000 rows or 4 MiB",
        PYTHON(
            "row_op_test.test_get_range_when_direction_is_wrong_for_1_PK", "row_op_test.test_get_range_limit_invalid"
        ),
        JAVA("RestrictedItemTest.testCase33", "RestrictedItemTest.testCase34", "RestrictedItemTest.testCase35"),
    ),
    guessed(
        "GetRow, BatchGetRow, GetRange",
        "a cell beyond its time to live is gone on time; versions beyond the maximum are gone at once, and stay so",
        "documented is that both are removed, not when",
    ),
    guessed(
        "GetRow, BatchGetRow, GetRange",
        "a row of more than 4 MiB comes in parts, with a token of the emulator's own",
        "the fields for it are in the vendor's messages; no test of theirs has such a row",
    ),
    documented("BatchGetRow", "a table may be named once", ERRORS),
    guessed("GetRange", "a limit counts the rows that are returned", "no source says whether it counts others"),
    guessed(
        "GetRange",
        "a range that selects nothing of many rows costs one unit",
        "tests that select nothing have a few rows only",
    ),
    guessed(
        "GetRow, BatchGetRow, GetRange",
        "versions count 8 bytes each, as in writes; contradicted by a test of the .NET SDK: there they count nothing",
        "`MultiRowOperationTest.TestGetRangeIteratorWith5000Rows` reads 5,000 rows of a table of ten versions for 107 "
        "units, which is what names and values need; with versions they cost 156 here",
    ),
    guessed(
        "GetRange",
        "the cost of many rows of different columns is estimated from sixteen of them",
        "counting every row would cost more time",
    ),
    tested(
        "GetRow, BatchGetRow, GetRange",
        "a unit for every 4 KiB of the columns that are selected",
        JAVA(
            "CapacityUnitTest.testGetRowSelectPartialExistent",
            "CapacityUnitTest.testBatchGetRow",
            "CapacityUnitTest.testGetRangeSelectPartialExistent",
        ),
    ),
    tested("GetRange", "rows as a matrix, each with its newest values", GO("TableStoreSuite.TestFuzzyGetRangeMatrix")),
    guessed("GetRange", "a matrix without named columns is refused as by BulkExport", "its test knows BulkExport only"),
    tested(
        "ComputeSplitPointsBySize",
        "units, their limits and texts; a small table has no point and costs one unit",
        JAVA("TestComputeSplitPointsBySize.testInvalidParam", "TestComputeSplitPointsBySize.testEmptyTable"),
    ),
    guessed("ComputeSplitPointsBySize", "points are existing partition keys", "the service's point just behind one"),
)
