"""One page of a range of rows (docs/data-plane.md 2.2, 2.6)."""

from __future__ import annotations

from typing import NamedTuple

from ots_emulator.api.rows.capacity import read_bytes, version_bytes
from ots_emulator.api.rows.projection import Projection
from ots_emulator.api.rows.wide_rows import cut_row
from ots_emulator.refusal import Refusal
from ots_emulator.settings import Settings
from ots_emulator.tables.keys import Key
from ots_emulator.tables.table import Table


class Span(NamedTuple):
    """Start of a page (inclusive) and end of its range (exclusive)."""

    start: Key
    end: Key
    backward: bool


class Page(NamedTuple):
    """Rows of one answer; the next one starts at `following`, inside that row if there is a `token`."""

    rows: list[bytes]
    size_bytes: int
    following: Key | None = None
    token: bytes | None = None


def read_page(
    table: Table, span: Span, projection: Projection, limit: int | None, token: bytes, settings: Settings, now_ms: int
) -> Page:
    """Return one page of rows without header.

    Args:
        table: the table or a transaction's copy.
        span: range of keys.
        projection: selection of each row.
        limit: most rows, None for as many as fit; rows that a filter leaves out do not count.
        token: start inside the first row, empty for its beginning.
        settings: limits of an answer.
        now_ms: the service's time.
    """
    stored = table.options.max_versions
    as_stored = projection.is_whole(stored, single=False)
    single_as_stored = projection.is_whole(stored, single=True)
    most_rows, most_bytes = settings.range_rows, settings.range_bytes
    version = version_bytes(table.options)
    scan = table.scan(span.start, span.end, now_ms, backward=span.backward)
    rows: list[bytes] = []
    size = 0
    for scanned, (key, image) in enumerate(scan, 1):
        row: bytes | None = image
        if not as_stored and not (single_as_stored and table.single_versions(key)):
            try:
                row = projection.apply(image, table.schema.names)
            except Refusal:
                if scanned == 1 or projection.work.left >= 0:
                    raise
                # A page ends before a row for which its expressions have no work left: the next one begins with it.
                return Page(rows, read_bytes(rows, version), key)
            # And where they have done much, which costs less than the part of a row.
            most_rows = scanned if projection.work.is_low else most_rows
        if row is not None and (token or len(row) > most_bytes):
            row, behind = cut_row(row, most_bytes, token if key == span.start else b"")
            if behind is not None:
                rows.append(row)
                return Page(rows, read_bytes(rows, version), key, behind)
        token = b""
        if row is not None:
            rows.append(row)
        # A scan costs the stored size, not the selected one.
        size += len(image)
        if scanned >= most_rows or size >= most_bytes or len(rows) == limit:
            return Page(rows, read_bytes(rows, version), next((following for following, _ in scan), None))
    return Page(rows, read_bytes(rows, version))
