"""Rows of pages, cut into requests, each with the key where a copy resumes behind it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ots_tunnel.client.table_calls import RangePage
from ots_tunnel.model import PrimaryKey
from ots_tunnel.protocol.plainbuffer.codec import decode_row
from ots_tunnel.protocol.plainbuffer.offsets import rows_of_page
from ots_tunnel.sinks.grouping import Limits
from ots_tunnel.sinks.table.row_change import ENVELOPE_BYTES


def rows_of_requests(pages: Iterable[RangePage], limits: Limits) -> Iterator[tuple[list[bytes], PrimaryKey | None]]:
    """Rows that fit in one request, each with its header, and the key of the row behind them; None behind the last.

    A row that is larger than a request comes alone. An empty page need not be the last one: it gives no rows, and the
    key where the next page starts.

    Raises:
        CodecError: a page is malformed.
    """
    for page in pages:
        rows = rows_of_page(page.rows)
        start, end = 0, _end_of_request(rows, 0, limits)
        while end < len(rows):
            yield rows[start:end], decode_row(rows[end]).primary_key
            start, end = end, _end_of_request(rows, end, limits)
        yield rows[start:end], page.next_start


def _end_of_request(rows: Sequence[bytes], start: int, limits: Limits) -> int:
    size, end = 0, start
    while end < len(rows) and end - start < limits.max_rows:
        size += len(rows[end]) + ENVELOPE_BYTES
        if end > start and size > limits.max_bytes:
            break
        end += 1
    return end
