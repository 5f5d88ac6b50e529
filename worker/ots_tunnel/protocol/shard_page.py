"""The answer of GetStreamRecord: records of one shard, framed without decoding them.

It is apart from the other messages because its cost is per record, like that of `page.read_page`.

Source: docs/data-plane.md 2.8.
"""

from __future__ import annotations

from typing import NamedTuple

from ots_tunnel.protocol import table_pb2
from ots_tunnel.protocol.http.rpc import message_of
from ots_tunnel.protocol.page import records_of
from ots_tunnel.protocol.plainbuffer.compiled import native
from ots_tunnel.protocol.record import Record


class ShardPageContent(NamedTuple):
    """Content of one answer; a field that the service does not set is None."""

    records: list[Record]
    next_iterator: str | None
    may_more: bool | None


def read_shard_page(body: bytes) -> ShardPageContent:
    """Frame the records of a GetStreamRecordResponse.

    Raises:
        CodecError: the bytes are not that message, lack a required field, or have text that is not UTF-8.
    """
    if native is not None:
        content = native.read_shard_page(body)
        if content is not None:
            return ShardPageContent(*content)
    return read_shard_page_in_python(body)


def read_shard_page_in_python(body: bytes) -> ShardPageContent:
    """Reference implementation of `read_shard_page`."""
    message = message_of(table_pb2.GetStreamRecordResponse, body)
    following = message.next_shard_iterator if message.HasField("next_shard_iterator") else None
    may_more = message.may_more_record if message.HasField("may_more_record") else None
    return ShardPageContent(records_of(message.stream_records), following, may_more)
