"""Changes as Parquet: one fixed schema, in which only the key's columns differ from table to table (design section 4).

    action    string            PUT, UPDATE or DELETE
    channel   string
    sequence  struct            epoch, timestamp_us, row_index; null for rows that existed already
    key       struct            one field per key column: int64, string or binary
    cells     list of struct    name, operation, type, version (ms), value

A value is a struct with one member per type, of which at most one is set, because Parquet has no unions.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from ots_tunnel.errors import CodecError
from ots_tunnel.model import ChannelId, Column, KeyValue, PrimaryKey
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.files.formats import FileWriter

#: A row group is written when so many bytes are held for it, or when so many are held for all files together: what is
#: held is confirmed later, and the worker's memory budget does not count it.
ROW_GROUP_BYTES = 8_388_608
HELD_BYTES = 16_777_216

SEQUENCE = pa.struct([("epoch", pa.int64()), ("timestamp_us", pa.int64()), ("row_index", pa.int64())])
VALUE_TYPES: dict[type, tuple[str, pa.DataType]] = {
    int: ("integer", pa.int64()),
    float: ("double", pa.float64()),
    bool: ("boolean", pa.bool_()),
    str: ("string", pa.string()),
    bytes: ("binary", pa.binary()),
}
VALUE = pa.struct(list(VALUE_TYPES.values()))
CELL = pa.struct(
    [
        ("name", pa.string()),
        ("operation", pa.string()),
        ("type", pa.string()),
        ("version", pa.int64()),
        ("value", VALUE),
    ]
)
_KEY_TYPES: dict[type, pa.DataType] = {int: pa.int64(), str: pa.string(), bytes: pa.binary()}


def schema_of(primary_key: PrimaryKey) -> pa.Schema:
    """The schema of a table's changes, from any key of it.

    Raises:
        CodecError: a stored key holds no plain value.
    """
    key = pa.struct([(name, _key_type(name, value)) for name, value in primary_key])
    return pa.schema(
        [
            ("action", pa.string()),
            ("channel", pa.string()),
            ("sequence", SEQUENCE),
            ("key", key),
            ("cells", pa.list_(CELL)),
        ]
    )


def _key_type(name: str, value: KeyValue) -> pa.DataType:
    if type(value) not in _KEY_TYPES:
        raise CodecError(f"key column {name!r}: found {type(value).__name__}, allowed are int, str and bytes")
    return _KEY_TYPES[type(value)]


class Parquet:
    """Changes in Parquet.

    Args:
        compression: of pages: none, gzip or zstd.
    """

    suffix = "parquet"

    def __init__(self, compression: str = "none") -> None:
        self._compression = compression.upper()
        self._shared = _Shared()

    @property
    def held_bytes(self) -> int:
        """Of rows that are in no file yet."""
        return self._shared.held_bytes()

    def create(self, path: Path) -> FileWriter[Record]:
        """See `FileFormat.create`."""
        return _ParquetWriter(path, self._compression, self._shared)

    def first_key(self, file: IO[bytes]) -> PrimaryKey:
        """See `FileFormat.first_key`."""
        try:
            groups = pq.ParquetFile(file).iter_batches(batch_size=1, row_groups=[0], columns=["key"])
            return tuple(next(groups).column("key")[0].as_py().items())
        except (pa.ArrowException, KeyError, StopIteration, AttributeError, OSError) as error:
            raise CodecError(f"no file of changes in Parquet: {error}") from error


class _Shared:
    """What the files of a sink share.

    One thread encodes for all: it takes several times the memory of what is encoded, and Arrow keeps some of it for
    every thread that had it.
    """

    def __init__(self) -> None:
        self.thread = ThreadPoolExecutor(1, "parquet")
        #: Used by the thread alone; one that was abandoned counts until it is gone.
        self.writers: weakref.WeakSet[_ParquetWriter] = weakref.WeakSet()

    def held_bytes(self) -> int:
        return sum(writer.held_bytes for writer in self.writers)


class _ParquetWriter:
    def __init__(self, path: Path, compression: str, shared: _Shared) -> None:
        self._path = path
        self._compression = compression
        self._writer: pq.ParquetWriter | None = None
        self._batches: list[pa.RecordBatch] = []
        self._shared = shared
        self.held_bytes = 0

    def write(self, items: Sequence[Record], channel_id: ChannelId) -> None:
        self._shared.thread.submit(self._write, items, channel_id).result()

    def close(self) -> None:
        self._shared.thread.submit(self._close).result()

    def _write(self, items: Sequence[Record], channel_id: ChannelId) -> None:
        self._shared.writers.add(self)
        rows = _Rows()
        for record in items:
            rows.add(record, channel_id)
            if rows.size >= ROW_GROUP_BYTES:
                self._hold(rows)
                rows = _Rows()
        if rows.actions:
            self._hold(rows)

    def _close(self) -> None:
        if self._batches:
            self._write_group()
        if self._writer is not None:
            self._writer.close()

    def _hold(self, rows: _Rows) -> None:
        # As arrays at once: rows as objects would take several times as much.
        if self._writer is None:
            schema = schema_of(rows.keys[0])
            self._writer = pq.ParquetWriter(self._path, schema, compression=self._compression)
        batch = rows.batch(self._writer.schema)
        self._batches.append(batch)
        self.held_bytes += batch.nbytes
        if self.held_bytes >= ROW_GROUP_BYTES or self._shared.held_bytes() >= HELD_BYTES:
            self._write_group()

    def _write_group(self) -> None:
        assert self._writer is not None
        table = pa.Table.from_batches(self._batches, self._writer.schema)
        self._batches = []
        self._writer.write_table(table, row_group_size=len(table))
        self.held_bytes = 0


@dataclass(slots=True)
class _Rows:
    """Rows of a group, column by column."""

    actions: list[str] = field(default_factory=list)
    channels: list[str] = field(default_factory=list)
    sequences: list[dict[str, int] | None] = field(default_factory=list)
    keys: list[PrimaryKey] = field(default_factory=list)
    cells: list[Column] = field(default_factory=list)
    cell_counts: list[int] = field(default_factory=list)
    size: int = 0

    def add(self, record: Record, channel_id: ChannelId) -> None:
        sequence, columns = record.sequence, record.columns
        self.actions.append(record.action.name)
        self.channels.append(channel_id)
        self.sequences.append(
            None
            if sequence is None
            else {"epoch": sequence.epoch, "timestamp_us": sequence.timestamp_us, "row_index": sequence.row_index}
        )
        self.keys.append(record.primary_key)
        self.cells.extend(columns)
        self.cell_counts.append(len(columns))
        self.size += record.size

    def batch(self, schema: pa.Schema) -> pa.RecordBatch:
        offsets = pa.array(accumulate(self.cell_counts, initial=0), pa.int32())
        columns = [
            pa.array(self.actions, pa.string()),
            pa.array(self.channels, pa.string()),
            pa.array(self.sequences, SEQUENCE),
            self._key_array(schema.field("key").type),
            pa.ListArray.from_arrays(offsets, _cell_array(self.cells)),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def _key_array(self, kind: pa.StructType) -> pa.Array:
        try:
            members = [
                pa.array([key[index][1] for key in self.keys], kind.field(index).type)
                for index in range(kind.num_fields)
            ]
        except (pa.ArrowException, IndexError) as error:
            raise CodecError(f"a key does not fit the table's: {error}") from error
        return pa.StructArray.from_arrays(members, fields=list(kind))


def _cell_array(cells: Sequence[Column]) -> pa.Array:
    kinds = [type(cell.value) for cell in cells]
    members: list[Any] = [
        pa.array([cell.value if found is kind else None for cell, found in zip(cells, kinds, strict=True)], arrow)
        for kind, (_, arrow) in VALUE_TYPES.items()
    ]
    empty = pa.array([cell.value is None for cell in cells], pa.bool_())
    return pa.StructArray.from_arrays(
        [
            pa.array([cell.name for cell in cells], pa.string()),
            pa.array([cell.op.name for cell in cells], pa.string()),
            pa.array([VALUE_TYPES[kind][0] if kind in VALUE_TYPES else None for kind in kinds], pa.string()),
            pa.array([cell.timestamp_ms for cell in cells], pa.int64()),
            pa.StructArray.from_arrays(members, fields=list(VALUE), mask=empty),
        ],
        fields=list(CELL),
    )
