"""Records as typed Arrow arrays by the compiled twin: one pass over their bytes, without an object per record or cell.

The arrays are those of `typed_rows`, which stays the reference and makes all of them where nothing was compiled. The
twin ends at a record that it does not know how to divide: one that is not well-formed, whose key is not of the file's
columns, or that does to an attribute what is rare, such as to delete it behind a put. Such records go through the
reference, as in `change_columns`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from ots_tunnel.model import ChannelId
from ots_tunnel.protocol.plainbuffer.compiled import native
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.files.rows.change_columns import REFERENCE_BYTES, TWIN_BYTES
from ots_tunnel.sinks.files.rows.declared import Declared
from ots_tunnel.sinks.files.rows.twin_arrays import (
    Twin,
    array,
    array_of_all,
    key_of,
    names_array,
    row_arrays,
    values_array,
)
from ots_tunnel.sinks.files.rows.typed_rows import ARROW_TYPES, NAMES, OTHERS, VERSIONS, TypedRows


def typed_batches(
    records: Sequence[Record],
    channel_id: ChannelId,
    schema: pa.Schema,
    declared: Declared,
    most: int = TWIN_BYTES,
) -> Iterator[pa.RecordBatch]:
    """Typed rows from records, in their order.

    Args:
        schema: made by `typed_rows.typed_schema`, or `coded`.
        most: bytes of records and columns after which the twin ends a batch.

    Raises:
        CodecError: a record is malformed, its key has other columns, or a value does not fit; some of those before it
            have been given.
    """
    found, key, wanted, at = list(records), key_of(schema), declared.tags, 0
    others = TypedRows(declared)
    while at < len(found):
        if native is None:
            columns, end = None, at
        else:
            columns, end = native.typed_log(found, at, key, wanted, declared.keeps_unknown, most)
        if others and (columns is not None or others.size >= REFERENCE_BYTES):
            yield others.batch(schema)
            others = TypedRows(declared)
        if columns is None:
            others.add(found[at], channel_id)
            at += 1
        else:
            yield _batch(columns, end - at, channel_id, schema, declared)
            at = end
    if others:
        yield others.batch(schema)


def _batch(columns: Any, count: int, channel_id: ChannelId, schema: pa.Schema, declared: Declared) -> pa.RecordBatch:
    """The rows of one call of the twin."""
    of_rest, of_others, attributes, own = columns
    others = Twin.of(of_others)
    deleted_ends, deleted_name_ends, deleted_names, has_version, version, ends, name_ends, names, has_own, own_ = own
    arrays = row_arrays(Twin.of(of_rest), count, channel_id, schema)
    for (name, kind), (present, values, data) in zip(declared.types.items(), attributes, strict=True):
        arrow = ARROW_TYPES[kind]
        arrays[name] = array(arrow, count, present, values, *((data,) if kind in ("string", "binary") else ()))
    deleted = array_of_all(pa.string(), _entries(deleted_name_ends), deleted_name_ends, deleted_names)
    arrays["deleted"] = array(NAMES, count, None, deleted_ends, children=[deleted])
    arrays["others"] = _map(OTHERS, count, others.filled.cell_ends, names_array(others), values_array(others))
    arrays["version"] = array(pa.int64(), count, has_version, version)
    versions = array(pa.int64(), _entries(name_ends), has_own, own_)
    arrays["versions"] = _map(
        VERSIONS, count, ends, array_of_all(pa.string(), len(versions), name_ends, names), versions
    )
    return pa.RecordBatch.from_arrays([arrays[name] for name in schema.names], schema=schema)


def _entries(ends: Any) -> int:
    """Number of texts by the buffer of their ends, numbers of four bytes of which the first is 0."""
    return len(ends) // 4 - 1


def _map(kind: pa.MapType, count: int, ends: Any, keys: pa.Array, values: pa.Array) -> pa.Array:
    entry = pa.struct([kind.key_field, kind.item_field])
    entries = array(entry, len(keys), None, children=[keys, values])
    return array(kind, count, None, ends, children=[entries])
