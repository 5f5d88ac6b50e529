"""What the service executed for workers that share leases: writes to the leases, and reads of shards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ots_emulator.api.call import Call
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.plainbuffer.codec import decode_row
from ots_tunnel.stream.lease.row import LEASE_KEY
from tests.simulation.service import Header, note_calls
from tests.support.ledger import Entry

#: Table of the leases.
LEASES = "leases"
#: Calls that the story leaves out while they succeed: there are too many of them.
SILENT = frozenset(("GetStreamRecord", "GetShardIterator", "GetRange", "GetRow", "UpdateRow", "BatchWriteRow"))


@dataclass(frozen=True, slots=True)
class LeaseWritten(Entry):
    """Attributes of a lease were written; `is_whole` where the row was put. None: it was deleted."""

    shard: str
    values: Mapping[str, Any] | None
    is_whole: bool = False


@dataclass(frozen=True, slots=True)
class ShardRead(Entry):
    """Records of a shard were read: from a position in its log up to another one, None at its end."""

    shard: str
    position: int
    count: int
    following: int | None


def note_leases() -> None:
    """Let the region's service tell of these calls as well."""
    note_calls(
        {"UpdateRow": _updated, "PutRow": _put, "DeleteRow": _deleted, "GetStreamRecord": _read},
    )


def _updated(header: Header, call: Call, request: pb.UpdateRowRequest, answer: Any) -> Entry | None:
    return _written(header, request.table_name, request.row_change, is_whole=False)


def _put(header: Header, call: Call, request: pb.PutRowRequest, answer: Any) -> Entry | None:
    return _written(header, request.table_name, request.row, is_whole=True)


def _deleted(header: Header, call: Call, request: pb.DeleteRowRequest, answer: Any) -> Entry | None:
    key = dict(decode_row(request.primary_key).primary_key)
    return None if request.table_name != LEASES else LeaseWritten(*header, str(key["StatusValue"]), None)


def _written(header: Header, table: str, body: bytes, *, is_whole: bool) -> Entry | None:
    if table != LEASES:
        return None
    row = decode_row(body)
    key = dict(row.primary_key)
    if key["StatusType"] != LEASE_KEY:
        return None  # a mark beside the leases
    return LeaseWritten(
        *header, str(key["StatusValue"]), {column.name: column.value for column in row.columns}, is_whole
    )


def _read(header: Header, call: Call, request: pb.GetStreamRecordRequest, answer: bytes) -> Entry:
    shard, position = place_of(request.shard_iterator)
    found = pb.GetStreamRecordResponse.FromString(answer)
    following = place_of(found.next_shard_iterator)[1] if found.HasField("next_shard_iterator") else None
    return ShardRead(*header, shard, position, len(found.stream_records), following)


def place_of(iterator: str) -> tuple[str, int]:
    """Shard and position of an iterator of the emulator."""
    shard, _, position = iterator.rpartition(":")
    return shard, int(position)
