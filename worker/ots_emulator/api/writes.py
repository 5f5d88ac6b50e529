"""Row writes: put, update, delete, batch (docs/data-plane.md 2.3, 2.5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from ots_emulator.api.call import Call
from ots_emulator.api.capacity import consumed, data_bytes, write_units
from ots_emulator.api.row_write import RowWrite, execute, find_key, read_write
from ots_emulator.refusal import Refusal, request_invalid
from ots_emulator.tables.table import Table
from ots_emulator.tables.transactions import Scope, out_of_scope
from ots_emulator.wire import bytes_field
from ots_tunnel.errors import CodecError
from ots_tunnel.model import Action, CellOp
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.http.rpc import check_text

BATCH_ROWS: Final = 200
BATCH_BYTES: Final = 4_194_304


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
    write = read_write(action, row, request)
    if write.wire_bytes > BATCH_BYTES:
        _check_size(f"{action.name.capitalize()}Row", data_bytes(write.span))
    table = call.row_table(request.table_name)
    find_key(write, table.name, table, call.now_us)
    content = execute(call, call.instance.transactions.scope(table, request.transaction_id, call.now), write)
    units = write_units(write.span, write.wire_bytes)
    # The three responses share their fields.
    return pb.PutRowResponse(consumed=consumed(_reads(request.condition), units), row=content).SerializeToString()


def batch_write_row(call: Call, request: pb.BatchWriteRowRequest) -> bytes:
    """Execute rows one after the other; what can be judged without the tables refuses the whole request."""
    tables = [(tables.table_name, tables.rows) for tables in request.tables]
    _check_batch(tables)
    _check_texts(request)
    batches = [
        (name, call.instance.tables.get(name), [read_write(Action(row.type), row.row_change, row) for row in rows])
        for name, rows in tables
    ]
    writes = [write for _, _, rows in batches for write in rows]
    if sum(write.wire_bytes for write in writes) > BATCH_BYTES:
        _check_size("BatchWriteRow", sum(data_bytes(write.span) for write in writes))
    for name, table, rows in batches:
        for write in rows:
            find_key(write, name, table, call.now_us)
        _check_repeated(rows, allowed=not call.settings.refuse_repeated_rows)
    if request.is_atomic:
        return _atomic(call, batches, request.transaction_id)
    transactions = call.instance.transactions
    # All of them before the first row is executed: an unknown transaction refuses the request.
    scopes = [
        None if table is None else transactions.scope(table, request.transaction_id, call.now)
        for _, table, _ in batches
    ]
    if call.row_refusal is not None:
        writes[0].refusal = call.row_refusal
    return b"".join(
        _answer(name, (_outcome(call, scope, write) for write in rows))
        for (name, _, rows), scope in zip(batches, scopes, strict=True)
    )


def _answer(name: str, outcomes: Iterable[bytes]) -> bytes:
    return bytes_field(1, bytes_field(1, name.encode()) + b"".join(outcomes))


def _atomic(call: Call, batches: Sequence[tuple[str, Table | None, list[RowWrite]]], transaction_id: str) -> bytes:
    """Execute all rows or none: they are tried on a copy of their partition key's rows first."""
    writes = [write for _, _, rows in batches for write in rows]
    name, table, _ = batches[0]
    refusal = call.row_refusal or next((write.refusal for write in writes if write.refusal is not None), None)
    if refusal is None and len(batches) > 1:
        refusal = Refusal("OTSDataOutOfRange", f"Data out of scope of atomic. Atomic table:{name}.")
    elif refusal is None:
        partition_key = writes[0].key[0]
        other = next((write.key[0] for write in writes if write.key[0] != partition_key), None)
        refusal = None if other is None else out_of_scope("atomic", partition_key, other)
    outcomes: list[bytes] = []
    if table is not None and refusal is None:
        scope = call.instance.transactions.scope(table, transaction_id, call.now)
        try:
            call.check_ready(table)
            trial = scope.trial(writes[0].key[0])
            contents = [execute(call, trial, write) for write in writes]
        except Refusal as found:
            refusal = found
        else:
            scope.take(trial, call.now_us)
            outcomes = [_success(write, content) for write, content in zip(writes, contents, strict=True)]
    if refusal is not None:
        return b"".join(_answer(name, (_failure(write, refusal) for write in rows)) for name, _, rows in batches)
    return _answer(name, outcomes)


def _check_texts(request: pb.BatchWriteRowRequest) -> None:
    """Refuse text that is not UTF-8; only where there is some besides the tables' names."""
    try:
        if not isinstance(request.transaction_id, str):
            raise CodecError("transaction_id is not UTF-8")
        for table in request.tables:
            for row in table.rows:
                if row.HasField("return_content"):
                    check_text(row.return_content)
    except CodecError as error:
        raise request_invalid("Parse PBMessage from RawString failed.") from error


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


def _check_repeated(rows: Sequence[RowWrite], *, allowed: bool) -> None:
    """Refuse what rows on one key must not carry; they are executed in request order (docs/data-plane.md 2.5)."""
    keys = [write.span.key for write in rows]
    if len(set(keys)) == len(keys):
        return
    if not allowed:
        raise request_invalid("Repeated rows are not allowed in BatchModify.")
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


def _outcome(call: Call, scope: Scope | None, write: RowWrite) -> bytes:
    """Execute one row of a batch and return its field of the response."""
    try:
        if write.refusal is not None or scope is None:
            assert write.refusal is not None, "a row without table has been refused when its key was looked for"
            raise write.refusal
        call.check_ready(scope.table)
        content = execute(call, scope, write)
    except Refusal as refusal:
        return _failure(write, refusal)
    return _success(write, content)


def _failure(write: RowWrite, refusal: Refusal) -> bytes:
    error = pb.Error(code=refusal.code, message=refusal.message)
    cost = consumed(_reads(write.request.condition), write_units(write.span, write.wire_bytes))
    return bytes_field(2, pb.RowInBatchWriteRowResponse(is_ok=False, error=error, consumed=cost).SerializeToString())


def _success(write: RowWrite, content: bytes | None) -> bytes:
    reads, units = _reads(write.request.condition), write_units(write.span, write.wire_bytes)
    if content is None:
        return _plain_outcome(reads, units)
    done = pb.RowInBatchWriteRowResponse(is_ok=True, consumed=consumed(reads, units), row=content)
    return bytes_field(2, done.SerializeToString())


@lru_cache(maxsize=64)
def _plain_outcome(reads: int, units: int) -> bytes:
    row = pb.RowInBatchWriteRowResponse(is_ok=True, consumed=consumed(reads, units))
    return bytes_field(2, row.SerializeToString())


def _reads(condition: pb.Condition) -> int:
    return 0 if condition.row_existence == pb.IGNORE and not condition.column_condition else 1


HANDLERS: Final[Mapping[str, Callable[[Call, Any], bytes]]] = {
    "PutRow": put_row,
    "UpdateRow": update_row,
    "DeleteRow": delete_row,
    "BatchWriteRow": batch_write_row,
}
