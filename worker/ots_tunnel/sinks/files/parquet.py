"""Changes as Parquet, in the rows of a `RowForm`."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from ots_tunnel.errors import CodecError
from ots_tunnel.model import ChannelId, PrimaryKey
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.files.format import FileWriter
from ots_tunnel.sinks.files.held_rows import HeldRows
from ots_tunnel.sinks.files.rows.coded_texts import coded
from ots_tunnel.sinks.files.rows.row_form import ChangeLogForm, RowForm
from ots_tunnel.threads import DaemonThreads

#: A row group is written when the rows held for it reach ROW_GROUP_BYTES, or those held for all files HELD_BYTES: held
#: rows are not confirmed, and the worker's memory budget does not count them.
ROW_GROUP_BYTES = 2_097_152
HELD_BYTES = 6_291_456
#: Seconds for which the encoding thread waits for the next file: a new thread costs memory that Arrow does not return.
ENCODER_IDLE_SECONDS = 3600.0


class Parquet:
    """Changes in Parquet.

    Args:
        compression: of pages: none, gzip or zstd.
        form: what the rows are; None means the change log.
    """

    suffix = "parquet"

    def __init__(self, compression: str = "none", form: RowForm | None = None) -> None:
        self._compression = compression.upper()
        self._form = form or ChangeLogForm()
        self._shared = _Shared()

    @property
    def held_bytes(self) -> int:
        """Bytes of rows that are held and in no file yet."""
        return self._shared.held_bytes()

    def create(self, path: Path) -> FileWriter[Record]:
        """See `FileFormat.create`."""
        return _ParquetWriter(path, self._compression, self._form, self._shared)


def parquet_writer(path: Path, schema: pa.Schema, form: RowForm, compression: str) -> pq.ParquetWriter:
    """What encodes rows; its `schema` has codes in the place of texts (`coded_texts`).

    Args:
        schema: of the rows as they are read.
        compression: NONE, GZIP or ZSTD.
    """
    key = [f"key.{column.name}" for column in schema.field("key").type]
    return pq.ParquetWriter(
        path,
        coded(schema),
        compression=compression,
        use_dictionary=list(form.repeating()),
        write_statistics=[*form.pruning(), *key],
        # it would have readers of Arrow get codes in the place of texts; without it they find the types by themselves
        store_schema=False,
    )


def first_key_of_rows(file: IO[bytes]) -> PrimaryKey:
    """Key of the first record in a Parquet file of changes.

    Raises:
        CodecError: it is none. OSError: the disk failed.
    """
    try:
        groups = pq.ParquetFile(file).iter_batches(batch_size=1, row_groups=[0], columns=["key"])
        return tuple(next(groups).column("key")[0].as_py().items())
    except (pa.ArrowException, KeyError, StopIteration, AttributeError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # from the disk; those about the content, which pyarrow raises, have no number
        raise CodecError(f"not a Parquet file of changes: {error}") from error


class _Shared:
    """Parts that the files of a sink share.

    One thread encodes for all files. Encoding takes several times the memory of the rows, and Arrow keeps a part of it
    for every thread that has encoded.
    """

    def __init__(self) -> None:
        self.thread = DaemonThreads("parquet", 1, idle_seconds=ENCODER_IDLE_SECONDS)
        #: Used by the thread only; an abandoned writer counts until it is collected.
        self.writers: weakref.WeakSet[_ParquetWriter] = weakref.WeakSet()

    def held_bytes(self) -> int:
        return sum(writer.held_bytes for writer in self.writers)


class _ParquetWriter:
    def __init__(self, path: Path, compression: str, form: RowForm, shared: _Shared) -> None:
        self._path = path
        self._compression = compression
        self._form = form
        self._writer: pq.ParquetWriter | None = None
        self._held = HeldRows()
        self._shared = shared

    @property
    def held_bytes(self) -> int:
        return self._held.size

    def write(self, items: Sequence[Record], channel_id: ChannelId) -> None:
        self._shared.thread.submit(self._write, items, channel_id).result()

    def close(self) -> None:
        self._shared.thread.submit(self._close).result()

    def _write(self, items: Sequence[Record], channel_id: ChannelId) -> None:
        self._shared.writers.add(self)
        if self._writer is None and items:
            schema = self._form.schema(items[0].primary_key)
            self._writer = parquet_writer(self._path, schema, self._form, self._compression)
        if self._writer is not None:
            for batch in self._form.batches(items, channel_id, self._writer.schema):
                self._hold(batch, self._writer)

    def _close(self) -> None:
        if self._writer is not None:
            self._write_group(self._writer)
            self._writer.close()

    def _hold(self, batch: pa.RecordBatch, writer: pq.ParquetWriter) -> None:
        self._held.add(batch)
        if self._held.size >= ROW_GROUP_BYTES or self._shared.held_bytes() >= HELD_BYTES:
            self._write_group(writer)

    def _write_group(self, writer: pq.ParquetWriter) -> None:
        if len(self._held):
            rows = self._held.take()
            writer.write_table(rows, row_group_size=len(rows))
