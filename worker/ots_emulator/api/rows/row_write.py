"""One row of a write, from its bytes to the returned content.

    RowWrite (read_write: the row alone) -> KeyedWrite (with_key: the row and its table) -> execute (the rows stored)

Every step returns a new value or raises the refusal at once; only a batch collects refusals, because one row of it may
fail without the others.

Source: docs/data-plane.md 2.3, 2.5.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ots_emulator.api.call import Call
from ots_emulator.api.rows.auto_increment import fill_placeholder
from ots_emulator.api.rows.change_check import read_change
from ots_emulator.api.rows.filters import key_values, read_filter
from ots_emulator.api.rows.patterns import Work
from ots_emulator.refusal import Refusal, parameter_invalid, request_invalid
from ots_emulator.tables.cells import cells_of, key_image, newest, row_without_key, scan_image
from ots_emulator.tables.keys import Key
from ots_emulator.tables.table import Table
from ots_emulator.tables.transactions import Scope
from ots_tunnel.model import Action, CellOp
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.plainbuffer.spans import RowSpan, scan_row
from ots_tunnel.protocol.plainbuffer.tags import HEADER

WriteRequest = pb.RowInBatchWriteRowRequest | pb.PutRowRequest | pb.UpdateRowRequest | pb.DeleteRowRequest


class RowWrite(NamedTuple):
    """One row of a write as it was sent, without what follows it.

    `span` is `row` parsed; `conditioned` and `increments` are whether the request has a condition, or the row an
    increment.
    """

    action: Action
    row: bytes
    span: RowSpan
    request: WriteRequest
    conditioned: bool
    increments: bool

    @property
    def read_units(self) -> int:
        """What it costs to look at the stored row."""
        return int(self.conditioned or self.increments)


class KeyedWrite(NamedTuple):
    """A row of a write and its key in the table."""

    write: RowWrite
    key: Key


def read_write(action: Action, row: bytes, request: Any, work: Work) -> RowWrite:
    """Parse one row of a write; `work` is what the expressions of conditions may still do.

    Raises:
        RequestRefusal: malformed, or wrong whatever the table looks like.
    """
    sent, span = read_change(row, action)
    # The condition is asked once, because every look into a message takes its time.
    condition = request.condition
    column_condition = condition.column_condition
    if column_condition:
        # Read once more when the row is executed: conditions are rare.
        read_filter(column_condition, work)
    if request.HasField("return_content"):
        _check_return(request.return_content, span)
    conditioned = bool(column_condition) or condition.row_existence != pb.IGNORE
    increments = action is Action.UPDATE and any([cell.op == CellOp.INCREMENT for cell in span.cells])
    return RowWrite(action, sent, span, request, conditioned, increments)


def _check_return(wanted: pb.ReturnContent, span: RowSpan) -> None:
    """Only an incremented column can be returned by name, and none together with the key (docs/data-plane.md 2.5)."""
    if not wanted.return_column_names:
        return
    if wanted.return_type != pb.RT_AFTER_MODIFY:
        raise request_invalid(
            f"Return column names cannot be given when return type is {pb.ReturnType.Name(wanted.return_type)}."
        )
    incremented = {cell.name for cell in span.cells if cell.op == CellOp.INCREMENT}
    for name in wanted.return_column_names:
        if name.encode() not in incremented:
            raise request_invalid(f"Return column name: '{name}' is not that of a column the row change increments.")


def with_key(write: RowWrite, table: Table, now_us: int) -> KeyedWrite:
    """Return the row with its key; the placeholder of an auto-increment column gets its value.

    Raises:
        RequestRefusal: what concerns the whole request.
        Refusal: the key does not fit the table.
    """
    schema = table.schema
    if schema.auto_increment is not None:
        condition = write.request.condition
        filled = fill_placeholder(write.span, write.action, condition, table, schema.auto_increment, now_us)
        if filled is not None:
            write = write._replace(row=filled, span=scan_row(filled))
    span = write.span
    key = schema.parse(span.key)
    # The key has the names of the table's columns, so this concerns the request whatever the table is.
    if not schema.names.isdisjoint([cell.name for cell in span.cells]):
        column = next(cell.name for cell in span.cells if cell.name in schema.names)
        raise request_invalid(f"Duplicated attribute column name with primary key column: {column.decode()}.")
    return KeyedWrite(write, key)


def execute(call: Call, scope: Scope, keyed: KeyedWrite) -> bytes | None:
    """Execute one row; return the row that the client wants back, if any.

    Raises:
        Refusal: it may not be executed.
    """
    (action, row, span, request, conditioned, _), key = keyed
    scope.check(key)
    table = scope.table
    now_us = call.now_us
    if action is not Action.DELETE:
        table.check_versions(span, now_us)
    if action is Action.UPDATE and not table.options.allow_update:
        raise parameter_invalid("Update operation is not allowed in this table")
    if conditioned:
        _check_condition(table, request.condition, span, key, call)
    scope.apply(action, key, row, span, now_us)
    if not request.HasField("return_content"):
        return None
    return _content(table, request.return_content, span, key, now_us // 1000)


def _check_condition(table: Table, condition: pb.Condition, span: RowSpan, key: Key, call: Call) -> None:
    existence = condition.row_existence
    image = table.get(key, call.now_ms)
    met = existence == pb.IGNORE or (image is not None) == (existence == pb.EXPECT_EXIST)
    if met and condition.column_condition:
        cells = [] if image is None else cells_of(scan_image(image))
        key_cells = {} if image is None else key_values(span.key)
        met = read_filter(condition.column_condition, call.work).passes(cells, key_cells)
    if not met:
        raise Refusal("OTSConditionCheckFail", "Condition check failed.")


def _content(table: Table, wanted: pb.ReturnContent, span: RowSpan, key: Key, now_ms: int) -> bytes | None:
    if wanted.return_type == pb.RT_PK:
        return HEADER + key_image(span)
    image = table.get(key, now_ms) if wanted.return_type == pb.RT_AFTER_MODIFY else None
    if image is None or not wanted.return_column_names:
        return None
    names = frozenset(name.encode() for name in wanted.return_column_names)
    return row_without_key(newest((cell for cell in cells_of(scan_image(image)) if cell.name in names), 1))
