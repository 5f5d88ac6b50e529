"""Answers of the Stream API as values; an answer that would lose a shard or its place is refused.

Source: docs/data-plane.md 2.8.
"""

from __future__ import annotations

from typing import Any

from ots_tunnel.client.answered import check_answered
from ots_tunnel.errors import CodecError
from ots_tunnel.model import Action
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.http.message import HttpResponse
from ots_tunnel.protocol.http.operations import Operation
from ots_tunnel.protocol.http.rpc import parse_response, service_time
from ots_tunnel.protocol.record import Record
from ots_tunnel.stream.shards import Shard, ShardId, ShardIterator, ShardPage, StreamInfo

#: Of the retention in a stream's description.
HOUR_SECONDS = 3600.0

_ACTIONS = {int(action): action for action in Action}


def service_answer(operation: Operation, response: HttpResponse) -> Any:
    """The answer as a message of the operation's response type.

    Raises:
        ConnectionLost: it is not the service's. An empty one would be a table without streams, or a shard's end.
        ServiceError, CodecError: see `protocol.http.rpc.parse_response`.
    """
    message = parse_response(operation, response)
    check_answered(operation.name, response)
    return message


def streams_of(response: pb.ListStreamResponse) -> tuple[StreamInfo, ...]:
    """The listed streams."""
    return tuple(StreamInfo(each.stream_id, each.table_name, each.creation_time) for each in response.streams)


def shards_of(response: pb.DescribeStreamResponse) -> tuple[Shard, ...]:
    """The shards of one page of a stream's description."""
    return tuple(
        Shard(ShardId(each.shard_id), frozenset(map(ShardId, filter(None, (each.parent_id, each.parent_sibling_id)))))
        for each in response.shards
    )


def timed_answer(operation: Operation, response: HttpResponse) -> tuple[Any, float | None]:
    """The answer, and the service's clock at it; errors as in `service_answer`."""
    return service_answer(operation, response), service_time(response)


def read_shard_page(operation: Operation, response: HttpResponse) -> ShardPage:
    """One page of records; none is decoded.

    Raises:
        ConnectionLost: the answer is not the service's.
        CodecError: the next iterator is empty: it is neither a position nor the end.
        ServiceError, CodecError: see `protocol.http.rpc.parse_response`.
    """
    message = service_answer(operation, response)
    following = None
    if message.HasField("next_shard_iterator"):
        following = ShardIterator(message.next_shard_iterator)
        if not following:
            raise CodecError("GetStreamRecordResponse.next_shard_iterator is empty: the shard's place would be lost")
    records = [
        Record(_ACTIONS[each.action_type], each.record, each.origin_record or None) for each in message.stream_records
    ]
    may_more = message.may_more_record if message.HasField("may_more_record") else None
    return ShardPage(records, following, may_more, len(response.body), service_time(response))
