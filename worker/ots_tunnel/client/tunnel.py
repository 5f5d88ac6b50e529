"""Typed calls of the Tunnel Service. Source: docs/protocol.md 2, 4 and 5.4."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from google.protobuf.message import Message

from ots_tunnel.client.answered import check_answered
from ots_tunnel.client.caller import REQUEST_TIMEOUT, RetryListener, ServiceCaller
from ots_tunnel.client.page import Page
from ots_tunnel.client.table_calls import StreamDescription, describe_stream_result
from ots_tunnel.credentials import CredentialsProvider, provider_of
from ots_tunnel.endpoint import check_place
from ots_tunnel.errors import CodecError
from ots_tunnel.model import (
    Channel,
    ChannelId,
    Checkpoint,
    ClientId,
    Credentials,
    StreamConfig,
    Token,
    TunnelDescription,
    TunnelId,
    TunnelInfo,
    TunnelType,
)
from ots_tunnel.protocol import messages, table_pb2
from ots_tunnel.protocol import tunnel_pb2 as pb
from ots_tunnel.protocol.backoff import CALL_RETRY, READ_RETRY, Backoff
from ots_tunnel.protocol.http.message import HttpResponse
from ots_tunnel.protocol.http.operations import TABLE_OPERATIONS, TUNNEL_OPERATIONS, Operation
from ots_tunnel.protocol.http.rpc import body_of, service_time
from ots_tunnel.protocol.page import PageContent, read_page
from ots_tunnel.transport import BeforeAnswer, Transport
from ots_tunnel.transport.aio import AioTransport


class TunnelClient:
    """Calls the Tunnel Service of one instance; coroutines.

    Args:
        endpoint: `http(s)://host[:port]`.
        credentials: a pair, or a function that returns one; called before every try.
        transport: None creates one that keeps connections alive; it is closed with the client.
        on_retry: called with the operation and the error of every repeated call.

    Raises:
        ConfigError: endpoint, instance or credentials are not valid.
    """

    def __init__(
        self,
        endpoint: str,
        instance: str,
        credentials: CredentialsProvider | Credentials,
        transport: Transport | None = None,
        *,
        on_retry: RetryListener | None = None,
        caller: ServiceCaller | None = None,
    ) -> None:
        check_place(endpoint, instance)
        self.endpoint = endpoint
        self.instance = instance
        self.credentials = provider_of(credentials)
        self._caller = caller or ServiceCaller(
            # Without a limit: a heartbeat must not wait until a hanging read returns its connection.
            transport or AioTransport(endpoint, max_connections=0),
            instance,
            self.credentials,
            on_retry=on_retry,
        )

    def __repr__(self) -> str:
        return f"TunnelClient({self.instance} at {self.endpoint})"

    def listen_to_retries(self, listener: RetryListener) -> None:
        """Call `listener` with the operation and the error of every call that is repeated from now on."""
        self._caller.on_retry = listener

    async def create_tunnel(
        self,
        table: str,
        name: str,
        tunnel_type: TunnelType,
        stream: StreamConfig | None = None,
        *,
        before_send: Callable[[], None] | None = None,
    ) -> TunnelId:
        """Create a tunnel; `stream` sets where a Stream tunnel starts and ends.

        Args:
            before_send: see `transport.Transport.send`.

        Raises:
            ObjectAlreadyExist: the table has a tunnel of this name. ParameterInvalid: the table does not exist.
        """
        message = messages.create_tunnel_request(table, name, tunnel_type, stream)
        answer, _ = await self._call("CreateTunnel", message, before_send=before_send)
        return TunnelId(answer.tunnel_id)

    async def delete_tunnel(
        self,
        table: str,
        name: str,
        tunnel_id: TunnelId | None = None,
        *,
        before_send: Callable[[], None] | None = None,
    ) -> None:
        """Delete a tunnel with its checkpoints.

        Args:
            tunnel_id: where it is known, so that a call that is carried out late spares a successor of the same name.
            before_send: see `transport.Transport.send`.

        Raises:
            ParameterInvalid: the tunnel does not exist.
            ConnectionLost: an empty success was not the service's, so the tunnel may still exist.
        """
        message = pb.DeleteTunnelRequest(table_name=table, tunnel_name=name, tunnel_id=tunnel_id)
        _, response = await self._call("DeleteTunnel", message, before_send=before_send)
        check_answered("DeleteTunnel", response)

    async def list_tunnels(self, table: str) -> tuple[TunnelInfo, ...]:
        """The tunnels of a table; an empty name means the whole instance.

        Raises:
            ConnectionLost: an empty success was not the service's, so the table may have tunnels.
        """
        answer, response = await self._call("ListTunnel", pb.ListTunnelRequest(table_name=table))
        check_answered("ListTunnel", response)
        return tuple(messages.tunnel_info_from_wire(tunnel) for tunnel in answer.tunnels)

    async def describe_tunnel(self, table: str, name: str, tunnel_id: TunnelId | None = None) -> TunnelDescription:
        """A tunnel with its channels; the id takes precedence over table and name.

        Raises:
            ParameterInvalid: the tunnel does not exist.
        """
        message = pb.DescribeTunnelRequest(table_name=table, tunnel_name=name, tunnel_id=tunnel_id)
        answer, response = await self._call("DescribeTunnel", message)
        return messages.description_from_wire(answer, service_time(response))

    async def connect(self, tunnel_id: TunnelId, timeout_s: int, tag: str) -> ClientId:
        """Register a client, which the service forgets after `timeout_s` seconds without a heartbeat."""
        message = pb.ConnectRequest(tunnel_id=tunnel_id)
        message.client_config.timeout = timeout_s
        message.client_config.client_tag = tag
        answer, _ = await self._call("Connect", message)
        return ClientId(answer.client_id)

    async def heartbeat(
        self, tunnel_id: TunnelId, client_id: ClientId, channels: Sequence[Channel], *, timeout: float = REQUEST_TIMEOUT
    ) -> tuple[Channel, ...]:
        """Report channels; returns the channels that this client holds. Tried once: the next beat repeats it.

        Raises:
            ResourceGone: the client is unknown.
        """
        message = pb.HeartbeatRequest(tunnel_id=tunnel_id, client_id=client_id)
        message.channels.extend(messages.channels_to_wire(channels))
        answer, response = await self._caller.call(TUNNEL_OPERATIONS["Heartbeat"], message, timeout=timeout)
        check_answered("Heartbeat", response)
        return messages.channels_from_wire(answer.channels)

    async def shutdown(
        self,
        tunnel_id: TunnelId,
        client_id: ClientId,
        *,
        timeout: float = REQUEST_TIMEOUT,
        retry: Backoff | None = None,
    ) -> None:
        """Deregister the client, which frees its channels; tried once without `retry`."""
        message = pb.ShutdownRequest(tunnel_id=tunnel_id, client_id=client_id)
        await self._caller.call(TUNNEL_OPERATIONS["Shutdown"], message, timeout=timeout, retry=retry)

    async def get_checkpoint(self, tunnel_id: TunnelId, client_id: ClientId, channel_id: ChannelId) -> Checkpoint:
        """The stored cursor of a channel."""
        message = pb.GetCheckpointRequest(tunnel_id=tunnel_id, client_id=client_id, channel_id=channel_id)
        answer, _ = await self._call("GetCheckpoint", message)
        return messages.checkpoint_from_wire(answer)

    async def read_records(
        self,
        tunnel_id: TunnelId,
        client_id: ClientId,
        channel_id: ChannelId,
        token: Token,
        *,
        before_answer: BeforeAnswer | None = None,
    ) -> Page:
        """The records from `token` on; reading twice from one token is legal.

        Args:
            before_answer: see `transport.Transport.send`.

        Raises:
            TunnelExpired: the log at this position is gone.
        """
        message = pb.ReadRecordsRequest(tunnel_id=tunnel_id, client_id=client_id, channel_id=channel_id, token=token)
        operation = TUNNEL_OPERATIONS["ReadRecords"]
        answer, response = await self._caller.call(
            operation, message, retry=READ_RETRY, before_answer=before_answer, parse=_read_page
        )
        (records, next_token, may_more), seconds = answer
        return Page(records, next_token, may_more, len(response.body), service_time(response), seconds)

    async def checkpoint(
        self,
        tunnel_id: TunnelId,
        client_id: ClientId,
        channel_id: ChannelId,
        checkpoint: Checkpoint,
        *,
        timeout: float = REQUEST_TIMEOUT,
        before_send: Callable[[], None] | None = None,
    ) -> None:
        """Store a cursor; its sequence number must exceed the stored one. Tried once: see `worker.checkpointer`.

        Raises:
            SequenceNumberMismatch: another client, or an unanswered call of ours, already stored that number.
        """
        message = pb.CheckpointRequest(
            tunnel_id=tunnel_id,
            client_id=client_id,
            channel_id=channel_id,
            checkpoint=checkpoint.token,
            sequence_number=checkpoint.sequence_number,
        )
        operation = TUNNEL_OPERATIONS["Checkpoint"]
        _, response = await self._caller.call(operation, message, timeout=timeout, before_send=before_send)
        check_answered("Checkpoint", response)

    async def describe_stream(self, table: str) -> StreamDescription:
        """The change log of a table: whether it is switched on, how long it keeps a change, and since when it is on.

        Raises:
            ObjectNotExist: the table does not exist. PermissionDenied: the key may not describe it.
        """
        message = table_pb2.DescribeTableRequest(table_name=table)
        answer, _ = await self._caller.call(TABLE_OPERATIONS["DescribeTable"], message, retry=CALL_RETRY)
        return describe_stream_result(answer)

    async def parents_of_shard(self, stream_id: str, shard_id: str) -> tuple[str, ...]:
        """The shards of a stream that one has followed: one after a split, two after a merge, none otherwise.

        Raises:
            ServiceError: there is no such shard, or the key may not describe the stream.
            CodecError: the answer is about another shard.
        """
        message = table_pb2.DescribeStreamRequest(stream_id=stream_id, inclusive_start_shard_id=shard_id, shard_limit=1)
        answer, _ = await self._caller.call(TABLE_OPERATIONS["DescribeStream"], message, retry=CALL_RETRY)
        shard = next((shard for shard in answer.shards if shard.shard_id == shard_id), None)
        if shard is None:
            raise CodecError(f"DescribeStreamResponse does not list shard {shard_id}, which was asked for")
        return tuple(parent for parent in (shard.parent_id, shard.parent_sibling_id) if parent)

    async def close(self) -> None:
        """Close the transport."""
        await self._caller.close()

    async def _call(
        self, name: str, message: Message, *, before_send: Callable[[], None] | None = None
    ) -> tuple[Any, HttpResponse]:
        return await self._caller.call(TUNNEL_OPERATIONS[name], message, retry=CALL_RETRY, before_send=before_send)


def _read_page(operation: Operation, response: HttpResponse) -> tuple[PageContent, float]:
    """The page, and the seconds for decoding it."""
    began = time.perf_counter()
    content = read_page(body_of(operation, response))
    if not content.next_token:
        raise CodecError("ReadRecordsResponse.next_token is empty: as a checkpoint it would lose the channel's place")
    return content, time.perf_counter() - began
