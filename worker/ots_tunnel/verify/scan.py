"""Two scans of one slice, merged like two sorted lists in constant memory.

Rows are compared as bytes first; only rows that differ are looked at cell by cell. While one page of a side is
compared, its next one is on the way.
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
from ots_tunnel.verify.rows import SAME, RowDifferences, compare_rows, is_near_expiry, show_cells

#: More versions than any table keeps, so that every one is returned.
ALL_VERSIONS = 2_147_483_647


class ReadsTable(Protocol):
    """The part of `TableClient` that is needed."""

    async def get_range(self, table: str, start: PrimaryKey, end: PrimaryKey, *, max_versions: int) -> RangePage:
        """One page of a scan; see `TableClient.get_range`."""
        ...

    async def compute_splits(self, table: str, size_units: int = 1, *, unit_bytes: int = ...) -> tuple[KeyRange, ...]:
        """The table in slices; see `TableClient.compute_splits`."""
        ...


class Scan:
    """One side of a slice: its pages, and where in the current one the next row begins."""

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
        """Whether no row is left."""
        return self.offset >= len(self.page) and self._start is None

    @property
    def hungry(self) -> bool:
        """Whether the next page has to be read before the next row is known."""
        return self.offset >= len(self.page) and self._start is not None

    def ask(self) -> None:
        """Have the next page on the way, if there is one."""
        if self._ahead is None and self._start is not None:
            call = self._client.get_range(self._table, self._start, self._end, max_versions=self._max_versions)
            self._ahead = asyncio.ensure_future(call)

    async def fill(self) -> None:
        """Take pages until there is a row or none is left; filtered or expired rows make empty pages."""
        while self.hungry:
            self.ask()
            assert self._ahead is not None
            answer = await self._ahead
            self._ahead = None
            self.page = answer.rows
            self.offset = check_header(answer.rows) if answer.rows else 0
            self._start = answer.next_start
            self.ask()

    def row(self) -> RowSpan:
        """The next row, which stays the next one."""
        return scan_row(self.page, self.offset)

    async def close(self) -> None:
        """Give up the page that is on the way."""
        if self._ahead is not None:
            self._ahead.cancel()
            await asyncio.gather(self._ahead, return_exceptions=True)
            self._ahead = None


#: Told of every row that differs: how, and what each table holds of it.
OnDifference = Callable[[Difference, RowSpan | None, RowSpan | None, RowDifferences], None]


class ScanPair:
    """Both sides of a slice.

    Args:
        result: rows, cells, versions and what is left out are counted here; differing rows are told to `differs`.
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
        """Compare rows until one side has to read on; False when both are at their end.

        Raises:
            ServiceError, TransportError: a scan failed for good.
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
        """Give up what is on the way."""
        await self._a.close()
        await self._b.close()

    def _merge(self) -> None:
        a, b = self._a, self._b
        while not (a.hungry or b.hungry or (a.exhausted and b.exhausted)):
            if a.exhausted:
                self._take_extra(b.row())
                continue
            if self._skip_equal():
                continue
            row = a.row()
            length = row.end - a.offset
            if b.page[b.offset : b.offset + length] == a.page[a.offset : row.end]:
                # A row says its own length, so equal bytes at both places are equal rows.
                b.offset += length
                self._count(row)
            elif b.exhausted:
                self._take_missing(row)
            elif not self._compare_unequal(row):
                continue
            a.offset = row.end

    def _skip_equal(self) -> bool:
        """Count the rows that follow alike in both pages; False when the next one has to be looked at."""
        size, rows, cells, versions = match_rows(self._a.page, self._a.offset, self._b.page, self._b.offset)
        self._a.offset += size
        self._b.offset += size
        self._result.rows += rows
        self._result.cells += cells
        self._result.versions += versions
        return rows > 0

    def _compare_unequal(self, row: RowSpan) -> bool:
        """Compare a row with the other side's next one of other bytes; False when that one comes before it."""
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
    """Count differing rows in a comparison and keep the first ones."""

    def record(kind: Difference, first: RowSpan | None, second: RowSpan | None, differences: RowDifferences) -> None:
        result.count(kind)
        if not result.keeps_more:
            return
        row = first or second
        assert row is not None
        cells = show_cells(first, second, differences) if first is not None and second is not None else ()
        result.first.append(
            DifferingRow(kind, decode_key_cells(row.key), cells, len(differences.versions) - len(cells))
        )

    return record


def sort_key(key: bytes) -> tuple[int | bytes, ...]:
    """What sorts key cells as the service does: integers by value, strings and binaries by bytes."""
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
