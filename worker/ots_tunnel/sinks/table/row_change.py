"""A tunnel's record as the row changes that repeat it: bytes pass through, cells are touched only where they must be.

docs/architecture.md rule 13, docs/architecture.md 4.1: the row of a record is a write body once its extension is cut
off. Exceptions: an update without cells changes nothing and would be refused; a row with too many cells or bytes
goes out in pieces, a put followed by updates of the same key; cells past the destination's lifetime
would be refused and are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ots_tunnel.client.table_calls import RowChange
from ots_tunnel.model import Action, CellOp
from ots_tunnel.protocol.plainbuffer.building import join_row
from ots_tunnel.protocol.plainbuffer.spans import CellSpan, RowSpan, scan_row
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.grouping import Limits

#: Bytes a row change takes in a request beside its body: message tags, lengths, type and condition.
ENVELOPE_BYTES = 24

#: The least a cell takes on the wire: tag, name of one byte, type, checksum. A shorter row cannot have too many.
MIN_CELL_BYTES = 11

#: Seconds before the end of its lifetime at which a cell is left out already: it must not expire on its way.
EXPIRY_MARGIN = 60.0


@dataclass(frozen=True, slots=True)
class Change:
    """A row change with the identity of its row."""

    key: bytes = field(repr=False)
    row: RowChange = field(repr=False)
    size: int
    #: What it repeats.
    record: Record = field(repr=False, compare=False)


@dataclass(slots=True)
class Omissions:
    """What was left out on purpose, counted."""

    empty_updates: int = 0
    expired_cells: int = 0


def expired_before_ms(time_to_live: int, now: float) -> int | None:
    """Versions before this are past the destination's lifetime; None where cells live for ever.

    Args:
        time_to_live: seconds, -1 is for ever.
        now: Unix seconds.
    """
    return None if time_to_live == -1 else int((now - time_to_live + EXPIRY_MARGIN) * 1000)


def unaltered_change(record: Record) -> Change:
    """The one change that repeats a record of which nothing has to be touched.

    Raises:
        CodecError: the record is malformed.
    """
    body = record.write_body
    return Change(record.key, RowChange(record.action, body), len(body) + ENVELOPE_BYTES, record)


def changes_of(record: Record, limits: Limits, omissions: Omissions, expired_before_ms: int | None) -> Iterator[Change]:
    """The row changes of one record, in the order in which they have to be applied.

    Args:
        record: what the tunnel delivered.
        limits: what one request may hold.
        omissions: counts what is left out.
        expired_before_ms: older cells are past the destination's lifetime; None where cells live for ever.

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
    cells = _living(span.cells, expired_before_ms)
    omissions.expired_cells += len(span.cells) - len(cells)
    yield from _pieces(record, span, cells, limits, omissions)


def _may_be_empty(record: Record, body: bytes) -> bool:
    # Header 4, tag of the key 1, the key's cells; without attributes only the row checksum follows, 2 bytes.
    return record.action is Action.UPDATE and len(body) <= 4 + 1 + len(record.key) + 2


def _living(cells: Sequence[CellSpan], expired_before_ms: int | None) -> Sequence[CellSpan]:
    if expired_before_ms is None:
        return cells
    return [
        cell
        for cell in cells
        if cell.op != CellOp.PUT or cell.timestamp_ms is None or cell.timestamp_ms >= expired_before_ms
    ]


def _pieces(
    record: Record, span: RowSpan, cells: Sequence[CellSpan], limits: Limits, omissions: Omissions
) -> Iterator[Change]:
    action = record.action
    if not cells and action is Action.UPDATE:
        omissions.empty_updates += 1
        return
    start = 0
    while start < len(cells) or start == 0:
        end = _end_of_piece(cells, start, len(span.key), limits)
        raw = ((cell.raw, cell.checksum) for cell in cells[start:end])
        body = join_row(span.key, span.key_checksums, raw)
        yield Change(record.key, RowChange(action, body), len(body) + ENVELOPE_BYTES, record)
        # A put replaces the row, so only its first piece may be one.
        action = Action.UPDATE
        start = max(end, 1)


def _end_of_piece(cells: Sequence[CellSpan], start: int, key_bytes: int, limits: Limits) -> int:
    size = key_bytes + ENVELOPE_BYTES + 16
    end = start
    while end < len(cells) and end - start < limits.max_cells:
        size += len(cells[end].raw)
        if end > start and size > limits.max_bytes:
            break
        end += 1
    return end
