"""Changes as rows of Arrow, in one schema: only the columns of the key differ from table to table.

    action    string            PUT, UPDATE or DELETE
    channel   string
    sequence  struct            epoch, timestamp_us, row_index; null for rows that existed already
    key       struct            one field per key column: int64, string or binary
    cells     list of struct    name, operation, type, version (ms), value

A value is a struct with one member per type, of which at most one is set, because Parquet has no unions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import pyarrow as pa

from ots_tunnel.errors import CodecError
from ots_tunnel.model import Action, CellOp, ChannelId, KeyValue, PrimaryKey, Value
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.files.rows.coded_texts import by_code, text_array

SEQUENCE = pa.struct([("epoch", pa.int64()), ("timestamp_us", pa.int64()), ("row_index", pa.int64())])
VALUE_TYPES: dict[type, tuple[str, pa.DataType]] = {
    int: ("integer", pa.int64()),
    float: ("double", pa.float64()),
    bool: ("boolean", pa.bool_()),
    str: ("string", pa.string()),
    bytes: ("binary", pa.binary()),
}
VALUE = pa.struct(list(VALUE_TYPES.values()))
#: Texts by their codes, which are the wire's numbers, or places in VALUE_TYPES.
ACTIONS, OPERATIONS, TYPES = by_code(Action), by_code(CellOp), tuple(name for name, _ in VALUE_TYPES.values())
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
    """The schema of a table's changes, from any of its keys.

    Raises:
        CodecError: a key holds a value that a stored key cannot have.
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


@dataclass(slots=True)
class ArrowRows:
    """Rows of a group, column by column; `size` is the size of their records, bytes."""

    actions: list[str] = field(default_factory=list)
    channels: list[str] = field(default_factory=list)
    sequences: list[dict[str, int] | None] = field(default_factory=list)
    keys: list[PrimaryKey] = field(default_factory=list)
    cells: list[Column] = field(default_factory=list)
    cell_counts: list[int] = field(default_factory=list)
    size: int = 0

    def add(self, record: Record, channel_id: ChannelId) -> None:
        """Append a record.

        Raises:
            CodecError: the record is malformed.
        """
        self.add_row(record, channel_id, record.decode_columns())

    def add_row(self, record: Record, channel_id: ChannelId, cells: Sequence[Column]) -> None:
        """Append a record with these of its cells.

        Raises:
            CodecError: the record is malformed.
        """
        sequence = record.sequence
        self.actions.append(record.action.name)
        self.channels.append(channel_id)
        self.sequences.append(
            None
            if sequence is None
            else {"epoch": sequence.epoch, "timestamp_us": sequence.timestamp_us, "row_index": sequence.row_index}
        )
        self.keys.append(record.primary_key)
        self.cells.extend(cells)
        self.cell_counts.append(len(cells))
        self.size += record.size

    def batch(self, schema: pa.Schema) -> pa.RecordBatch:
        """Return all rows as arrays.

        Args:
            schema: made by `schema_of`, or `coded`.

        Raises:
            CodecError: a key has other columns than the schema.
        """
        arrays = self.arrays(schema)
        return pa.RecordBatch.from_arrays([arrays[name] for name in schema.names], schema=schema)

    def arrays(self, schema: pa.Schema) -> dict[str, pa.Array]:
        """Return the array of each column that the change log has.

        Raises:
            CodecError: a key has other columns than the schema.
        """
        offsets = pa.array(accumulate(self.cell_counts, initial=0), pa.int32())
        channels = tuple(dict.fromkeys(self.channels))
        return {
            "action": text_array(self.actions, ACTIONS, schema.field("action").type),
            "channel": text_array(self.channels, channels, schema.field("channel").type),
            "sequence": pa.array(self.sequences, SEQUENCE),
            "key": self._key_array(schema.field("key").type),
            "cells": pa.ListArray.from_arrays(offsets, _cell_array(self.cells, schema.field("cells").type.value_type)),
        }

    def _key_array(self, kind: pa.StructType) -> pa.Array:
        wanted = tuple(field.name for field in kind)
        for key in self.keys:
            found = tuple(name for name, _ in key)
            if found != wanted:
                # by its place alone a value would come under another column's name, and one more would be left out
                raise CodecError(
                    f"a key does not fit the table's: found {', '.join(found)}, allowed are {', '.join(wanted)}"
                )
        try:
            members = [
                pa.array([key[index][1] for key in self.keys], kind.field(index).type)
                for index in range(kind.num_fields)
            ]
        except pa.ArrowException as error:
            raise CodecError(f"a key does not fit the table's: {error}") from error
        return pa.StructArray.from_arrays(members, fields=list(kind))


def value_array(values: Sequence[Value | None]) -> pa.Array:
    """Values as structs; None becomes null."""
    kinds = [type(value) for value in values]
    members: list[Any] = [
        pa.array([value if found is kind else None for value, found in zip(values, kinds, strict=True)], arrow)
        for kind, (_, arrow) in VALUE_TYPES.items()
    ]
    empty = pa.array([value is None for value in values], pa.bool_())
    return pa.StructArray.from_arrays(members, fields=list(VALUE), mask=empty)


def _cell_array(cells: Sequence[Column], kind: pa.StructType) -> pa.Array:
    types = [VALUE_TYPES[found][0] if found in VALUE_TYPES else None for found in (type(cell.value) for cell in cells)]
    return pa.StructArray.from_arrays(
        [
            pa.array([cell.name for cell in cells], pa.string()),
            text_array([cell.op.name for cell in cells], OPERATIONS, kind.field("operation").type),
            text_array(types, TYPES, kind.field("type").type),
            pa.array([cell.timestamp_ms for cell in cells], pa.int64()),
            value_array([cell.value for cell in cells]),
        ],
        fields=list(kind),
    )
