"""Every operation of both services: its path, its messages, and whether it may be repeated.

Source: docs/protocol.md 1.1 and 2.2, docs/data-plane.md 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from google.protobuf.message import Message

from ots_tunnel.protocol import table_pb2, tunnel_pb2

TUNNEL_API_VERSION: Final = "2018-04-01"
TABLE_API_VERSION: Final = "2015-12-31"


@dataclass(frozen=True, slots=True)
class Operation:
    """One call of the service; an idempotent one may be sent again when no answer came."""

    name: str
    path: str
    request_type: type[Message]
    response_type: type[Message]
    idempotent: bool
    api_version: str


def _tunnel(name: str, path: str, *, idempotent: bool) -> Operation:
    request, response = getattr(tunnel_pb2, f"{name}Request"), getattr(tunnel_pb2, f"{name}Response")
    return Operation(name, f"/tunnel/{path}", request, response, idempotent, TUNNEL_API_VERSION)


def _table(name: str, *, idempotent: bool) -> Operation:
    request, response = getattr(table_pb2, f"{name}Request"), getattr(table_pb2, f"{name}Response")
    return Operation(name, f"/{name}", request, response, idempotent, TABLE_API_VERSION)


#: Operations of the tunnel service by name (docs/protocol.md 1.1). Heartbeats are
#: repeated by the next beat, not by a retry. The service refuses a checkpoint that repeats a stored sequence number.
TUNNEL_OPERATIONS: Final[Mapping[str, Operation]] = {
    operation.name: operation
    for operation in (
        _tunnel("CreateTunnel", "create", idempotent=False),
        _tunnel("DeleteTunnel", "delete", idempotent=False),
        _tunnel("ListTunnel", "list", idempotent=True),
        _tunnel("DescribeTunnel", "describe", idempotent=True),
        _tunnel("Connect", "connect", idempotent=False),
        _tunnel("Heartbeat", "heartbeat", idempotent=False),
        _tunnel("Shutdown", "shutdown", idempotent=False),
        _tunnel("GetCheckpoint", "getcheckpoint", idempotent=True),
        _tunnel("ReadRecords", "readrecords", idempotent=True),
        _tunnel("Checkpoint", "checkpoint", idempotent=False),
        _tunnel("GetRpo", "getrpo", idempotent=True),
        _tunnel("Schedule", "schedule", idempotent=False),
    )
}

#: Operations on tables, rows and streams by name (docs/data-plane.md 2).
TABLE_OPERATIONS: Final[Mapping[str, Operation]] = {
    operation.name: operation
    for operation in (
        _table("CreateTable", idempotent=False),
        _table("DeleteTable", idempotent=False),
        _table("UpdateTable", idempotent=False),
        _table("DescribeTable", idempotent=True),
        _table("ListTable", idempotent=True),
        _table("PutRow", idempotent=False),
        _table("UpdateRow", idempotent=False),
        _table("DeleteRow", idempotent=False),
        _table("BatchWriteRow", idempotent=False),
        _table("GetRow", idempotent=True),
        _table("BatchGetRow", idempotent=True),
        _table("GetRange", idempotent=True),
        _table("ComputeSplitPointsBySize", idempotent=True),
        _table("StartLocalTransaction", idempotent=False),
        _table("CommitTransaction", idempotent=False),
        _table("AbortTransaction", idempotent=False),
        _table("ListStream", idempotent=True),
        _table("DescribeStream", idempotent=True),
        _table("GetShardIterator", idempotent=True),
        _table("GetStreamRecord", idempotent=True),
    )
}

OPERATIONS_BY_PATH: Final[Mapping[str, Operation]] = {
    operation.path: operation for table in (TUNNEL_OPERATIONS, TABLE_OPERATIONS) for operation in table.values()
} | {"/tunnel/getrpobyoffset": TUNNEL_OPERATIONS["GetRpo"]}
