"""Pages of a split as Arrow batches, raw or typed. Runs on executors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ots_tunnel.model import PrimaryKey

if TYPE_CHECKING:
    import pyarrow as pa

    from ots_tunnel.client.table import RangePage, SyncTableClient


def read_pages(
    client: SyncTableClient,
    table: str,
    start: PrimaryKey,
    end: PrimaryKey,
    max_versions: int,
    *,
    columns: Sequence[str] = (),
) -> Iterator[RangePage]:
    """Every page from `start` (inclusive) to `end` (exclusive).

    An empty page need not be the last one (docs/data-plane.md 2.6).

    Args:
        columns: see `client.table_calls.get_range_request`.
    """
    following: PrimaryKey | None = start
    while following is not None:
        page = client.get_range(table, following, end, max_versions=max_versions, columns=columns)
        yield page
        following = page.next_start


def asked_columns(key: PrimaryKey, columns: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """The columns to ask the service for; none, which are all, where they are more than it takes.

    The first column of the key is always among them: without it the service leaves out rows that have none of the
    others.
    """
    from ots_tunnel.client.table_calls import MAX_COLUMNS

    names = dict.fromkeys((key[0][0], *(name for name, _ in columns)))
    return tuple(names) if len(names) <= MAX_COLUMNS else ()


def pages_of_all_versions(
    client: SyncTableClient, table: str, start: PrimaryKey, end: PrimaryKey, max_versions: int
) -> Iterator[RangePage]:
    """Every page from `start` to `end`, again as long as the table keeps more versions than were asked for.

    A table may be told to keep more versions while it is copied, and older versions of its rows are in no stream. A row
    that was read before that was whole; one that was read later may not be. So the table is described after the rows.

    Args:
        max_versions: versions that the table kept when the job was planned.
    """
    while True:
        yield from read_pages(client, table, start, end, max_versions)
        found = client.describe_table(table).max_versions
        if found <= max_versions:
            return
        max_versions = found


def raw_batches(index: int, pages: Iterable[RangePage]) -> Iterator[pa.RecordBatch]:
    """Rows as bytes, each with a PlainBuffer header, then an empty row that marks the end of the split."""
    from ots_tunnel.protocol.plainbuffer.offsets import split_rows
    from ots_tunnel.protocol.plainbuffer.tags import HEADER
    from ots_tunnel.spark.columns import COLUMN_TYPES, build_batch

    integers, binary = COLUMN_TYPES["bigint"], COLUMN_TYPES["binary"]
    for page in pages:
        rows = [HEADER + row for row in split_rows(page.rows)]
        if rows:
            yield build_batch((("split", integers, [index] * len(rows)), ("row", binary, rows)))
    yield build_batch((("split", integers, [index]), ("row", binary, [b""])))


def typed_batches(
    columns: Sequence[tuple[str, str]], pages: Iterable[RangePage], on_conflict: str = "error"
) -> Iterator[pa.RecordBatch]:
    """The requested columns of every row; the pages were read with one version per column, the latest.

    Args:
        on_conflict: what becomes of a value of another type than its column: `error`; `null`; or `string`, which is a
            text of it in a column of strings, and an error in others.

    Raises:
        CodecError: a row is malformed, or a value has another type than its column.
    """
    from ots_tunnel.spark.columns import compiled_batch

    for page in pages:
        batch = compiled_batch(columns, page.rows)
        if batch is None:
            batch = batch_by_reference(columns, page.rows, on_conflict)
        if batch.num_rows:
            yield batch


class Observed:
    """Batches on their way; counts their rows and the columns that had a value."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._batches = batches
        self.rows = 0
        self.columns: set[str] = set()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Every batch, unchanged."""
        for batch in self._batches:
            self.rows += batch.num_rows
            for name in batch.schema.names:
                if name not in self.columns and batch.column(name).null_count < batch.num_rows:
                    self.columns.add(name)
            yield batch


def batch_by_reference(columns: Sequence[tuple[str, str]], rows: bytes, on_conflict: str = "error") -> pa.RecordBatch:
    """The requested columns of the rows of a page, by way of Python objects; arguments as in `typed_batches`.

    Raises:
        CodecError: see `typed_batches`.
    """
    from ots_tunnel.protocol.plainbuffer.codec import decode_rows
    from ots_tunnel.spark.columns import COLUMN_TYPES, build_batch, converted

    decoded: list[dict[str, Any]] = []
    for row in decode_rows(rows):
        values: dict[str, Any] = {column.name: column.value for column in row.columns}
        values.update(row.primary_key)
        decoded.append(values)
    wanted = []
    for name, kind in columns:
        found = [row.get(name) for row in decoded]
        wanted.append((name, COLUMN_TYPES[kind], converted(COLUMN_TYPES[kind], found, on_conflict)))
    return build_batch(wanted)
