"""One row of a write: its key, its conditions, what it does to its table, and what the client wants back of it.

Source: docs/data-plane.md 2.3, 2.5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ots_emulator.api.auto_increment import fill_placeholder
from ots_emulator.api.call import Call
from ots_emulator.api.filters import key_values, read_filter
from ots_emulator.api.projection import Projection
from ots_emulator.api.row_check import check_row_key, read_change
from ots_emulator.refusal import Refusal, RequestRefusal, parameter_invalid, request_invalid, table_missing
from ots_emulator.tables.cells import HEADER, cells_of, key_image, scan_image
from ots_emulator.tables.keys import Key
from ots_emulator.tables.table import Table
from ots_emulator.tables.transactions import Scope
from ots_tunnel.model import Action, CellOp
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.plainbuffer.spans import RowSpan


@dataclass(slots=True)
class RowWrite:
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


def read_write(action: Action, row: bytes, request: Any) -> RowWrite:
    """Take a row of a write apart.

    Raises:
        RequestRefusal: malformed, or wrong whatever the table looks like.
    """
    write = RowWrite(action, read_change(row, action), row, request)
    if request.HasField("return_content"):
        _check_return(write)
    return write


def _check_return(write: RowWrite) -> None:
    """Only what is incremented can be returned, and nothing by name with the key (docs/data-plane.md 2.5)."""
    wanted = write.request.return_content
    if not wanted.return_column_names:
        return
    if wanted.return_type != pb.RT_AFTER_MODIFY:
        raise request_invalid(
            f"Return column names cannot be given when return type is {pb.ReturnType.Name(wanted.return_type)}."
        )
    incremented = {cell.name for cell in write.span.cells if cell.op == CellOp.INCREMENT}
    for name in wanted.return_column_names:
        if name.encode() not in incremented:
            raise request_invalid(f"Return column name: '{name}' is not that of a column the row change increments.")


def find_key(write: RowWrite, name: str, table: Table | None, now_us: int) -> None:
    """Note the row's key, or why it has none; a placeholder of an auto-increment column gets its value.

    Args:
        write: the row.
        name: the table's name.
        table: None when there is none of that name.
        now_us: the service's time.

    Raises:
        RequestRefusal: what concerns the whole request.
    """
    if table is None:
        check_row_key(write.span)
        write.refusal = table_missing(name)
        return
    try:
        if table.schema.auto_increment is not None:
            fill_placeholder(write, table, now_us)
        write.key = table.schema.parse(write.span.key)
    except RequestRefusal:
        raise
    except Refusal as refusal:
        write.refusal = refusal
        return
    # The key has the names of the table's, so this needs no table either.
    if not table.schema.names.isdisjoint([cell.name for cell in write.span.cells]):
        column = next(cell.name for cell in write.span.cells if cell.name in table.schema.names)
        raise request_invalid(f"Duplicated attribute column name with primary key column: {column.decode()}.")


def execute(call: Call, scope: Scope, write: RowWrite) -> bytes | None:
    """Execute one row; return what the client wants back of it.

    Raises:
        Refusal: it may not be executed.
    """
    if write.refusal is not None:
        raise write.refusal
    scope.check(write.key)
    table = scope.table
    span, key, action = write.span, write.key, write.action
    now_us = call.now_us
    if action is not Action.DELETE:
        table.check_versions(span, now_us)
    if action is Action.UPDATE and not table.options.allow_update:
        raise parameter_invalid("UpdateRow is not allowed: allow_update of the table is false.")
    _check_condition(table, write, now_us // 1000)
    scope.apply(action, key, write.row, span, now_us)
    return _content(table, write, now_us // 1000) if write.request.HasField("return_content") else None


def _check_condition(table: Table, write: RowWrite, now_ms: int) -> None:
    condition = write.request.condition
    existence = condition.row_existence
    if existence == pb.IGNORE and not condition.column_condition:
        return
    image = table.get(write.key, now_ms)
    met = existence == pb.IGNORE or (image is not None) == (existence == pb.EXPECT_EXIST)
    if met and condition.column_condition:
        cells = [] if image is None else cells_of(scan_image(image))
        key = {} if image is None else key_values(write.span.key)
        met = read_filter(condition.column_condition).passes(cells, key)
    if not met:
        raise Refusal("OTSConditionCheckFail", "Condition check failed.")


def _content(table: Table, write: RowWrite, now_ms: int) -> bytes | None:
    wanted = write.request.return_content
    if wanted.return_type == pb.RT_PK:
        return HEADER + key_image(write.span)
    image = table.get(write.key, now_ms) if wanted.return_type == pb.RT_AFTER_MODIFY else None
    if image is None or not wanted.return_column_names:
        return None
    names = frozenset(name.encode() for name in wanted.return_column_names)
    row = Projection(names=names, max_versions=1).apply(image, frozenset())
    return None if row is None else HEADER + row
