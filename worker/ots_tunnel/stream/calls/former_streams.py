"""Streams of a table that were followed before, by what they have left in the table of leases.

Theory of operation. A stream that is switched off and on again has another id, and no lease of the former one is about
it. A worker that starts then finds a stream without leases, as at the very first start; but changes from before the new
stream may be missing. So it looks for leases of other streams:

    its mark names this table                        it was this table's, whether or not the service still describes it
    its mark names another table                     it was that of another table
    it has no mark, and is described as another's    it is that of another table, which has its leases here, too
    otherwise                                        it was this table's, and was followed

A worker that has looked leaves a *mark*, a row beside the leases with the name of the stream's table, and later ones do
not look again. That nobody has looked yet is told by the mark alone: a worker of the vendor's Java library may have
created the leases of the new stream meanwhile. It lists the rows of leases alone, and so never sees a mark.

A mark is written once. So it also tells whether the table of leases is still the one that a worker has begun with: in
a table that was deleted and created again it is gone, or has another time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ots_tunnel.errors import CodecError
from ots_tunnel.model import Marker, PrimaryKey
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.plainbuffer.codec import DecodedRow, decode_row, encode_primary_key, encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.stream.calls.client import StreamClient
from ots_tunnel.stream.calls.lease_table import LeaseTable
from ots_tunnel.stream.lease.lease import Lease
from ots_tunnel.stream.lease.row import FOLLOWED, KEY_NAMES, LEASE_KEY, STATUS_TYPE, STREAM_ID, decode_lease

#: Second and third part of a mark's key.
_TYPE: Final = FOLLOWED
_TABLE: Final = "Table"
_NOTHING: Final = pb.ReturnContent(return_type=pb.RT_NONE)


@dataclass(frozen=True, slots=True)
class FormerStream:
    """A stream that was followed before.

    Args:
        since: Unix seconds at which its first lease was created, of those that are left; None if unknown.
    """

    stream_id: str
    since: float | None


async def marked_ms(table: LeaseTable, stream_id: str) -> int | None:
    """When a worker has looked for streams before this one, by the service's clock; None where none has.

    Returns:
        Unix milliseconds, the same for as long as the table exists.
    """
    key = encode_primary_key(_key(stream_id))
    answer = await table.call("GetRow", pb.GetRowRequest(table_name=table.name, primary_key=key, max_versions=1))
    columns = decode_row(answer.row).columns if answer.row else ()
    return next((column.timestamp_ms for column in columns if column.name == _TABLE), None)


async def mark(table: LeaseTable, stream_id: str, source: str) -> None:
    """No worker has to look again; a mark that is there stays as it is.

    Args:
        source: name of the table whose stream it is.
    """
    row = encode_row(_key(stream_id), [Column(_TABLE, source)])
    condition = pb.Condition(row_existence=pb.EXPECT_NOT_EXIST)
    await table.put(pb.PutRowRequest(table_name=table.name, row=row, condition=condition, return_content=_NOTHING))


async def former_streams(
    client: StreamClient, table: LeaseTable, stream_id: str, source: str
) -> tuple[FormerStream, ...]:
    """The streams of a table that were followed before its present one.

    Args:
        source: name of the table.
    """
    start, end = (tuple((name, marker) for name in KEY_NAMES) for marker in (Marker.INF_MIN, Marker.INF_MAX))
    found, tables = _by_stream(await table.rows(start, end))
    others = [former for former in found if former.stream_id != stream_id]
    owners = [
        tables[each.stream_id] if each.stream_id in tables else await client.table_of(each.stream_id) for each in others
    ]
    return tuple(former for former, owner in zip(others, owners, strict=True) if owner in (source, None))


def _by_stream(rows: Iterable[DecodedRow]) -> tuple[list[FormerStream], dict[str, object]]:
    """The streams that have leases, and the tables of those with a mark, by stream."""
    created: dict[str, list[float]] = {}
    tables: dict[str, object] = {}
    for row in rows:
        key = dict(row.primary_key)
        stream_id = str(key[STREAM_ID])
        if key[STATUS_TYPE] == _TYPE:
            tables[stream_id] = next((column.value for column in row.columns if column.name == _TABLE), None)
        elif key[STATUS_TYPE] == LEASE_KEY:
            created.setdefault(stream_id, []).extend(_created(row))
    return [FormerStream(stream_id, min(times, default=None)) for stream_id, times in created.items()], tables


def _created(row: DecodedRow) -> list[float]:
    try:
        lease = decode_lease(row)
    except CodecError:
        return []  # whatever it is, it is of a stream that was followed
    return [lease.created_ms / 1000] if isinstance(lease, Lease) and lease.created_ms is not None else []


def _key(stream_id: str) -> PrimaryKey:
    return tuple(zip(KEY_NAMES, (stream_id, _TYPE, _TYPE), strict=True))
