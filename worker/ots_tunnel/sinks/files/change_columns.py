"""Records as Arrow arrays by the compiled twin: one pass over their bytes, without an object per record or cell.

The arrays are those of `arrow_rows`, which stays the reference and makes all of them where nothing was compiled. The
twin ends at a record that is not well-formed, or whose key is not of the file's columns. Such records go through the
reference, which raises the error or knows the rare case.

The twin fills buffers in the layout of Arrow, which pyarrow takes as they are. What has few values (action, operation,
type) is a code for each row; Arrow's own dictionaries turn it into text.

Example: of 1,000 records the 500th has an extension that the twin does not know. There are three batches: 499 rows of
the twin, one of the reference, 500 of the twin.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from ots_tunnel.model import Action, CellOp, ChannelId
from ots_tunnel.protocol.plainbuffer.compiled import native
from ots_tunnel.protocol.plainbuffer.tags import BLOB, INTEGER, STRING
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.files.arrow_rows import CELL, SEQUENCE, VALUE, VALUE_TYPES, ArrowRows

#: Memory of the twin, which is read by the buffer protocol; the only name of the type is in the compiled module.
Block = Any
#: Bytes of records that become arrays at a time, and no other thread runs meanwhile: by the reference, which takes many
#: times as much for them as objects, and by the twin.
REFERENCE_BYTES = 262_144
TWIN_BYTES = 524_288
#: Tags of the wire of what a key column may hold.
_KEY_TAGS = {pa.int64(): INTEGER, pa.string(): STRING, pa.binary(): BLOB}
#: Names by the codes of the twin, which are the wire's numbers, or places in VALUE_TYPES.
_ACTIONS = pa.array([Action(code).name if code in set(Action) else None for code in range(max(Action) + 1)])
_OPERATIONS = pa.array([CellOp(code).name if code in set(CellOp) else None for code in range(max(CellOp) + 1)])
_TYPES = pa.array([*(name for name, _ in VALUE_TYPES.values()), None])


class Validity(NamedTuple):
    """Bits of the twin: which entries are not null; `members` has those of each type of value."""

    sequences: Block
    versions: Block
    values: Block
    members: tuple[Block, ...]


class Filled(NamedTuple):
    """Buffers of the twin, for each record or for each cell; ends are offsets of texts or of the cells of a row."""

    actions: Block
    epochs: Block
    timestamps: Block
    row_indexes: Block
    cell_ends: Block
    name_ends: Block
    names: Block
    operations: Block
    types: Block
    versions: Block
    integers: Block
    doubles: Block
    booleans: Block
    string_ends: Block
    strings: Block
    binary_ends: Block
    binaries: Block


def change_batches(
    records: Sequence[Record], channel_id: ChannelId, schema: pa.Schema, most: int = TWIN_BYTES
) -> Iterator[pa.RecordBatch]:
    """Rows of the change log from records, in their order.

    Args:
        schema: made by `arrow_rows.schema_of`.
        most: bytes of records after which the twin ends a batch.

    Raises:
        CodecError: a record is malformed, or its key has other columns; some of those before it have been given.
    """
    found, key, at = list(records), _key_of(schema), 0
    others = ArrowRows()
    while at < len(found):
        columns, end = (None, at) if native is None else native.change_log(found, at, key, most)
        if others.actions and (columns is not None or others.size >= REFERENCE_BYTES):
            yield others.batch(schema)
            others = ArrowRows()
        if columns is None:
            others.add(found[at], channel_id)
            at += 1
        else:
            validity, filled, keys = columns
            yield _batch(Validity(*validity), Filled(*filled), keys, end - at, channel_id, schema)
            at = end
    if others.actions:
        yield others.batch(schema)


def _key_of(schema: pa.Schema) -> tuple[tuple[bytes, int], ...]:
    """Name and tag of each column of the key."""
    return tuple((column.name.encode(), _KEY_TAGS[column.type]) for column in schema.field("key").type)


def _batch(
    validity: Validity,
    filled: Filled,
    keys: Sequence[tuple[Block, Block]],
    count: int,
    channel_id: ChannelId,
    schema: pa.Schema,
) -> pa.RecordBatch:
    key = schema.field("key").type
    numbers = (filled.epochs, filled.timestamps, filled.row_indexes)
    sequences = [_array(pa.int64(), count, validity.sequences, column) for column in numbers]
    members = [_values(column.type, count, *buffers) for column, buffers in zip(key, keys, strict=True)]
    return pa.RecordBatch.from_arrays(
        [
            _named(_ACTIONS, count, filled.actions),
            pa.repeat(pa.scalar(channel_id, pa.string()), count),
            _array(SEQUENCE, count, validity.sequences, children=sequences),
            _array(key, count, None, children=members),
            _array(pa.list_(CELL), count, None, filled.cell_ends, children=[_cells(validity, filled)]),
        ],
        schema=schema,
    )


def _cells(validity: Validity, filled: Filled) -> pa.Array:
    """The cells of all records, one after the other."""
    count = len(filled.types)
    parts = (
        (filled.integers,),
        (filled.doubles,),
        (filled.booleans,),
        (filled.string_ends, filled.strings),
        (filled.binary_ends, filled.binaries),
    )
    members = [
        _array(kind, count, valid, *part)
        for (_, kind), valid, part in zip(VALUE_TYPES.values(), validity.members, parts, strict=True)
    ]
    columns = [
        _values(pa.string(), count, filled.name_ends, filled.names),
        _named(_OPERATIONS, count, filled.operations),
        _named(_TYPES, count, filled.types, validity.values),
        _array(pa.int64(), count, validity.versions, filled.versions),
        _array(VALUE, count, validity.values, children=members),
    ]
    return _array(CELL, count, None, children=columns)


def _values(kind: pa.DataType, count: int, numbers: Block, data: Block) -> pa.Array:
    """Values that are never null: numbers, or texts by their ends."""
    return _array(kind, count, None, numbers) if kind == pa.int64() else _array(kind, count, None, numbers, data)


def _named(names: pa.Array, count: int, codes: Block, valid: Block | None = None) -> pa.Array:
    """Texts by their codes."""
    return pa.DictionaryArray.from_arrays(_array(pa.int8(), count, valid, codes), names).dictionary_decode()


def _array(
    kind: pa.DataType, count: int, valid: Block | None, *blocks: Block, children: Sequence[pa.Array] | None = None
) -> pa.Array:
    """An array over memory of the twin."""
    buffers = [None if block is None else pa.py_buffer(block) for block in (valid, *blocks)]
    return pa.Array.from_buffers(kind, count, buffers, children=children)
