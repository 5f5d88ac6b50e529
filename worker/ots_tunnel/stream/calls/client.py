"""Typed calls of the Stream API: ListStream, DescribeStream, GetShardIterator, GetStreamRecord.

Every call is a read and is repeated until it is answered (`client.retry`); an error that leaves says by `retryable`
whether a later try can succeed.

Source: docs/data-plane.md 2.8.
"""

from __future__ import annotations

from typing import Any

from google.protobuf.message import Message

from ots_tunnel.client.caller import Parser, RetryListener, ServiceCaller
from ots_tunnel.credentials import CredentialsProvider
from ots_tunnel.endpoint import check_place
from ots_tunnel.errors import CodecError, NoStream, ObjectNotExist
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.backoff import CALL_RETRY, READ_RETRY
from ots_tunnel.protocol.http.operations import TABLE_OPERATIONS
from ots_tunnel.stream.calls.answers import (
    HOUR_SECONDS,
    page_of,
    service_answer,
    shards_of,
    streams_of,
    timed_answer,
)
from ots_tunnel.stream.shards import Shard, ShardId, ShardIterator, ShardPage, StreamInfo, StreamShards
from ots_tunnel.transport import BeforeAnswer, Transport
from ots_tunnel.transport.aio import AioTransport

#: Records of a page; the vendor's Java library asks for as many.
PAGE_RECORDS = 1000
#: Answers of GetShardIterator that are followed until one has a position. Own choice: each stands for a long seek.
MAX_SEEKS = 1000


class StreamClient:
    """Reads the streams of one instance; coroutines.

    Args:
        endpoint: `http(s)://host[:port]`.
        credentials: called before every try.
        transport: None creates one that keeps connections alive; it is closed with the client.
        on_retry: called with the operation and the error of every repeated call.

    Raises:
        ConfigError: endpoint or instance are not valid.
    """

    def __init__(
        self,
        endpoint: str,
        instance: str,
        credentials: CredentialsProvider,
        transport: Transport | None = None,
        *,
        on_retry: RetryListener | None = None,
        caller: ServiceCaller | None = None,
    ) -> None:
        check_place(endpoint, instance)
        self.endpoint = endpoint
        self.instance = instance
        self._caller = caller or ServiceCaller(
            # Without a limit: a read of one shard must not wait for those of others.
            transport or AioTransport(endpoint, max_connections=0),
            instance,
            credentials,
            on_retry=on_retry,
        )

    def __repr__(self) -> str:
        return f"StreamClient({self.instance} at {self.endpoint})"

    def listen_to_retries(self, listener: RetryListener) -> None:
        """Call `listener` with the operation and the error of every call that is repeated from now on."""
        self._caller.on_retry = listener

    async def stream_of(self, table: str) -> StreamInfo:
        """The stream of a table.

        Raises:
            NoStream: it is switched off.
            ObjectNotExist: the table does not exist.
            CodecError: the answer lists several streams, or one of another table.
        """
        answer = await self._call("ListStream", pb.ListStreamRequest(table_name=table))
        streams = streams_of(answer)
        if not streams:
            raise NoStream(table)
        if len(streams) > 1 or streams[0].table != table:
            tables = ", ".join(stream.table for stream in streams)
            raise CodecError(f"ListStreamResponse.streams: found streams of {tables}, allowed is one of {table}")
        return streams[0]

    async def shards(self, stream_id: str) -> tuple[Shard, ...]:
        """The shards of `describe`, which raises the same."""
        return (await self.describe(stream_id)).shards

    async def describe(self, stream_id: str) -> StreamShards:
        """Every shard that the stream keeps.

        Raises:
            ObjectNotExist: the stream does not exist, or a shard was dropped while the pages were read.
            CodecError: the answer lists no shard, which no stream has, or its pages do not end.
        """
        found: dict[ShardId, Shard] = {}
        message = pb.DescribeStreamRequest(stream_id=stream_id)
        while True:
            answer, now = await self._call("DescribeStream", message, timed_answer)
            page = {shard.shard_id: shard for shard in shards_of(answer)}
            if page.keys() <= found.keys():
                # Leases of shards that are not listed are deleted: an incomplete list must not pass for a whole one.
                raise CodecError(f"DescribeStreamResponse lists no further shard of stream {stream_id}")
            found |= page
            if not answer.next_shard_id:
                return StreamShards(tuple(found.values()), answer.expiration_time * HOUR_SECONDS, now)
            message = pb.DescribeStreamRequest(stream_id=stream_id, inclusive_start_shard_id=answer.next_shard_id)

    async def table_of(self, stream_id: str) -> str | None:
        """Name of the table whose stream has this id; None where there is no such stream."""
        try:
            answer = await self._call("DescribeStream", pb.DescribeStreamRequest(stream_id=stream_id, shard_limit=1))
        except ObjectNotExist:
            return None
        return str(answer.table_name)

    async def iterator(self, stream_id: str, shard_id: ShardId, *, timestamp_us: int | None = None) -> ShardIterator:
        """The position of a shard's oldest retained record, or of the first one at or after a time.

        Args:
            timestamp_us: Unix microseconds. The service may seek in several steps, each of which is a call.

        Raises:
            ObjectNotExist: there is no such stream or shard.
            CodecError: the answer has an empty iterator, or the seek does not end.
        """
        message = pb.GetShardIteratorRequest(stream_id=stream_id, shard_id=shard_id, timestamp=timestamp_us)
        for _ in range(MAX_SEEKS):
            answer = await self._call("GetShardIterator", message)
            if not answer.next_token:
                if not answer.shard_iterator:
                    raise CodecError("GetShardIteratorResponse.shard_iterator is empty")
                return ShardIterator(answer.shard_iterator)
            message.token = answer.next_token
        raise CodecError(f"GetShardIteratorResponse.next_token: found one in each of {MAX_SEEKS} answers")

    async def read(
        self, iterator: ShardIterator, *, limit: int = PAGE_RECORDS, before_answer: BeforeAnswer | None = None
    ) -> ShardPage:
        """The records from an iterator on; reading twice from one is legal.

        Args:
            limit: most records.
            before_answer: see `transport.Transport.send`.

        Raises:
            TunnelExpired: the stream no longer keeps what follows the iterator.
            CodecError: see `answers.page_of`.
        """
        message = pb.GetStreamRecordRequest(shard_iterator=iterator, limit=limit)
        answer, _ = await self._caller.call(
            TABLE_OPERATIONS["GetStreamRecord"],
            message,
            retry=READ_RETRY,
            before_answer=before_answer,
            parse=page_of,
        )
        page: ShardPage = answer
        return page

    async def close(self) -> None:
        """Close the transport."""
        await self._caller.close()

    async def _call(self, name: str, message: Message, parse: Parser = service_answer) -> Any:
        answer, _ = await self._caller.call(TABLE_OPERATIONS[name], message, retry=CALL_RETRY, parse=parse)
        return answer
