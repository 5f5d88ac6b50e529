"""The start of reading, while the first leases of a stream are created.

Theory of operation. Where reading is to begin at a time, every lease of the stream's first sync gets an iterator of
that time. Each is a call of its own, so a sync may be cut off in between, and other workers begin meanwhile: they find
some leases, and cannot tell a shard of then from one that has come later, which is read from its oldest record.

So the time is written first, into a row beside the leases, and marked as over when every shard has one. A worker that
creates leases asks for it. The type of the row's key is another one than that of leases, so no worker takes it for one,
those of the vendor's Java library included.

Of workers that begin together the first one writes it, and its time holds for all. It stays when it is over: a worker
that has found no lease may come to write its own start only then, and finds that leases exist meanwhile.

Example. Of two shards the first one has its lease when the worker is killed. The next one, which starts a day later,
finds a lease and the mark: the second shard begins at the time of the mark, not a day later, and not years before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ots_tunnel.errors import CodecError
from ots_tunnel.model import PrimaryKey
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.plainbuffer.codec import decode_row, encode_primary_key, encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.stream.calls.lease_table import LeaseTable
from ots_tunnel.stream.lease.requests import equal
from ots_tunnel.stream.lease.row import KEY_NAMES, START

#: Second and third part of the row's key.
_TYPE: Final = START
_START: Final = "StartMicroseconds"
_OVER: Final = "IsOver"
_NOTHING: Final = pb.ReturnContent(return_type=pb.RT_NONE)


@dataclass(frozen=True, slots=True)
class Start:
    """Where reading begins, Unix microseconds, and whether every shard has its lease."""

    start_us: int
    is_over: bool = False


async def set_start(table: LeaseTable, stream_id: str, start_us: int) -> Start:
    """Write the start, Unix microseconds, before the first lease; returns the one that counts.

    That is the start of the worker that was faster, where two have found no lease.

    Raises:
        CodecError: the row holds something else.
    """
    await _put(table, stream_id, [Column(_START, start_us)], pb.EXPECT_NOT_EXIST)
    found = await _start(table, stream_id)
    return Start(start_us) if found is None else found


async def unfinished_start(table: LeaseTable, stream_id: str) -> int | None:
    """The start of leases that are being created, Unix microseconds; None where all are.

    Raises:
        CodecError: the row holds something else.
    """
    found = await _start(table, stream_id)
    return None if found is None or found.is_over else found.start_us


async def end_start(table: LeaseTable, stream_id: str, start_us: int) -> None:
    """Every shard has a lease."""
    await _put(table, stream_id, [Column(_START, start_us), Column(_OVER, True)], pb.IGNORE)


async def forget_start(table: LeaseTable, stream_id: str, start: Start) -> None:
    """The leases of a start that is over are gone, and are made anew: another one may be written.

    One that was written meanwhile stays.
    """
    is_same = equal(_START, start.start_us).SerializeToString()
    await table.remove(
        pb.DeleteRowRequest(
            table_name=table.name,
            primary_key=encode_row(_key(stream_id), delete=True),
            condition=pb.Condition(row_existence=pb.IGNORE, column_condition=is_same),
            return_content=_NOTHING,
        )
    )


async def _start(table: LeaseTable, stream_id: str) -> Start | None:
    key = encode_primary_key(_key(stream_id))
    answer = await table.call("GetRow", pb.GetRowRequest(table_name=table.name, primary_key=key, max_versions=1))
    if not answer.row:
        return None
    found = {column.name: column.value for column in decode_row(answer.row).columns}
    value = found.get(_START)
    if not isinstance(value, int) or isinstance(value, bool):
        raise CodecError(f"{_START} of stream {stream_id!r}: found {type(value).__name__}, allowed is an integer")
    return Start(value, _OVER in found)


async def _put(
    table: LeaseTable, stream_id: str, columns: Sequence[Column], existence: pb.RowExistenceExpectation
) -> None:
    row, condition = encode_row(_key(stream_id), columns), pb.Condition(row_existence=existence)
    await table.put(pb.PutRowRequest(table_name=table.name, row=row, condition=condition, return_content=_NOTHING))


def _key(stream_id: str) -> PrimaryKey:
    return tuple(zip(KEY_NAMES, (stream_id, _TYPE, _TYPE), strict=True))
