"""Records as Arrow arrays by the compiled twin: one pass over their bytes, without an object per record or cell.

The arrays are those of `arrow_rows`, which stays the reference and makes all of them where nothing was compiled. The
twin ends at a record that is not well-formed, or whose key is not of the file's columns. Such records go through the
reference, which raises the error or knows the rare case.

The twin fills buffers in the layout of Arrow, which pyarrow takes as they are (`twin_arrays`).

Example: of 1,000 records the 500th has an extension that the twin does not know. There are three batches: 499 rows of
the twin, one of the reference, 500 of the twin.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from ots_tunnel.model import ChannelId
from ots_tunnel.protocol.plainbuffer.compiled import native
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.files.rows.arrow_rows import ArrowRows
from ots_tunnel.sinks.files.rows.twin_arrays import Twin, key_of, row_arrays

#: Bytes of records that become arrays at a time, and no other thread runs meanwhile: by the reference, which takes many
#: times as much for them as objects, and by the twin.
REFERENCE_BYTES = 262_144
TWIN_BYTES = 524_288


def change_batches(
    records: Sequence[Record], channel_id: ChannelId, schema: pa.Schema, most: int = TWIN_BYTES
) -> Iterator[pa.RecordBatch]:
    """Rows of the change log from records, in their order.

    Args:
        schema: made by `arrow_rows.schema_of`, or `coded`.
        most: bytes of records after which the twin ends a batch.

    Raises:
        CodecError: a record is malformed, or its key has other columns; some of those before it have been given.
    """
    found, key, at = list(records), key_of(schema), 0
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
            arrays = row_arrays(Twin.of(columns), end - at, channel_id, schema)
            yield pa.RecordBatch.from_arrays([arrays[name] for name in schema.names], schema=schema)
            at = end
    if others.actions:
        yield others.batch(schema)
