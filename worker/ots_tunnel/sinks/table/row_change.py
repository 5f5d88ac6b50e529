"""Row changes that repeat a record: its bytes pass through, unless the destination would refuse them.

The row of a record without its extension is the body of a write (docs/architecture.md 4.1 and rule 13). Exceptions:

    an update without cells              changes nothing and would be refused: left out
    too many cells or bytes in a row     a put of the first cells, then updates of the same key
    a cell past the time to live         would be refused: left out
    a put whose cells are all past it    a deletion: such a row disappears, while one put without cells would stay

Such a put removes what another writer of the same record has stored. Where a key may have two writers at a time, a put
that is not whole goes out as updates only, which repeat each other (`may_overlap`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from ots_tunnel.client.table_calls import RowChange
from ots_tunnel.model import Action, CellOp
from ots_tunnel.protocol.plainbuffer.building import join_row
from ots_tunnel.protocol.plainbuffer.spans import CellSpan, RowSpan, scan_row
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.grouping import Limits

#: Bytes of a row change in a request beside its body: message tags, lengths, type and condition.
ENVELOPE_BYTES = 24

#: Smallest cell on the wire: tag, name of one byte, type, checksum. A row of fewer bytes per cell cannot exist.
MIN_CELL_BYTES = 11

#: A row without cells beside its key: header 4, tag of the key 1, row checksum 2.
EMPTY_ROW_BYTES = 7

#: Room for the parts of a piece beside its key and cells: header, tags and checksum take less.
ROW_FRAME_BYTES = 16

#: Seconds before the end of its time to live at which a cell is left out: it must not expire on its way.
EXPIRY_MARGIN = 60.0


@dataclass(frozen=True, slots=True)
class Change:
    """A row change with the identity of its row."""

    key: bytes = field(repr=False)
    row: RowChange = field(repr=False)
    size: int
    #: The record that it repeats, or repeats a part of.
    record: Record = field(repr=False, compare=False)


@dataclass(slots=True)
class Omissions:
    """Counts of what was left out on purpose."""

    empty_updates: int = 0
    expired_cells: int = 0


def _allowed() -> None:
    """Every expired cell may be left out."""


def expired_before_ms(time_to_live: int, now: float) -> int | None:
    """The version below which a cell is past the destination's time to live; None where cells never expire.

    Args:
        time_to_live: seconds; -1 means never.
        now: Unix seconds.
    """
    return None if time_to_live == -1 else int((now - time_to_live + EXPIRY_MARGIN) * 1000)


def unaltered_change(record: Record) -> Change:
    """The one change that repeats a record as it is.

    Raises:
        CodecError: the record is malformed.
    """
    body = record.write_body
    return Change(record.key, RowChange(record.action, body), len(body) + ENVELOPE_BYTES, record)


def changes_of(
    record: Record,
    limits: Limits,
    omissions: Omissions,
    expired_before_ms: int | None,
    before_omission: Callable[[], None] = _allowed,
    *,
    may_overlap: bool = False,
) -> Iterator[Change]:
    """Make the row changes of one record, in the order in which they have to be applied.

    Args:
        limits: most that one request may hold.
        omissions: counts what is left out.
        expired_before_ms: see the function of this name.
        before_omission: called before an expired cell is left out; may raise.
        may_overlap: whether another writer may repeat the record at the same time. A put that needs several changes,
            or loses cells, then becomes updates: cells of the row that the record does not have stay. One that loses
            all of its cells is left out.

    Raises:
        CodecError: the record is malformed.
    """
    body = record.write_body
    size = len(body) + ENVELOPE_BYTES
    if record.action is Action.DELETE:
        yield Change(record.key, RowChange(record.action, body), size, record)
        return
    may_be_large = size > limits.max_bytes or len(body) > limits.max_cells * MIN_CELL_BYTES
    if expired_before_ms is None and not may_be_large and not _may_be_empty(record, body):
        yield Change(record.key, RowChange(record.action, body), size, record)
        return
    span = scan_row(body)
    cells = _unexpired(span.cells, expired_before_ms)
    if len(cells) < len(span.cells):
        before_omission()
        omissions.expired_cells += len(span.cells) - len(cells)
    yield from _pieces(record, span, cells, limits, omissions, may_overlap=may_overlap)


def has_expired(change: Change, expired_before_ms: int) -> bool:
    """Whether a change puts a cell with a version below this one.

    Raises:
        CodecError: the change is malformed.
    """
    if change.row.action is Action.DELETE:
        return False
    cells = scan_row(change.row.body).cells
    return len(_unexpired(cells, expired_before_ms)) < len(cells)


def without_expired(change: Change, expired_before_ms: int, omissions: Omissions) -> Change | None:
    """A change without its expired cells; itself if it has none, None if nothing is left of an update.

    A put of which nothing is left becomes a deletion.

    Its size stays that of the whole change: what is counted for it under way is counted back.

    Raises:
        CodecError: the change is malformed.
    """
    if change.row.action is Action.DELETE:
        return change
    span = scan_row(change.row.body)
    cells = _unexpired(span.cells, expired_before_ms)
    if len(cells) == len(span.cells):
        return change
    omissions.expired_cells += len(span.cells) - len(cells)
    if not cells and change.row.action is Action.UPDATE:
        omissions.empty_updates += 1
        return None
    if not cells:
        return replace(change, row=_deletion(span))
    body = join_row(span.key, span.key_checksums, ((cell.raw, cell.checksum) for cell in cells))
    return replace(change, row=RowChange(change.row.action, body))


def _deletion(span: RowSpan) -> RowChange:
    return RowChange(Action.DELETE, join_row(span.key, span.key_checksums, (), delete=True))


def _may_be_empty(record: Record, body: bytes) -> bool:
    return record.action is Action.UPDATE and len(body) <= EMPTY_ROW_BYTES + len(record.key)


def _unexpired(cells: Sequence[CellSpan], expired_before_ms: int | None) -> Sequence[CellSpan]:
    if expired_before_ms is None:
        return cells
    return [
        cell
        for cell in cells
        if cell.op != CellOp.PUT or cell.timestamp_ms is None or cell.timestamp_ms >= expired_before_ms
    ]


def _pieces(
    record: Record, span: RowSpan, cells: Sequence[CellSpan], limits: Limits, omissions: Omissions, *, may_overlap: bool
) -> Iterator[Change]:
    action = record.action
    if not cells and action is Action.UPDATE:
        omissions.empty_updates += 1
        return
    if not cells and span.cells:
        # such a row disappears by itself; a deletion would also remove what another writer of it has stored
        if not may_overlap:
            deletion = _deletion(span)
            yield Change(record.key, deletion, len(deletion.body) + ENVELOPE_BYTES, record)
        return
    # a row that has no cell is put: it has to be there, and no writer of it has more
    if may_overlap and cells and _end_of_piece(cells, 0, len(span.key), limits) < len(span.cells):
        action = Action.UPDATE
    start = 0
    while start < len(cells) or start == 0:
        end = _end_of_piece(cells, start, len(span.key), limits)
        raw = ((cell.raw, cell.checksum) for cell in cells[start:end])
        body = join_row(span.key, span.key_checksums, raw)
        yield Change(record.key, RowChange(action, body), len(body) + ENVELOPE_BYTES, record)
        # A put replaces the row, so only the first piece may be one.
        action = Action.UPDATE
        start = max(end, 1)


def _end_of_piece(cells: Sequence[CellSpan], start: int, key_bytes: int, limits: Limits) -> int:
    size = key_bytes + ENVELOPE_BYTES + ROW_FRAME_BYTES
    end = start
    while end < len(cells) and end - start < limits.max_cells:
        size += len(cells[end].raw)
        if end > start and size > limits.max_bytes:
            break
        end += 1
    return end
