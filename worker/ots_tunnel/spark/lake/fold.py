"""What the changes of one key leave of its row. Pure.

A mirror keeps of each column the newest version, as a table does that keeps one, and its number. The number is needed
because versions are the writers' to choose: a put with an older version than the present one changes nothing, and the
deletion of one version only counts where it is the present one.

Changes come in the order of their commits, and a replay repeats a stretch of them in that order; so does a stream that
begins before the rows of a snapshot were read. Either passes through older states of a row and ends in the right one,
in the domain of docs/architecture.md, "equal tables".

Example: the row has a=1 with version 10. An update puts a=2 with version 8 and b=3 with version 11: a stays, b is 3.
An update deletes version 10 of a: the row has b alone. A put of the row with c=4 leaves c alone.

Whether there is a row is as in a table, too: one that loses its last value stays, and an update of a missing row makes
one unless it only deletes (docs/data-plane.md 2.5).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ots_tunnel.errors import CodecError
from ots_tunnel.model import Action, CellOp, Value
from ots_tunnel.protocol.plainbuffer.column import Column


class Cell(NamedTuple):
    """The present value of a column, and its version in milliseconds."""

    value: Value
    version: int


#: A row's columns by name; a row may have none. None is no row.
Row = Mapping[str, Cell] | None


def fold(row: Row, changes: Iterable[tuple[Action, Sequence[Column]]]) -> Row:
    """The row after changes in their order.

    Raises:
        CodecError: see `after`.
    """
    for action, cells in changes:
        row = after(row, action, cells)
    return row


def after(row: Row, action: Action, cells: Sequence[Column]) -> Row:
    """The row after one change.

    Raises:
        CodecError: a cell is an increment, of which a stream has the result, or a put without value or version.
    """
    if action is Action.DELETE:
        return None
    found = dict(row) if row is not None and action is Action.UPDATE else {}
    for cell in cells:
        _apply(found, cell)
    if row is None and action is Action.UPDATE and all(cell.op is not CellOp.PUT for cell in cells):
        return None
    return found


def _apply(found: dict[str, Cell], cell: Column) -> None:
    present = found.get(cell.name)
    match cell.op:
        case CellOp.PUT if cell.value is not None and cell.timestamp_ms is not None:
            if present is None or cell.timestamp_ms >= present.version:
                found[cell.name] = Cell(cell.value, cell.timestamp_ms)
        case CellOp.DELETE_ALL_VERSIONS:
            found.pop(cell.name, None)
        case CellOp.DELETE_ONE_VERSION:
            if present is not None and present.version == cell.timestamp_ms:
                del found[cell.name]
        case _:
            raise CodecError(
                f"column {cell.name!r}: found {cell.op.name} with version {cell.timestamp_ms}, allowed are puts of a "
                "value with its version, and deletions"
            )
