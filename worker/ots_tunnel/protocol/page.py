"""The two messages that carry records in bulk: the page that is read and the batch that is written.

They are framed here and not in `messages` because their cost is per record.

Source: docs/protocol.md 2.2, docs/data-plane.md 2.3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from google.protobuf.message import DecodeError

from ots_tunnel.model import Action, Token
from ots_tunnel.protocol import table_pb2, tunnel_pb2
from ots_tunnel.protocol.http.message import SummedBody
from ots_tunnel.protocol.http.rpc import message_of
from ots_tunnel.protocol.md5 import md5_of
from ots_tunnel.protocol.plainbuffer.compiled import native
from ots_tunnel.protocol.record import Record

_ACTIONS = {int(action): action for action in Action}
#: BatchWriteRow and the tunnel number the actions alike (docs/data-plane.md 2.5).
_WIRE_ACTIONS = {Action.PUT: table_pb2.PUT, Action.UPDATE: table_pb2.UPDATE, Action.DELETE: table_pb2.DELETE}


class Sized(Protocol):
    """A record, or what holds one."""

    @property
    def size(self) -> int:
        """Bytes of the record as it came."""
        ...


class PageContent(NamedTuple):
    """Content of one ReadRecords answer; `may_more` is None where the service does not set it."""

    records: list[Record]
    next_token: Token
    may_more: bool | None


def reached_log_end(may_more: bool | None, rows: int) -> bool:
    """Whether a page of `rows` records ends where the log ended when it was read (docs/protocol.md 4.7)."""
    return not rows if may_more is None else not may_more


def read_page(body: bytes) -> PageContent:
    """Frame the records of a ReadRecordsResponse without decoding them.

    Raises:
        CodecError: the bytes are not that message, or lack a required field.
    """
    if native is not None:
        content = native.read_page(body)
        if content is not None:
            return PageContent(*content)
    return read_page_in_python(body)


def read_page_in_python(body: bytes) -> PageContent:
    """Reference implementation of `read_page`."""
    message = message_of(tunnel_pb2.ReadRecordsResponse, body)
    may_more = message.may_more_record if message.HasField("may_more_record") else None
    return PageContent(records_of(message.records), Token(message.next_token), may_more)


def encode_page(records: Sequence[Record]) -> bytes:
    """The records as a ReadRecordsResponse, which `read_page` takes, without previous values and without a token.

    So records go to another process, or wait for one, in a single buffer.
    """
    if native is not None:
        body: bytes | None = native.encode_page(list(records))
        if body is not None:
            return body
    return encode_page_in_python(records)


def encode_page_in_python(records: Iterable[Record]) -> bytes:
    """Reference implementation of `encode_page`."""
    message = tunnel_pb2.ReadRecordsResponse(next_token="")
    for record in records:
        message.records.add(action_type=int(record.action), record=record.body)
    # the token comes last, as it has the higher number
    return message.SerializeToString()


def records_of(messages: Iterable[Any]) -> list[Record]:
    """The records of an answer's messages, as the tunnel and the stream of a table number their fields."""
    return [Record(_ACTIONS[each.action_type], each.record, each.origin_record or None) for each in messages]


def count_actions(records: Sequence[Record]) -> Mapping[int, int]:
    """Number of records of each action; nothing is decoded."""
    if native is not None and type(records) is list:
        counts: dict[int, int] | None = native.count_actions(records)
        if counts is not None:
            return counts
    return Counter(int(record.action) for record in records)


def total_size(records: Sequence[Sized]) -> int:
    """Bytes of all records on the wire."""
    if native is not None and type(records) is list:
        size = native.total_size(records)
        if size is not None:
            return int(size)
    return sum(record.size for record in records)


def encode_batch_writes(table: str, requests: Sequence[list[Record]]) -> list[SummedBody]:
    """A BatchWriteRowRequest for each list of records: it writes them to a table, unconditionally and in order.

    Raises:
        CodecError: a record is malformed.
    """
    bodies: list[bytes] | None = None
    if native is not None:
        bodies = native.encode_batch_writes(table, list(requests))
    if bodies is None:
        bodies = [encode_batch_write_in_python(table, records) for records in requests]
    return list(map(SummedBody, bodies, md5_of(bodies)))


def encode_batch_write_in_python(table: str, records: Sequence[Record]) -> bytes:
    """Reference implementation of one of `encode_batch_writes`."""
    changes = ((record.action, record.write_body) for record in records)
    return batch_write_message(table, changes).SerializeToString()


def batch_write_message(table: str, changes: Iterable[tuple[Action, bytes]]) -> table_pb2.BatchWriteRowRequest:
    """The message that makes unconditional changes of one table, in order; a change is its action and its row."""
    request = table_pb2.BatchWriteRowRequest()
    in_table = request.tables.add(table_name=table)
    for action, body in changes:
        row = in_table.rows.add(type=_WIRE_ACTIONS[action], row_change=body)
        row.condition.row_existence = table_pb2.IGNORE
    return request


def all_rows_stored(answer: bytes, count: int) -> bool:
    """Whether a BatchWriteRowResponse reports all of `count` rows as stored; False also for any other bytes.

    Covers the usual case in one pass; `client.table_calls` reads the outcome of each row.
    """
    if native is not None:
        return bool(native.all_rows_stored(answer, count))
    message = table_pb2.BatchWriteRowResponse()
    try:
        message.ParseFromString(answer)
    except DecodeError:
        return False
    rows = [row.is_ok for table in message.tables for row in table.rows]
    return len(rows) == count and all(rows)
