"""Rows from changes, or from stored rows, in tasks of Python: what `fold` and `arrow_fold` decide.

Both give the same columns: `key`, as the changes have it; `row`, a map of attributes to values, NULL where the row is
gone; and `versions`, a map of attributes to the versions of these values.

Changes of one key have to come one after the other, in their order; a key may go on in the next batch of Arrow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from ots_tunnel.model import Action, CellOp, ChannelId
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.record import Record
from ots_tunnel.spark.lake.arrow_fold import divided, fold_puts, runs_of
from ots_tunnel.spark.lake.fold import Row, after
from ots_tunnel.spark.stream.rows import KEY_SAMPLES

if TYPE_CHECKING:
    import pyarrow as pa

#: Rows of a batch of Arrow, and bytes of names and values after which it ends: a column of it holds 2 GiB at most, and
#: a row may have megabytes. Own choice.
BATCH_ROWS: Final = 4096
BATCH_BYTES: Final = 16 << 20


def folded(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """One row for each key; batches have `action`, `key` and `cells` of the change log.

    Raises:
        CodecError: a cell is none that a stream has.
    """
    held: pa.RecordBatch | None = None
    for batch in batches:
        if not len(batch):
            continue
        changes = batch if held is None else _joined(held, batch)
        # the last key may go on in the next batch
        runs = runs_of(changes.column("key"))
        begins = runs.index(runs[-1]).as_py()
        held = changes.slice(begins)
        yield from _rows(changes.slice(0, begins))
    if held is not None:
        yield from _rows(held)


def decoded(batches: Iterable[pa.RecordBatch], key: Sequence[tuple[str, str]]) -> Iterator[pa.RecordBatch]:
    """The stored rows of `spark.read` in raw mode, whose newest versions alone are kept.

    Args:
        key: name and type in Spark of each column of the key.

    Raises:
        CodecError: a row is malformed.
    """
    from ots_tunnel.sinks.files.rows.arrow_rows import schema_of
    from ots_tunnel.sinks.files.rows.change_columns import change_batches

    schema = schema_of(tuple((name, KEY_SAMPLES[word]) for name, word in key))
    for batch in batches:
        images = batch.column("row").to_pylist()
        puts = [Record(Action.PUT, image) for image in images if image]  # an empty one is the end of a split
        for first in range(0, len(puts), BATCH_ROWS):
            for changes in change_batches(puts[first : first + BATCH_ROWS], ChannelId(""), schema, BATCH_BYTES):
                yield from _rows(changes)


def _joined(*batches: pa.RecordBatch) -> pa.RecordBatch:
    import pyarrow as pa

    (whole,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return whole


def _rows(changes: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The rows after changes, of which none follows for their keys."""
    if not len(changes):
        return
    puts, others = divided(changes)
    if len(puts):
        yield fold_puts(puts)
    if len(others):
        yield from _batches(_folded_one_by_one(others), changes.schema.field("key").type)


def _folded_one_by_one(changes: pa.RecordBatch) -> Iterator[tuple[Any, Row]]:
    key, row = None, None
    for change in changes.to_pylist():
        if key != change["key"]:
            if key is not None:
                yield key, row
            key, row = change["key"], None
        row = after(row, Action[change["action"]], [_column(cell) for cell in change["cells"] or ()])
    yield key, row


def _batches(rows: Iterator[tuple[Any, Row]], kind: pa.DataType) -> Iterator[pa.RecordBatch]:
    keys: list[Any] = []
    found: list[Row] = []
    size = 0
    for key, row in rows:
        keys.append(key)
        found.append(row)
        size += _size(row)
        if len(keys) == BATCH_ROWS or size >= BATCH_BYTES:
            yield _batch(keys, found, kind)
            keys, found, size = [], [], 0
    if keys:
        yield _batch(keys, found, kind)


def _size(row: Row) -> int:
    """Bytes of its names and values, about."""
    if row is None:
        return 0
    return sum(len(name) + (len(value) if isinstance(value, (str, bytes)) else 8) for name, (value, _) in row.items())


def _batch(keys: Sequence[Any], rows: Sequence[Row], kind: pa.DataType) -> pa.RecordBatch:
    import pyarrow as pa

    from ots_tunnel.sinks.files.rows.arrow_rows import VALUE, VALUE_TYPES

    values = [
        None if row is None else [(name, {VALUE_TYPES[type(cell.value)][0]: cell.value}) for name, cell in row.items()]
        for row in rows
    ]
    versions = [None if row is None else [(name, cell.version) for name, cell in row.items()] for row in rows]
    return pa.RecordBatch.from_pydict(
        {
            "key": pa.array(keys, kind),
            "row": pa.array(values, pa.map_(pa.string(), VALUE)),
            "versions": pa.array(versions, pa.map_(pa.string(), pa.int64())),
        }
    )


def _column(cell: dict[str, Any]) -> Column:
    value = None if cell["type"] is None else cell["value"][cell["type"]]
    return Column(cell["name"], value, cell["version"], CellOp[cell["operation"]])
