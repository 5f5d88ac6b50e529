"""Answers of the Stream API as values; an answer that would lose a shard or its place is refused.

Source: docs/data-plane.md 2.8.
"""

from __future__ import annotations

from typing import Any

from ots_tunnel.client.answered import check_answered
from ots_tunnel.errors import CodecError
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.http.message import HttpResponse
from ots_tunnel.protocol.http.operations import Operation
from ots_tunnel.protocol.http.rpc import body_of, parse_response, service_time
from ots_tunnel.protocol.shard_page import read_shard_page
from ots_tunnel.stream.shards import Shard, ShardId, ShardIterator, ShardPage, StreamInfo

#: Of the retention in a stream's description.
HOUR_SECONDS = 3600.0


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


def page_of(operation: Operation, response: HttpResponse) -> ShardPage:
    """One page of records; none is decoded.

    Raises:
        ConnectionLost: the answer is not the service's.
        CodecError: the next iterator is empty: it is neither a position nor the end.
        ServiceError: see `protocol.http.rpc.body_of`. CodecError: see `protocol.shard_page.read_shard_page`.
    """
    records, iterator, may_more = read_shard_page(body_of(operation, response))
    check_answered(operation.name, response)
    if iterator == "":
        raise CodecError("GetStreamRecordResponse.next_shard_iterator is empty: the shard's place would be lost")
    following = None if iterator is None else ShardIterator(iterator)
    return ShardPage(records, following, may_more, len(response.body), service_time(response))
