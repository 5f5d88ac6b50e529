"""Row writes: put, update, delete, batch (tablestore-api 2.3, 2.5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from ots_emulator.call import Call
from ots_emulator.cells import HEADER, cells_of, key_image, scan_image
from ots_emulator.columns import Projection, key_values, passes, read_filter
from ots_emulator.keys import Key
from ots_emulator.refusal import Refusal, RequestRefusal, parameter_invalid, request_invalid, table_missing
from ots_emulator.rowcheck import check_row_key, data_bytes, read_change, write_units
from ots_emulator.store import Table
from ots_emulator.wire import bytes_field
from ots_tunnel.model import Action, CellOp
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.spans import RowSpan

BATCH_ROWS: Final = 200
BATCH_BYTES: Final = 4_194_304


@dataclass(slots=True)
class _Write:
    """One row of a write; `refusal` is why it will not be executed, known before it is its turn."""

    action: Action
    span: RowSpan
    row: bytes
    request: pb.RowInBatchWriteRowRequest | pb.PutRowRequest | pb.UpdateRowRequest | pb.DeleteRowRequest
    key: Key = ()
    refusal: Refusal | None = None

    @property
    def wire_bytes(self) -> int:
        """An upper bound of the row's size."""
        return len(self.row)


def put_row(call: Call, request: pb.PutRowRequest) -> bytes:
    """Replace a row."""
    return _single(call, request, Action.PUT, request.row)


def update_row(call: Call, request: pb.UpdateRowRequest) -> bytes:
    """Change single columns of a row."""
    return _single(call, request, Action.UPDATE, request.row_change)


def delete_row(call: Call, request: pb.DeleteRowRequest) -> bytes:
    """Remove a row."""
    return _single(call, request, Action.DELETE, request.primary_key)


def _single(
    call: Call, request: pb.PutRowRequest | pb.UpdateRowRequest | pb.DeleteRowRequest, action: Action, row: bytes
) -> bytes:
    _refuse_transaction(request.transaction_id)
    write = _read(action, row, request)
    if write.wire_bytes > BATCH_BYTES:
        _check_size(f"{action.name.capitalize()}Row", data_bytes(write.span))
    table = call.instance.table(request.table_name)
    _find_key(write, table)
    content = _execute(call, table, write)
    units = write_units(write.span, write.wire_bytes)
    # The three responses share their fields.
    return pb.PutRowResponse(consumed=_consumed(_reads(request.condition), units), row=content).SerializeToString()


def batch_write_row(call: Call, request: pb.BatchWriteRowRequest) -> bytes:
    """Execute rows one after the other; what can be judged without the tables refuses the whole request."""
    _refuse_transaction(request.transaction_id)
    if request.is_atomic:
        raise request_invalid("is_atomic of BatchWriteRow is not supported yet.")
    tables = [(tables.table_name, tables.rows) for tables in request.tables]
    _check_batch(tables)
    batches = [
        (name, call.instance.tables.get(name), [_read(Action(row.type), row.row_change, row) for row in rows])
        for name, rows in tables
    ]
    writes = [write for _, _, rows in batches for write in rows]
    if sum(write.wire_bytes for write in writes) > BATCH_BYTES:
        _check_size("BatchWriteRow", sum(data_bytes(write.span) for write in writes))
    for _, table, rows in batches:
        for write in rows:
            _find_key(write, table)
        _check_repeated(rows)
    return b"".join(
        bytes_field(1, bytes_field(1, name.encode()) + b"".join(_outcome(call, table, write) for write in rows))
        for name, table, rows in batches
    )


def _check_batch(tables: Sequence[tuple[str, Sequence[pb.RowInBatchWriteRowRequest]]]) -> None:
    if not tables:
        raise request_invalid("No row is specified in BatchWriteRow.")
    if sum(len(rows) for _, rows in tables) > BATCH_ROWS:
        raise request_invalid(f"Rows count exceeds the upper limit: {BATCH_ROWS}.")
    seen: set[str] = set()
    for name, rows in tables:
        if not isinstance(name, str):
            raise request_invalid(f"Invalid table name: '{name!r}'.")
        if name in seen:
            raise request_invalid(f"Duplicated table name: {name}.")
        if not rows:
            raise request_invalid(f"No operation is specified for table: '{name}'.")
        seen.add(name)


def _check_size(operation: str, size: int) -> None:
    if size > BATCH_BYTES:
        raise request_invalid(
            f"The total data size of {operation} request exceeds the limit, limit size: {BATCH_BYTES}, "
            f"data size: {size}."
        )


def _check_repeated(rows: Sequence[_Write]) -> None:
    """Refuse what rows on one key must not carry; they are executed in request order (tablestore-api 2.5)."""
    keys = [write.span.key for write in rows]
    if len(set(keys)) == len(keys):
        return
    counts = Counter(keys)
    increments: Counter[bytes] = Counter()
    for write in rows:
        if counts[write.span.key] == 1:
            continue
        if write.request.condition.row_existence != pb.IGNORE:
            raise request_invalid("Repeated rows do not support row exist expectation check in BatchModify.")
        if write.request.condition.column_condition:
            raise request_invalid("Repeated rows do not support row condition check in BatchModify.")
        increments[write.span.key] += any(cell.op == CellOp.INCREMENT for cell in write.span.cells)
        if increments[write.span.key] > 1:
            raise request_invalid("Repeated rows do not support increments more than once in BatchModify.")


def _read(action: Action, row: bytes, request: Any) -> _Write:
    return _Write(action, read_change(row, action), row, request)


def _find_key(write: _Write, table: Table | None) -> None:
    """Note the row's key, or why it has none; raise what concerns the whole request."""
    if table is None:
        check_row_key(write.span)
        write.refusal = table_missing()
        return
    try:
        write.key = table.schema.parse(write.span.key)
    except RequestRefusal:
        raise
    except Refusal as refusal:
        write.refusal = refusal


def _outcome(call: Call, table: Table | None, write: _Write) -> bytes:
    """Execute one row of a batch and return its field of the response."""
    units = write_units(write.span, write.wire_bytes)
    reads = _reads(write.request.condition)
    try:
        if table is None:
            raise write.refusal or table_missing()
        content = _execute(call, table, write)
    except Refusal as refusal:
        error = pb.Error(code=refusal.code, message=refusal.message)
        failed = pb.RowInBatchWriteRowResponse(is_ok=False, error=error, consumed=_consumed(reads, units))
        return bytes_field(2, failed.SerializeToString())
    if content is None:
        return _plain_outcome(reads, units)
    done = pb.RowInBatchWriteRowResponse(is_ok=True, consumed=_consumed(reads, units), row=content)
    return bytes_field(2, done.SerializeToString())


@lru_cache(maxsize=64)
def _plain_outcome(reads: int, units: int) -> bytes:
    row = pb.RowInBatchWriteRowResponse(is_ok=True, consumed=_consumed(reads, units))
    return bytes_field(2, row.SerializeToString())


def _execute(call: Call, table: Table, write: _Write) -> bytes | None:
    """Execute one row; return what the client wants back of it."""
    if write.refusal is not None:
        raise write.refusal
    span, key, action = write.span, write.key, write.action
    if not table.schema.names.isdisjoint([cell.name for cell in span.cells]):
        name = next(cell.name for cell in span.cells if cell.name in table.schema.names)
        raise parameter_invalid(f"Duplicated attribute column name with primary key column: {name.decode()}.")
    now_us = call.now_us
    if action is not Action.DELETE:
        table.check_versions(span, now_us)
    if action is Action.UPDATE and not table.options.allow_update:
        raise parameter_invalid("UpdateRow is not allowed: allow_update of the table is false.")
    _check_condition(table, write, now_us // 1000)
    if action is Action.PUT:
        table.put(key, write.row, span, now_us)
    elif action is Action.UPDATE:
        table.update(key, span, now_us)
    else:
        table.delete(key, span, now_us)
    return _content(table, write, now_us // 1000) if write.request.HasField("return_content") else None


def _check_condition(table: Table, write: _Write, now_ms: int) -> None:
    condition = write.request.condition
    existence = condition.row_existence
    if existence == pb.IGNORE and not condition.column_condition:
        return
    image = table.get(write.key, now_ms)
    met = existence == pb.IGNORE or (image is not None) == (existence == pb.EXPECT_EXIST)
    if met and condition.column_condition:
        cells = [] if image is None else cells_of(scan_image(image))
        key = {} if image is None else key_values(write.span.key)
        met = passes(read_filter(condition.column_condition), cells, key)
    if not met:
        raise Refusal("OTSConditionCheckFail", "Condition check failed.")


def _content(table: Table, write: _Write, now_ms: int) -> bytes | None:
    wanted = write.request.return_content
    if wanted.return_type == pb.RT_PK:
        if wanted.return_column_names:
            raise parameter_invalid("Return column names cannot be given when return type is RT_PK.")
        return HEADER + key_image(write.span)
    image = table.get(write.key, now_ms) if wanted.return_type == pb.RT_AFTER_MODIFY else None
    if image is None or not wanted.return_column_names:
        return None
    names = frozenset(name.encode() for name in wanted.return_column_names)
    row = Projection(names=names, max_versions=1).apply(image, frozenset())
    return None if row is None else HEADER + row


def _reads(condition: pb.Condition) -> int:
    return 0 if condition.row_existence == pb.IGNORE and not condition.column_condition else 1


def _consumed(read: int, write: int) -> pb.ConsumedCapacity:
    return pb.ConsumedCapacity(capacity_unit=pb.CapacityUnit(read=read, write=write))


def _refuse_transaction(transaction_id: str) -> None:
    if transaction_id:
        raise request_invalid("transaction_id is not supported yet.")


HANDLERS: Final[Mapping[str, Callable[[Call, Any], bytes]]] = {
    "PutRow": put_row,
    "UpdateRow": update_row,
    "DeleteRow": delete_row,
    "BatchWriteRow": batch_write_row,
}
