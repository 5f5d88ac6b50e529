"""What the rows of a Parquet file are: the change log, or typed rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from ots_tunnel.model import ChannelId, PrimaryKey
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.files.rows.arrow_rows import schema_of
from ots_tunnel.sinks.files.rows.change_columns import TWIN_BYTES, change_batches
from ots_tunnel.sinks.files.rows.declared import Declared
from ots_tunnel.sinks.files.rows.typed_columns import typed_batches
from ots_tunnel.sinks.files.rows.typed_rows import typed_schema

_CELL = "cells.list.element."
#: Columns whose values repeat: each value is in the file once, and a row has its number. Numbers repeat too seldom.
REPEATING = (
    *("action", "channel"),
    *(_CELL + name for name in ("name", "operation", "type", "version", "value.string")),
)
_TYPED_REPEATING = ("deleted.list.element", *(f"others.key_value.{name}" for name in ("key", "value.string")))
#: Columns, beside the key, whose smallest and largest value is in the file, so that readers can skip groups of rows.
#: The values of all cells lie in one column: theirs say nothing.
PRUNING = ("action", "sequence.epoch", "sequence.timestamp_us", "sequence.row_index")


class RowForm(Protocol):
    """A way to make rows of records; all have the column `key`."""

    def schema(self, key: PrimaryKey) -> pa.Schema:
        """The schema of a table's rows, from any of its keys.

        Raises:
            CodecError: a key holds a value that a stored key cannot have.
        """
        ...

    def batches(
        self, records: Sequence[Record], channel_id: ChannelId, schema: pa.Schema, most: int = TWIN_BYTES
    ) -> Iterator[pa.RecordBatch]:
        """The rows of records, in their order.

        Args:
            most: bytes of a batch, during which no other thread runs.

        Raises:
            CodecError: a record is malformed, or its key has other columns; some of those before it have been given.
        """
        ...

    def repeating(self) -> Sequence[str]:
        """Columns that get a dictionary."""
        ...

    def pruning(self) -> Sequence[str]:
        """Columns, beside the key, whose bounds are in the file."""
        ...


class ChangeLogForm:
    """Every cell of a record in one column."""

    def schema(self, key: PrimaryKey) -> pa.Schema:
        """See `RowForm.schema`."""
        return schema_of(key)

    def batches(
        self, records: Sequence[Record], channel_id: ChannelId, schema: pa.Schema, most: int = TWIN_BYTES
    ) -> Iterator[pa.RecordBatch]:
        """See `RowForm.batches`."""
        return change_batches(records, channel_id, schema, most)

    def repeating(self) -> Sequence[str]:
        """See `RowForm.repeating`."""
        return REPEATING

    def pruning(self) -> Sequence[str]:
        """See `RowForm.pruning`."""
        return PRUNING


@dataclass(frozen=True, slots=True)
class TypedForm:
    """A column for each declared attribute."""

    declared: Declared

    def schema(self, key: PrimaryKey) -> pa.Schema:
        """See `RowForm.schema`."""
        return typed_schema(key, self.declared)

    def batches(
        self, records: Sequence[Record], channel_id: ChannelId, schema: pa.Schema, most: int = TWIN_BYTES
    ) -> Iterator[pa.RecordBatch]:
        """See `RowForm.batches`."""
        return typed_batches(records, channel_id, schema, self.declared, most)

    def repeating(self) -> Sequence[str]:
        """See `RowForm.repeating`; a version is mostly that of the rows around it."""
        texts = (name for name, kind in self.declared.types.items() if kind == "string")
        return (*REPEATING, *_TYPED_REPEATING, "version", *texts)

    def pruning(self) -> Sequence[str]:
        """See `RowForm.pruning`.

        Arrow leaves NaN out of the bounds of doubles, and readers would skip groups whose rows of it fit: `price > 100`
        in Spark, for which NaN is the greatest value, and `price <> 1.5` everywhere.
        """
        return (*PRUNING, *(name for name, kind in self.declared.types.items() if kind != "double"))
