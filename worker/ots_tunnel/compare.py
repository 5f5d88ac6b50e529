"""Compare two tables by full scans: every row, cell and cell version (replication 6).

Both tables come in key order, so two scans are merged like two sorted lists, slice by slice in constant memory.
Rows are compared as bytes first; only rows that differ are looked at cell by cell, since the order of a row's cells
on the wire is no part of its contents.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from ots_tunnel.errors import CodecError
from ots_tunnel.model import KeyValue, Marker, PrimaryKey
from ots_tunnel.protocol.plainbuffer import decode_key_cells
from ots_tunnel.protocol.spans import RowSpan, check_header, scan_row
from ots_tunnel.table_calls import KeyRange, RangePage

#: More versions than any table keeps, so that every one is returned.
ALL_VERSIONS = 2_147_483_647

#: Differences that are kept with their keys; all are counted.
KEPT_DIFFERENCES = 10

#: Unit of the slices, bytes; the least that the service accepts (tablestore-api 2.7).
SLICE_UNIT_BYTES = 1_048_576

#: Slices scanned at the same time.
PARALLEL = 4


class ReadsTable(Protocol):
    """The part of `TableClient` that is needed."""

    async def get_range(self, table: str, start: PrimaryKey, end: PrimaryKey, *, max_versions: int) -> RangePage:
        """One page of a scan; see `TableClient.get_range`."""
        ...

    async def compute_splits(self, table: str, size_units: int = 1, *, unit_bytes: int = ...) -> tuple[KeyRange, ...]:
        """The table in slices; see `TableClient.compute_splits`."""
        ...


class Difference(StrEnum):
    """How a row of the second table differs from that of the first."""

    MISSING = "missing"
    EXTRA = "extra"
    DIFFERENT = "different"


@dataclass(frozen=True, slots=True)
class DifferingRow:
    """A row that is not the same in both tables."""

    kind: Difference
    primary_key: PrimaryKey

    def __str__(self) -> str:
        return f"{self.kind}: " + ", ".join(f"{name}={value!r}" for name, value in self.primary_key)


@dataclass(slots=True)
class Comparison:
    """What was compared so far, and what differs.

    `rows`, `cells` and `versions` count the first table: a cell is a column of a row, which has one or more versions.
    """

    rows: int = 0
    cells: int = 0
    versions: int = 0
    missing: int = 0
    extra: int = 0
    different: int = 0
    first: list[DifferingRow] = field(default_factory=list)

    @property
    def differences(self) -> int:
        """Rows that are not the same in both tables."""
        return self.missing + self.extra + self.different

    @property
    def equal(self) -> bool:
        """Whether both tables hold the same."""
        return self.differences == 0

    def add(self, other: Comparison) -> None:
        """Take over what another part of the tables gave; parts are added in key order."""
        self.rows += other.rows
        self.cells += other.cells
        self.versions += other.versions
        self.missing += other.missing
        self.extra += other.extra
        self.different += other.different
        self.first = (self.first + other.first)[:KEPT_DIFFERENCES]


#: Called after every page with the rows of the first table that were compared so far.
Progress = Callable[[int], None]


async def compare_tables(
    a: ReadsTable,
    table_a: str,
    b: ReadsTable,
    table_b: str,
    *,
    parallel: int = PARALLEL,
    progress: Progress | None = None,
    slice_bytes: int = 8 * SLICE_UNIT_BYTES,
) -> Comparison:
    """Compare every row, cell and cell version of two tables that nobody writes to meanwhile.

    Args:
        a: instance of the first table, usually the source.
        table_a: first table; its slices are scanned in both.
        b: instance of the second table.
        table_b: second table.
        parallel: slices scanned at the same time.
        progress: told how many rows of the first table are done.
        slice_bytes: about how much of the first table one slice holds.

    Raises:
        ServiceError, TransportError: a scan failed for good.
        CodecError: an answer is malformed.
    """
    slices = await a.compute_splits(table_a, max(1, slice_bytes // SLICE_UNIT_BYTES), unit_bytes=SLICE_UNIT_BYTES)
    meter = _Meter(progress)
    results: list[Comparison | None] = [None] * len(slices)
    waiting = deque(enumerate(slices))

    async def scan() -> None:
        while waiting:
            index, part = waiting.popleft()
            results[index] = await _compare_slice(_Scan(a, table_a, part), _Scan(b, table_b, part), meter)

    async with asyncio.TaskGroup() as group:
        for lane in range(min(parallel, len(slices))):
            group.create_task(scan(), name=f"compare-{lane}")
    total = Comparison()
    for result in results:
        if result is not None:
            total.add(result)
    return total


class _Meter:
    """Adds up the rows of all slices."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._rows = 0

    def add(self, rows: int) -> None:
        self._rows += rows
        if self._progress is not None:
            self._progress(self._rows)


class _Scan:
    """One side of a slice: its pages, and where in the current one the next row begins."""

    def __init__(self, client: ReadsTable, table: str, part: KeyRange) -> None:
        self._client = client
        self._table = table
        self._start: PrimaryKey | None = part.start
        self._end = part.end
        self.page = b""
        self.offset = 0

    @property
    def exhausted(self) -> bool:
        """Whether no row is left."""
        return self.offset >= len(self.page) and self._start is None

    @property
    def hungry(self) -> bool:
        """Whether the next page has to be read before the next row is known."""
        return self.offset >= len(self.page) and self._start is not None

    async def fill(self) -> None:
        """Read pages until there is a row or none is left; filtered or expired rows make empty pages."""
        while self.hungry and self._start is not None:
            answer = await self._client.get_range(self._table, self._start, self._end, max_versions=ALL_VERSIONS)
            self.page = answer.rows
            self.offset = check_header(answer.rows) if answer.rows else 0
            self._start = answer.next_start

    def row(self) -> RowSpan:
        """The next row, which stays the next one."""
        return scan_row(self.page, self.offset)


async def _compare_slice(a: _Scan, b: _Scan, meter: _Meter) -> Comparison:
    result = Comparison()
    while True:
        before = result.rows
        await asyncio.gather(a.fill(), b.fill())
        if a.exhausted and b.exhausted:
            return result
        _merge(a, b, result)
        meter.add(result.rows - before)


def _merge(a: _Scan, b: _Scan, result: Comparison) -> None:
    """Compare rows until one side has to read on, or both are at their end."""
    while not (a.hungry or b.hungry or (a.exhausted and b.exhausted)):
        if a.exhausted:
            _take_extra(b, b.row(), result)
            continue
        row = a.row()
        length = row.end - a.offset
        if b.page[b.offset : b.offset + length] == a.page[a.offset : row.end]:
            # A row says its own length, so equal bytes at both places are equal rows.
            b.offset += length
            _count(row, result)
        elif b.exhausted:
            _count(row, result)
            _note(result, Difference.MISSING, row)
        elif not _compare_unequal(row, b, result):
            continue
        a.offset = row.end


def _compare_unequal(row: RowSpan, b: _Scan, result: Comparison) -> bool:
    """Compare a row with the other side's next one of other bytes; False when that one comes before it."""
    other = b.row()
    if row.key == other.key:
        b.offset = other.end
        _count(row, result)
        if _contents(row) != _contents(other):
            _note(result, Difference.DIFFERENT, row)
        return True
    if _order(row) > _order(other):
        _take_extra(b, other, result)
        return False
    _count(row, result)
    _note(result, Difference.MISSING, row)
    return True


def _take_extra(b: _Scan, row: RowSpan, result: Comparison) -> None:
    b.offset = row.end
    _note(result, Difference.EXTRA, row)


def _count(row: RowSpan, result: Comparison) -> None:
    result.rows += 1
    result.versions += len(row.cells)
    result.cells += len({cell.name for cell in row.cells})


def _note(result: Comparison, kind: Difference, row: RowSpan) -> None:
    match kind:
        case Difference.MISSING:
            result.missing += 1
        case Difference.EXTRA:
            result.extra += 1
        case Difference.DIFFERENT:
            result.different += 1
    if len(result.first) < KEPT_DIFFERENCES:
        result.first.append(DifferingRow(kind, decode_key_cells(row.key)))


def _contents(row: RowSpan) -> list[tuple[bytes, int, bytes]]:
    """Cells by name and version; values as bytes, so doubles are compared by their bits."""
    return sorted((cell.name, cell.timestamp_ms or 0, cell.value or b"") for cell in row.cells)


def _order(row: RowSpan) -> tuple[int | bytes, ...]:
    """What sorts keys as the service does: integers by value, strings and binaries by bytes (tablestore-api 2.6)."""
    return tuple(_sortable(value) for _, value in decode_key_cells(row.key))


def _sortable(value: KeyValue) -> int | bytes:
    match value:
        case int():
            return value
        case str():
            return value.encode()
        case bytes():
            return value
        case Marker():
            raise CodecError(f"a stored key holds {value.name}")
