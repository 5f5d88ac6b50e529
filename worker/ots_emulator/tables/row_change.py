"""Effect of one row change on the cells of one row; pure.

Source: docs/data-plane.md 2.5 (cells and versions).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from functools import lru_cache
from operator import attrgetter, lt
from typing import Final

from ots_emulator.refusal import parameter_invalid
from ots_emulator.tables.cells import (
    Cell,
    Stamp,
    build_image,
    has_versions,
    in_order,
    integer_of,
    integer_value,
    make_cell,
    newest,
    stamp_at,
)
from ots_tunnel.model import CellOp
from ots_tunnel.protocol.plainbuffer.building import join_row
from ots_tunnel.protocol.plainbuffer.crc8 import crc8
from ots_tunnel.protocol.plainbuffer.spans import CellSpan, RowSpan
from ots_tunnel.protocol.plainbuffer.tags import CELL_CHECKSUM, HEADER, ROW_CHECKSUM, ROW_DATA, ROW_KEY

_name: Final = attrgetter("name")
_U64: Final = 1 << 64
_UNSTAMPED: Final = {None}
_KEY_SECTION, _DATA_SECTION, _ROW_CHECKSUM = (bytes((tag,)) for tag in (ROW_KEY, ROW_DATA, ROW_CHECKSUM))
_I63: Final = 1 << 63
#: Cell operations that write nothing.
DELETIONS: Final = (CellOp.DELETE_ALL_VERSIONS, CellOp.DELETE_ONE_VERSION)

#: A cell of a record: the wire bytes and their checksum.
Touched = tuple[bytes, int]


def row_of_put(row: bytes, span: RowSpan, now_ms: int, max_versions: int) -> tuple[bytes, bool]:
    """Return the image after a row put, and whether some column of it has several versions.

    Args:
        row: header and row as they were sent.
        span: the same row, parsed.
        now_ms: version of the cells without one.
        max_versions: versions kept per column.
    """
    cells: Sequence[CellSpan] = span.cells
    order = _order_of(tuple([cell.name for cell in cells]))
    if order is Order.REPEATED:
        return _repeated_put(span, now_ms, max_versions)
    if order is Order.MIXED:
        cells = sorted(cells, key=_name)
    times = {cell.timestamp_ms for cell in cells}
    if times == _UNSTAMPED:
        return _stamped(span, cells, stamp_at(now_ms)), False
    if order is Order.SORTED and span.sequence is None and row[-4] == CELL_CHECKSUM and None not in times:
        # Versions, order and row format are already those of an image, as in a row that a replicator sends. An
        # extension would stand between the last cell's checksum and the row's.
        return row[len(HEADER) :], False
    stamp = stamp_at(now_ms)
    endings, checksums = stamp.endings, stamp.checksums
    pairs = [
        (raw[:-2] + endings[checksum], checksums[checksum]) if timestamp_ms is None else (raw, checksum)
        for _, _, timestamp_ms, raw, checksum, _ in cells
    ]
    return join_row(span.key, span.key_checksums, pairs, header=False), False


def _stamped(span: RowSpan, cells: Sequence[CellSpan], stamp: Stamp) -> bytes:
    """Build a row of cells that all lack a version; `join_row` would loop over each of them."""
    endings = stamp.endings
    raws = [cell.raw[:-2] + endings[cell.checksum] for cell in cells]
    checksums = bytes([cell.checksum for cell in cells]).translate(stamp.checksums)
    checksum = crc8(span.key_checksums + checksums + b"\0")
    return b"".join((_KEY_SECTION, span.key, _DATA_SECTION, *raws, _ROW_CHECKSUM, bytes((checksum,))))


class Order(Enum):
    """Order of the cells in a put."""

    SORTED = 0
    MIXED = 1
    REPEATED = 2
    """Some column occurs more than once."""


# The rows of a table have few different lists of columns.
@lru_cache(maxsize=128)
def _order_of(names: tuple[bytes, ...]) -> Order:
    if all(map(lt, names, names[1:])):
        return Order.SORTED
    return Order.MIXED if len(set(names)) == len(names) else Order.REPEATED


def _repeated_put(span: RowSpan, now_ms: int, max_versions: int) -> tuple[bytes, bool]:
    cells = newest(in_order(_put_cells(span, now_ms)), max_versions)
    return build_image(span, cells), has_versions(cells)


def _put_cells(span: RowSpan, now_ms: int) -> list[Cell]:
    stamp = stamp_at(now_ms)
    return [
        stamp.cell(cell.name, cell.raw, cell.checksum, cell.value or b"")
        if cell.timestamp_ms is None
        else Cell(cell.name, cell.timestamp_ms, cell.raw, cell.checksum, cell.value or b"")
        for cell in span.cells
    ]


def apply_update(
    before: Iterable[Cell], span: RowSpan, now_ms: int, max_versions: int
) -> tuple[list[Touched], list[Cell]]:
    """Apply the cells of an UpdateRow in their order.

    Returns:
        The touched cells for the change log (versions filled in, increments replaced by their result), and the cells
        of the row afterwards, in order.

    Raises:
        Refusal: an increment of a value that is not an integer.
    """
    columns: dict[bytes, dict[int, Cell]] = {}
    for cell in before:
        columns.setdefault(cell.name, {})[cell.timestamp_ms] = cell
    stamp = stamp_at(now_ms)
    touched: list[Touched] = []
    for change in span.cells:
        name = change.name
        match change.op:
            case CellOp.DELETE_ALL_VERSIONS:
                columns.pop(name, None)
                touched.append((change.raw, change.checksum))
                continue
            case CellOp.DELETE_ONE_VERSION:
                columns.get(name, {}).pop(change.timestamp_ms or 0, None)
                touched.append((change.raw, change.checksum))
                continue
            case CellOp.INCREMENT:
                cell = _incremented(columns.get(name, {}), name, change.value or b"", now_ms)
            case _ if change.timestamp_ms is None:
                cell = stamp.cell(name, change.raw, change.checksum, change.value or b"")
            case _:
                cell = Cell(name, change.timestamp_ms, change.raw, change.checksum, change.value or b"")
        touched.append((cell.raw, cell.checksum))
        versions = columns.setdefault(name, {})
        versions[cell.timestamp_ms] = cell
        if len(versions) > max_versions:
            # Trimmed with every write: a later deletion must not make an old version visible again.
            del versions[min(versions)]
    after = [
        versions[timestamp_ms]
        for name, versions in sorted(columns.items())
        for timestamp_ms in sorted(versions, reverse=True)
    ]
    return touched, after


def touched_row(span: RowSpan, touched: list[Touched]) -> bytes:
    """Build the row of an UPDATE record, without header."""
    return join_row(span.key, span.key_checksums, touched, header=False)


def _incremented(versions: dict[int, Cell], name: bytes, step: bytes, now_ms: int) -> Cell:
    added = integer_of(step) or 0
    current = 0
    if versions:
        stored = integer_of(versions[max(versions)].value)
        if stored is None:
            raise parameter_invalid(f"The column '{name.decode()}' holds no integer, so it cannot be incremented.")
        current = stored
    total = (current + added + _I63) % _U64 - _I63
    # The result must be the newest version, also where clients chose versions in the future.
    timestamp_ms = max(now_ms, *versions) if versions else now_ms
    return make_cell(name, integer_value(total), timestamp_ms)
