"""Pages of a split as Arrow batches, raw or typed. Runs on executors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ots_tunnel.errors import CodecError
from ots_tunnel.model import PrimaryKey, Value

if TYPE_CHECKING:
    import pyarrow as pa

    from ots_tunnel.client.table import RangePage


def asked_columns(key: PrimaryKey, columns: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """The columns to ask the service for; none, which are all, where they are more than it takes.

    The first column of the key is always among them: without it the service leaves out rows that have none of the
    others.
    """
    from ots_tunnel.client.table_calls import MAX_COLUMNS

    names = dict.fromkeys((key[0][0], *(name for name, _ in columns)))
    return tuple(names) if len(names) <= MAX_COLUMNS else ()


def raw_batches(index: int, pages: Iterable[RangePage]) -> Iterator[pa.RecordBatch]:
    """Rows as bytes, each with a PlainBuffer header, then an empty row that marks the end of the split."""
    from ots_tunnel.protocol.plainbuffer.offsets import rows_of_page
    from ots_tunnel.spark.columns import COLUMN_TYPES, build_batch

    integers, binary = COLUMN_TYPES["bigint"], COLUMN_TYPES["binary"]
    for page in pages:
        rows = rows_of_page(page.rows)
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
        CodecError: a row is malformed, or a value has another type than its column; names column, types and key.
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
    from ots_tunnel.spark.columns import COLUMN_TYPES, build_batch, converted, first_misfit

    decoded: list[dict[str, Any]] = []
    keys: list[PrimaryKey] = []
    for row in decode_rows(rows):
        keys.append(row.primary_key)
        values: dict[str, Any] = {column.name: column.value for column in row.columns}
        values.update(row.primary_key)
        decoded.append(values)
    wanted = []
    for name, kind in columns:
        found = converted(COLUMN_TYPES[kind], [row.get(name) for row in decoded], on_conflict)
        if (misfit := first_misfit(COLUMN_TYPES[kind], found)) is not None:
            raise _wrong_type(name, kind, found[misfit], keys[misfit])
        wanted.append((name, COLUMN_TYPES[kind], found))
    return build_batch(wanted)


def _wrong_type(name: str, kind: str, value: Value, key: PrimaryKey) -> CodecError:
    """The error of a value, which it does not show."""
    from ots_tunnel.sinks.key_text import primary_key_text
    from ots_tunnel.spark.columns import KIND_OF

    return CodecError(
        f"column {name!r}: found {KIND_OF[type(value)]} in the row {primary_key_text(key)}, the schema says {kind}; "
        "allowed is that type, or option 'onTypeConflict'"
    )
