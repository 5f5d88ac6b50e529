"""Calls on tunnels that block, for scripts and commands. Source: docs/protocol.md 2 and 4."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import Message

from ots_tunnel.client.answered import check_answered
from ots_tunnel.client.caller import SyncServiceCaller
from ots_tunnel.credentials import CredentialsProvider, provider_of
from ots_tunnel.endpoint import check_place
from ots_tunnel.model import Credentials, StreamConfig, TunnelDescription, TunnelId, TunnelInfo, TunnelType
from ots_tunnel.protocol import messages
from ots_tunnel.protocol import tunnel_pb2 as pb
from ots_tunnel.protocol.backoff import CALL_RETRY
from ots_tunnel.protocol.http.message import HttpResponse
from ots_tunnel.protocol.http.operations import TUNNEL_OPERATIONS
from ots_tunnel.protocol.http.rpc import service_time
from ots_tunnel.transport.sync import BlockingTransport, SyncTransport


class SyncTunnelClient:
    """Calls on tunnels, blocking, for scripts and commands; threads can share a client.

    Args:
        endpoint: `http(s)://host[:port]`.
        credentials: a pair, or a function that returns one; called before every try.
        transport: None creates one that keeps connections alive; it is closed with the client.

    Raises:
        ConfigError: endpoint, instance or credentials are not valid.
    """

    def __init__(
        self,
        endpoint: str,
        instance: str,
        credentials: CredentialsProvider | Credentials,
        transport: BlockingTransport | None = None,
    ) -> None:
        check_place(endpoint, instance)
        self.endpoint = endpoint
        self.instance = instance
        self.credentials = provider_of(credentials)
        self._caller = SyncServiceCaller(transport or SyncTransport(endpoint), instance, self.credentials)

    def __repr__(self) -> str:
        return f"SyncTunnelClient({self.instance} at {self.endpoint})"

    def create_tunnel(
        self, table: str, name: str, tunnel_type: TunnelType, stream: StreamConfig | None = None
    ) -> TunnelId:
        """See `TunnelClient.create_tunnel`."""
        message = messages.create_tunnel_request(table, name, tunnel_type, stream)
        answer, _ = self._call("CreateTunnel", message)
        return TunnelId(answer.tunnel_id)

    def delete_tunnel(self, table: str, name: str, tunnel_id: TunnelId | None = None) -> None:
        """See `TunnelClient.delete_tunnel`."""
        message = pb.DeleteTunnelRequest(table_name=table, tunnel_name=name, tunnel_id=tunnel_id)
        _, response = self._call("DeleteTunnel", message)
        check_answered("DeleteTunnel", response)

    def list_tunnels(self, table: str) -> tuple[TunnelInfo, ...]:
        """See `TunnelClient.list_tunnels`."""
        answer, response = self._call("ListTunnel", pb.ListTunnelRequest(table_name=table))
        check_answered("ListTunnel", response)
        return tuple(messages.tunnel_info_from_wire(tunnel) for tunnel in answer.tunnels)

    def describe_tunnel(self, table: str, name: str, tunnel_id: TunnelId | None = None) -> TunnelDescription:
        """See `TunnelClient.describe_tunnel`."""
        message = pb.DescribeTunnelRequest(table_name=table, tunnel_name=name, tunnel_id=tunnel_id)
        answer, response = self._call("DescribeTunnel", message)
        return messages.description_from_wire(answer, service_time(response))

    def close(self) -> None:
        """Close the transport."""
        self._caller.close()

    def _call(self, name: str, message: Message) -> tuple[Any, HttpResponse]:
        return self._caller.call(TUNNEL_OPERATIONS[name], message, retry=CALL_RETRY)
