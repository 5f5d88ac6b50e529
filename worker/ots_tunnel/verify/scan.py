"""Two scans of one slice, merged like two sorted lists in constant memory.

Rows are compared as bytes first; only rows that differ are decoded cell by cell. While a page is compared, the next
page of the same table is already being read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from ots_tunnel.client.table_calls import KeyRange, RangePage
from ots_tunnel.errors import CodecError
from ots_tunnel.model import KeyValue, Marker, PrimaryKey
from ots_tunnel.protocol.matching import match_rows
from ots_tunnel.protocol.plainbuffer.codec import decode_key_cells
from ots_tunnel.protocol.plainbuffer.spans import RowSpan, check_header, scan_row
from ots_tunnel.verify.comparison import Comparison, Difference, DifferingRow
from ots_tunnel.verify.nature import Nature, nature_of
from ots_tunnel.verify.rows import SAME, RowDifferences, compare_rows, is_near_expiry, show_cells

#: Largest value of the request's int32 field: more versions than any table keeps, so that all are returned.
ALL_VERSIONS = 2_147_483_647


class ReadsTable(Protocol):
    """The part of `TableClient` that a scan needs."""

    async def get_range(self, table: str, start: PrimaryKey, end: PrimaryKey, *, max_versions: int) -> RangePage:
        """One page of a scan; see `TableClient.get_range`."""
        ...

    async def compute_splits(self, table: str, size_units: int = 1, *, unit_bytes: int = ...) -> tuple[KeyRange, ...]:
        """The table in slices; see `TableClient.compute_splits`."""
        ...


class Scan:
    """One table's scan of a slice: the current page and the offset of the next row in it."""

    def __init__(self, client: ReadsTable, table: str, part: KeyRange, max_versions: int = ALL_VERSIONS) -> None:
        self._client = client
        self._table = table
        self._start: PrimaryKey | None = part.start
        self._end = part.end
        self._max_versions = max_versions
        self._ahead: asyncio.Task[RangePage] | None = None
        self.page = b""
        self.offset = 0

    @property
    def exhausted(self) -> bool:
        """Whether the slice has no further row."""
        return self.offset >= len(self.page) and self._start is None

    @property
    def needs_page(self) -> bool:
        """Whether the next page must be read before the next row is known."""
        return self.offset >= len(self.page) and self._start is not None

    def ask(self) -> None:
        """Start to read the next page, if there is one."""
        if self._ahead is None and self._start is not None:
            call = self._client.get_range(self._table, self._start, self._end, max_versions=self._max_versions)
            self._ahead = asyncio.ensure_future(call)

    async def fill(self) -> None:
        """Take pages until there is a row or the slice ends; a page may be empty (docs/data-plane.md 2.6)."""
        while self.needs_page:
            self.ask()
            assert self._ahead is not None
            answer = await self._ahead
            self._ahead = None
            self.page = answer.rows
            self.offset = check_header(answer.rows) if answer.rows else 0
            self._start = answer.next_start
            self.ask()

    def row(self) -> RowSpan:
        """The next row, without moving past it."""
        return scan_row(self.page, self.offset)

    async def close(self) -> None:
        """Cancel the read of the next page."""
        if self._ahead is not None:
            self._ahead.cancel()
            await asyncio.gather(self._ahead, return_exceptions=True)
            self._ahead = None


#: Called for every differing row with the kind of difference, the row in each table, and the differing versions.
OnDifference = Callable[[Difference, RowSpan | None, RowSpan | None, RowDifferences], None]


class ScanPair:
    """The scans of one slice in both tables, merged.

    Args:
        result: counts rows, cells, versions and versions near their expiry.
        differs: called for every differing row.
        near_expiry_limit: see `rows.near_expiry_limit`; called after each pair of pages has arrived.
    """

    def __init__(
        self,
        a: Scan,
        b: Scan,
        result: Comparison,
        differs: OnDifference,
        near_expiry_limit: Callable[[], int | None] = lambda: None,
    ) -> None:
        self._a = a
        self._b = b
        self._result = result
        self._differs = differs
        self._ask_near_expiry_limit = near_expiry_limit
        self._near_expiry_limit: int | None = None

    async def step(self) -> bool:
        """Compare rows until one table needs its next page; return False when both have ended.

        Raises:
            ServiceError, TransportError: a scan failed permanently.
            CodecError: an answer is malformed.
        """
        self._a.ask()
        self._b.ask()
        await self._a.fill()
        await self._b.fill()
        if self._a.exhausted and self._b.exhausted:
            return False
        self._near_expiry_limit = self._ask_near_expiry_limit()
        self._merge()
        return True

    async def close(self) -> None:
        """Cancel the reads of both tables."""
        await self._a.close()
        await self._b.close()

    def _merge(self) -> None:
        a, b = self._a, self._b
        while not (a.needs_page or b.needs_page or (a.exhausted and b.exhausted)):
            if a.exhausted:
                self._take_extra(b.row())
                continue
            if self._skip_equal():
                continue
            row = a.row()
            length = row.end - a.offset
            if b.page[b.offset : b.offset + length] == a.page[a.offset : row.end]:
                # A row ends where its own tags say, so equal bytes at both offsets are equal rows.
                b.offset += length
                self._count(row)
            elif b.exhausted:
                self._take_missing(row)
            elif not self._compare_unequal(row):
                continue
            a.offset = row.end

    def _skip_equal(self) -> bool:
        """Count the equal rows at the start of both pages; return False if there is none."""
        size, rows, cells, versions = match_rows(self._a.page, self._a.offset, self._b.page, self._b.offset)
        self._a.offset += size
        self._b.offset += size
        self._result.rows += rows
        self._result.cells += cells
        self._result.versions += versions
        return rows > 0

    def _compare_unequal(self, row: RowSpan) -> bool:
        """Compare a row with the other table's next row; return False if that row has a smaller key."""
        other = self._b.row()
        if row.key == other.key:
            self._b.offset = other.end
            self._count(row)
            differences = compare_rows(row, other, self._near_expiry_limit)
            self._result.near_expiry += differences.near_expiry
            if differences.versions:
                self._differs(Difference.DIFFERENT, row, other, differences)
            return True
        if sort_key(row.key) > sort_key(other.key):
            self._take_extra(other)
            return False
        self._take_missing(row)
        return True

    def _take_missing(self, row: RowSpan) -> None:
        self._count(row)
        if is_near_expiry(row, self._near_expiry_limit):
            self._result.near_expiry += len(row.cells)
        else:
            self._differs(Difference.MISSING, row, None, SAME)

    def _take_extra(self, row: RowSpan) -> None:
        self._b.offset = row.end
        if is_near_expiry(row, self._near_expiry_limit):
            self._result.near_expiry += len(row.cells)
        else:
            self._differs(Difference.EXTRA, None, row, SAME)

    def _count(self, row: RowSpan) -> None:
        self._result.rows += 1
        self._result.versions += len(row.cells)
        self._result.cells += len({cell.name for cell in row.cells})


def record_in(result: Comparison) -> OnDifference:
    """A callback that counts differing rows in a comparison and keeps the first ones."""

    def record(kind: Difference, first: RowSpan | None, second: RowSpan | None, differences: RowDifferences) -> None:
        result.count(kind)
        if first is not None and second is not None:
            _count_nature(result, nature_of(first, second, differences))
        if not result.keeps_more:
            return
        row = first or second
        assert row is not None
        cells = show_cells(first, second, differences) if first is not None and second is not None else ()
        result.first.append(
            DifferingRow(kind, decode_key_cells(row.key), cells, len(differences.versions) - len(cells))
        )

    return record


def _count_nature(result: Comparison, nature: Nature) -> None:
    match nature:
        case Nature.VALUES:
            result.in_values += 1
        case Nature.COLUMNS:
            result.in_columns += 1
        case Nature.VERSIONS:
            result.in_versions += 1


def sort_key(key: bytes) -> tuple[int | bytes, ...]:
    """Sort key of a row as the service orders rows: integers by value, strings and binaries by bytes."""
    return tuple(_sortable(value) for _, value in decode_key_cells(key))


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
