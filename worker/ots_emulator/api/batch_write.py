"""BatchWriteRow: rows are executed one after the other, or all or none (docs/data-plane.md 2.3, 2.5).

What can be checked without the tables refuses the whole request. Everything else refuses its row only, so a refusal is
kept in place of the row's key until it is the row's turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from ots_emulator.api.call import Call
from ots_emulator.api.rows.capacity import consumed, version_bytes, write_units
from ots_emulator.api.rows.change_check import check_row_key
from ots_emulator.api.rows.row_write import KeyedWrite, RowWrite, execute, read_write, with_key
from ots_emulator.api.rows.write_cost import check_size, write_cost
from ots_emulator.refusal import (
    Refusal,
    RequestRefusal,
    check_table_name,
    parameter_invalid,
    request_invalid,
    table_missing,
)
from ots_emulator.tables.row_size import VERSION_BYTES
from ots_emulator.tables.table import Table
from ots_emulator.tables.transactions import Scope, out_of_scope
from ots_emulator.wire import bytes_field
from ots_tunnel.errors import CodecError
from ots_tunnel.model import Action
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.http.rpc import check_text

#: Rows in one request (docs/data-plane.md 2.2).
BATCH_ROWS: Final = 200


class RefusedWrite(NamedTuple):
    """A row of a batch that is not executed."""

    write: RowWrite
    refusal: Refusal


BatchRow = KeyedWrite | RefusedWrite


class TableBatch(NamedTuple):
    """The rows of one table in a batch; `table` is None when there is none of that name."""

    name: str
    table: Table | None
    rows: Sequence[BatchRow]

    version: int
    """Bytes of a cell's version in the cost of a row."""


def batch_write_row(call: Call, request: pb.BatchWriteRowRequest) -> bytes:
    """Execute a batch."""
    sent = [(tables.table_name, tables.rows) for tables in request.tables]
    _check_batch(sent)
    _check_texts(request)
    read = [
        (name, [read_write(Action(row.type), row.row_change, row, call.work) for row in rows]) for name, rows in sent
    ]
    check_size("BatchWriteRow", [write for _, writes in read for write in writes])
    batches = [_with_keys(call, name, writes) for name, writes in read]
    run = _all_or_none if request.is_atomic else _one_by_one
    return run(call, batches, request.transaction_id)


def _with_keys(call: Call, name: str, writes: Sequence[RowWrite]) -> TableBatch:
    table = call.instance.tables.get(name)
    if table is None:
        rows: list[BatchRow] = [_without_table(write, name) for write in writes]
    else:
        rows = _keyed_or_refused(writes, table, call.now_us)
    version = VERSION_BYTES if table is None else version_bytes(table.options)
    keys = [row.write.span.key for row in rows]
    if len(set(keys)) == len(keys):
        return TableBatch(name, table, rows, version)
    if call.settings.refuse_repeated_rows:
        raise request_invalid("Repeated rows are not allowed in BatchModify.")
    return TableBatch(name, table, _without_repeated_increments(_without_conditions(rows)), version)


def _without_table(write: RowWrite, name: str) -> RefusedWrite:
    check_row_key(write.span)
    return RefusedWrite(write, table_missing(name))


def _keyed_or_refused(writes: Sequence[RowWrite], table: Table, now_us: int) -> list[BatchRow]:
    rows: list[BatchRow] = []
    for write in writes:
        try:
            rows.append(with_key(write, table, now_us))
        except RequestRefusal:
            raise
        except Refusal as refusal:
            rows.append(RefusedWrite(write, refusal))
    return rows


def _one_by_one(call: Call, batches: Sequence[TableBatch], transaction_id: str) -> bytes:
    """Execute rows one after the other, in request order."""
    transactions = call.instance.transactions
    # All of them before the first row is executed: an unknown transaction refuses the request.
    scopes = [
        None if batch.table is None else transactions.scope(batch.table, transaction_id, call.now) for batch in batches
    ]
    if call.row_refusal is not None:
        batches = [_with_first_refused(batches[0], call.row_refusal), *batches[1:]]
    return b"".join(
        _answer(batch.name, [_outcome(call, scope, row, batch.version) for row in batch.rows])
        for batch, scope in zip(batches, scopes, strict=True)
    )


def _with_first_refused(batch: TableBatch, refusal: Refusal) -> TableBatch:
    first, *others = batch.rows
    return batch._replace(rows=[RefusedWrite(first.write, refusal), *others])


def _outcome(call: Call, scope: Scope | None, row: BatchRow, version: int) -> bytes:
    """Execute one row of a batch and return its field of the response."""
    if isinstance(row, RefusedWrite):
        return _failure(row.write, row.refusal)
    assert scope is not None, "rows without a table have been refused"
    try:
        call.check_ready(scope.table)
        content = execute(call, scope, row)
    except Refusal as refusal:
        return _failure(row.write, refusal)
    return _success(row.write, content, version)


def _all_or_none(call: Call, batches: Sequence[TableBatch], transaction_id: str) -> bytes:
    """Execute all rows or none: they are tried on a copy of their partition key's rows first."""
    try:
        rows = _atomic_rows(call, batches)
    except Refusal as refusal:
        return _all_refused(batches, refusal)
    batch = batches[0]
    name, table = batch.name, batch.table
    assert table is not None, "rows without a table have been refused"
    scope = call.instance.transactions.scope(table, transaction_id, call.now)
    try:
        call.check_ready(table)
        trial = scope.trial(rows[0].key[0])
        contents = [execute(call, trial, row) for row in rows]
        with table.as_one_commit(wanted=call.settings.one_time_per_commit):
            scope.take(trial, call.now_us)
    except Refusal as refusal:
        return _all_refused(batches, refusal)
    answers = [_success(row.write, content, batch.version) for row, content in zip(rows, contents, strict=True)]
    return _answer(name, answers)


def _atomic_rows(call: Call, batches: Sequence[TableBatch]) -> list[KeyedWrite]:
    """Return the rows of an atomic batch, which are of one table and one partition key.

    Raises:
        Refusal: of the first row that has one, or the rows belong to several partition keys.
    """
    if call.row_refusal is not None:
        raise call.row_refusal
    keyed: list[KeyedWrite] = []
    for batch in batches:
        for row in batch.rows:
            if isinstance(row, RefusedWrite):
                raise row.refusal
            keyed.append(row)
    if len(batches) > 1:
        raise Refusal("OTSDataOutOfRange", f"Data out of scope of atomic. Atomic table:{batches[0].name}.")
    partition_key = keyed[0].key[0]
    for row in keyed:
        if row.key[0] != partition_key:
            raise out_of_scope("atomic", partition_key, row.key[0])
    return keyed


def _all_refused(batches: Sequence[TableBatch], refusal: Refusal) -> bytes:
    return b"".join(_answer(batch.name, [_failure(row.write, refusal) for row in batch.rows]) for batch in batches)


def _check_batch(tables: Sequence[tuple[str, Sequence[pb.RowInBatchWriteRowRequest]]]) -> None:
    if not tables:
        raise request_invalid("No row is specified in BatchWriteRow.")
    if sum(len(rows) for _, rows in tables) > BATCH_ROWS:
        raise request_invalid(f"Rows count exceeds the upper limit: {BATCH_ROWS}.")
    seen: set[str] = set()
    for name, rows in tables:
        if not isinstance(name, str):
            raise request_invalid(f"Invalid table name: '{name!r}'.")
        check_table_name(name)
        if name in seen:
            raise request_invalid(f"Duplicated table name: {name}.")
        if not rows:
            raise request_invalid(f"No operation is specified for table: '{name}'.")
        seen.add(name)


def _check_texts(request: pb.BatchWriteRowRequest) -> None:
    """Refuse text that is not UTF-8, apart from the names of tables, which `_check_batch` checks."""
    try:
        if not isinstance(request.transaction_id, str):
            raise CodecError("transaction_id is not UTF-8")
        for table in request.tables:
            for row in table.rows:
                if row.HasField("return_content"):
                    check_text(row.return_content)
    except CodecError as error:
        raise request_invalid("Parse PBMessage from RawString failed.") from error


def _without_conditions(rows: Sequence[BatchRow]) -> Sequence[BatchRow]:
    """Refuse the repeated rows that have a condition; others of the same key are executed (docs/data-plane.md 2.5)."""
    counts = Counter(row.write.span.key for row in rows)
    return [
        RefusedWrite(row.write, _condition_refusal(row.write.request.condition))
        if isinstance(row, KeyedWrite) and row.write.conditioned and counts[row.write.span.key] > 1
        else row
        for row in rows
    ]


def _condition_refusal(condition: pb.Condition) -> Refusal:
    what = "condition" if condition.row_existence == pb.IGNORE else "exist expectation"
    return parameter_invalid(f"Repeated rows do not support row {what} check in BatchModify.")


def _without_repeated_increments(rows: Sequence[BatchRow]) -> Sequence[BatchRow]:
    """Refuse the increments of a row that is incremented more than once (docs/data-plane.md 2.5)."""
    counts = Counter(row.write.span.key for row in rows if row.write.increments)
    if all(count == 1 for count in counts.values()):
        return rows
    refusal = parameter_invalid("Repeated rows do not support increments more than once in BatchModify.")
    return [
        RefusedWrite(row.write, refusal) if row.write.increments and counts[row.write.span.key] > 1 else row
        for row in rows
    ]


def _answer(name: str, outcomes: Iterable[bytes]) -> bytes:
    """Return the field of one table: BatchWriteRowResponse.tables(1) := table_name(1) rows(2)*."""
    return bytes_field(1, bytes_field(1, name.encode()) + b"".join(outcomes))


def _failure(write: RowWrite, refusal: Refusal) -> bytes:
    """Return the field of a refused row, which costs one write unit whatever its size is."""
    error = pb.Error(code=refusal.code, message=refusal.message)
    row = pb.RowInBatchWriteRowResponse(is_ok=False, error=error, consumed=consumed(write.read_units, 1))
    return bytes_field(2, row.SerializeToString())


def _success(write: RowWrite, content: bytes | None, version: int) -> bytes:
    if content is None:
        return _plain_success(write.read_units, write_units(write.span, len(write.row), version))
    row = pb.RowInBatchWriteRowResponse(is_ok=True, consumed=write_cost(write, version), row=content)
    return bytes_field(2, row.SerializeToString())


# The rows of a load cost the same, so few answers are different.
@lru_cache(maxsize=64)
def _plain_success(reads: int, writes: int) -> bytes:
    row = pb.RowInBatchWriteRowResponse(is_ok=True, consumed=consumed(reads, writes))
    return bytes_field(2, row.SerializeToString())
