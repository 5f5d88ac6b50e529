"""Records as typed Arrow arrays, in the rows of `typed_rows`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from ots_tunnel.model import ChannelId
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.files.change_columns import REFERENCE_BYTES, TWIN_BYTES
from ots_tunnel.sinks.files.declared import Declared
from ots_tunnel.sinks.files.typed_rows import TypedRows


def typed_batches(
    records: Sequence[Record],
    channel_id: ChannelId,
    schema: pa.Schema,
    declared: Declared,
    most: int = TWIN_BYTES,
) -> Iterator[pa.RecordBatch]:
    """Typed rows from records, in their order.

    Args:
        schema: made by `typed_rows.typed_schema`.
        most: bytes of records after which the twin ends a batch.

    Raises:
        CodecError: a record is malformed, its key has other columns, or a value does not fit; some of those before it
            have been given.
    """
    rows = TypedRows(declared)
    for record in records:
        rows.add(record, channel_id)
        if rows.size >= REFERENCE_BYTES:
            yield rows.batch(schema)
            rows = TypedRows(declared)
    if rows:
        yield rows.batch(schema)
