"""Arrow arrays over memory of the compiled twin, which fills buffers in the layout of Arrow.

What has few values (action, operation, type) is a code for each row; Arrow's own dictionaries turn it into text, unless
the schema has codes (`coded_texts`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import pyarrow as pa

from ots_tunnel.model import ChannelId
from ots_tunnel.protocol.plainbuffer.tags import BLOB, INTEGER, STRING
from ots_tunnel.sinks.files.rows.arrow_rows import ACTIONS, OPERATIONS, SEQUENCE, TYPES, VALUE, VALUE_TYPES
from ots_tunnel.sinks.files.rows.coded_texts import CODED

#: Memory of the twin, which is read by the buffer protocol; the only name of the type is in the compiled module.
Block = Any
#: Tags of the wire of what a key column may hold.
_KEY_TAGS = {pa.int64(): INTEGER, pa.string(): STRING, pa.binary(): BLOB}
_ACTIONS, _OPERATIONS, _TYPES = (pa.array(texts, pa.string()) for texts in (ACTIONS, OPERATIONS, TYPES))

#: Typed rows mostly have no cells that are left over, and making a dozen empty arrays for a batch takes a while.
_NO_VALUES = pa.array([], VALUE)


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


class Twin(NamedTuple):
    """What the twin has filled from records: bits, buffers, and two buffers for each column of the key."""

    validity: Validity
    filled: Filled
    keys: Sequence[tuple[Block, Block]]

    @classmethod
    def of(cls, columns: tuple[Any, Any, Any]) -> Twin:
        """The columns that a call of the compiled module returns."""
        validity, filled, keys = columns
        return cls(Validity(*validity), Filled(*filled), keys)


def key_of(schema: pa.Schema) -> tuple[tuple[bytes, int], ...]:
    """Name and tag of each column of the key."""
    return tuple((column.name.encode(), _KEY_TAGS[column.type]) for column in schema.field("key").type)


def row_arrays(twin: Twin, count: int, channel_id: ChannelId, schema: pa.Schema) -> dict[str, pa.Array]:
    """The columns of the change log.

    Args:
        count: records that were filled.
        schema: has their types.
    """
    filled, valid = twin.filled, twin.validity.sequences
    key, cell = schema.field("key").type, schema.field("cells").type.value_type
    numbers = (filled.epochs, filled.timestamps, filled.row_indexes)
    sequences = [array(pa.int64(), count, valid, column) for column in numbers]
    members = [array_of_all(column.type, count, *buffers) for column, buffers in zip(key, twin.keys, strict=True)]
    return {
        "action": _named(_ACTIONS, count, filled.actions, schema.field("action").type),
        "channel": _channels(channel_id, count, schema.field("channel").type),
        "sequence": array(SEQUENCE, count, valid, children=sequences),
        "key": array(key, count, None, children=members),
        "cells": array(schema.field("cells").type, count, None, filled.cell_ends, children=[_cells(twin, cell)]),
    }


def names_array(twin: Twin) -> pa.Array:
    """The names of all cells, one after the other."""
    return array_of_all(pa.string(), len(twin.filled.types), twin.filled.name_ends, twin.filled.names)


def values_array(twin: Twin) -> pa.Array:
    """The values of all cells."""
    validity, filled, count = twin.validity, twin.filled, len(twin.filled.types)
    if not count:
        return _NO_VALUES
    parts = (
        (filled.integers,),
        (filled.doubles,),
        (filled.booleans,),
        (filled.string_ends, filled.strings),
        (filled.binary_ends, filled.binaries),
    )
    members = [
        array(kind, count, valid, *part)
        for (_, kind), valid, part in zip(VALUE_TYPES.values(), validity.members, parts, strict=True)
    ]
    return array(VALUE, count, validity.values, children=members)


def array_of_all(kind: pa.DataType, count: int, numbers: Block, data: Block) -> pa.Array:
    """Values that are never null: numbers, or texts by their ends."""
    return array(kind, count, None, numbers) if kind == pa.int64() else array(kind, count, None, numbers, data)


def array(
    kind: pa.DataType, count: int, valid: Block | None, *blocks: Block, children: Sequence[pa.Array] | None = None
) -> pa.Array:
    """An array over memory of the twin; `valid` has a bit for each entry that is not null."""
    buffers = [None if block is None else pa.py_buffer(block) for block in (valid, *blocks)]
    return pa.Array.from_buffers(kind, count, buffers, children=children)


def _cells(twin: Twin, kind: pa.StructType) -> pa.Array:
    validity, filled, count = twin.validity, twin.filled, len(twin.filled.types)
    if not count:
        return _no_cells(kind)
    columns = [
        names_array(twin),
        _named(_OPERATIONS, count, filled.operations, kind.field("operation").type),
        _named(_TYPES, count, filled.types, kind.field("type").type, validity.values),
        array(pa.int64(), count, validity.versions, filled.versions),
        values_array(twin),
    ]
    return array(kind, count, None, children=columns)


@cache
def _no_cells(kind: pa.StructType) -> pa.Array:
    """No cells, with the texts that others have: Arrow's encoder gives codes up where two batches differ in these."""
    texts = {"operation": _OPERATIONS, "type": _TYPES}
    none = pa.array([], pa.int8())
    columns = [
        pa.DictionaryArray.from_arrays(none, texts[each.name]) if each.type == CODED else pa.array([], each.type)
        for each in kind
    ]
    return array(kind, 0, None, children=columns)


def _channels(channel_id: ChannelId, count: int, kind: pa.DataType) -> pa.Array:
    if kind != CODED:
        return pa.repeat(pa.scalar(channel_id, kind), count)
    return pa.DictionaryArray.from_arrays(
        pa.repeat(pa.scalar(0, pa.int8()), count), pa.array([channel_id], pa.string())
    )


def _named(names: pa.Array, count: int, codes: Block, kind: pa.DataType, valid: Block | None = None) -> pa.Array:
    """Texts by their codes."""
    found = pa.DictionaryArray.from_arrays(array(pa.int8(), count, valid, codes), names)
    return found if kind == CODED else found.dictionary_decode()
