"""Tunnels: channels and their states, clients, checkpoints.

All changes of a channel's status happen here. `delivery` reads its records, `scheduler` decides which client gets it.

Source: docs/protocol.md 4.1 to 4.6; docs/architecture.md 3.5.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from ots_emulator.refusal import Refusal, client_gone, parameter_invalid, tunnel_expired
from ots_emulator.tunnels.channel import Client, TunnelChannel
from ots_emulator.tunnels.scheduler import Seat, schedule
from ots_tunnel.model import (
    Channel,
    ChannelId,
    ChannelStatus,
    ChannelType,
    ClientId,
    Stage,
    StreamConfig,
    Token,
    TunnelId,
    TunnelType,
)

#: Versions only grow, and must fit into int64.
VERSION_LIMIT: Final = 1 << 62


@dataclass(slots=True, eq=False)
class Tunnel:
    """One tunnel with its channels and clients."""

    id: TunnelId
    name: str
    type: TunnelType
    table_name: str
    config: StreamConfig | None
    created_ns: int
    ready_at: float
    """When it leaves its first stage."""
    channels: dict[ChannelId, TunnelChannel] = field(default_factory=dict)
    clients: dict[ClientId, Client] = field(default_factory=dict)
    expired: bool = False
    assigned_at: float = 0.0
    """When channels were assigned last, where that is limited."""

    def __repr__(self) -> str:
        return f"Tunnel({self.name}, {self.type.name}, {len(self.channels)} channels, {len(self.clients)} clients)"

    # Description

    def is_ready(self, now: float) -> bool:
        """Whether channels can be seen and consumed."""
        return now >= self.ready_at

    def stage(self, now: float) -> Stage:
        """Return the stage; a base tunnel that is done is in stage STREAM (docs/protocol.md 4.1)."""
        if not self.is_ready(now):
            return Stage.INIT
        return Stage.BASE if self._base_unfinished() else Stage.STREAM

    def channel(self, channel_id: str) -> TunnelChannel:
        """Return a channel.

        Raises:
            Refusal: there is none of this id.
        """
        channel = self.channels.get(ChannelId(channel_id))
        if channel is None:
            raise parameter_invalid(f"[tunnelservice] channel not exist: {channel_id}")
        return channel

    def consume_point_ns(self) -> int:
        """Return the consume point of the slowest stream channel, 0 when nothing has been consumed.

        Finished channels, and children whose parents are not finished, do not count: other channels stand for them.
        """
        streams = [channel for channel in self.channels.values() if channel.type is ChannelType.STREAM]
        active = [
            channel
            for channel in streams
            if channel.status is not ChannelStatus.TERMINATED and self._parents_done(channel)
        ]
        if not active:
            return max((channel.consume_point_ns for channel in streams), default=0)
        return min(self._reached_ns(channel) for channel in active)

    def _reached_ns(self, channel: TunnelChannel) -> int:
        # A child starts where its parents ended.
        parents = (self.channels.get(ChannelId(parent)) for parent in channel.parents)
        return max([channel.consume_point_ns, *(parent.consume_point_ns for parent in parents if parent is not None)])

    # Clients

    def connect(self, tag: str, timeout: float, now: float) -> Client:
        """Register a client."""
        self.check_alive()
        self.expire_clients(now)
        client = Client(ClientId(f"{tag}-{uuid.uuid4()}" if tag else str(uuid.uuid4())), timeout, now)
        self.clients[client.id] = client
        return client

    def heartbeat(
        self, client_id: str, reports: Sequence[Channel], now: float, assign_interval: float = 0.0
    ) -> list[Channel]:
        """Accept a client's report and return the channels it holds now; all scheduling happens here.

        Args:
            assign_interval: least seconds between two assignments.

        Raises:
            Refusal: the client is unknown or timed out, the tunnel has expired, or a version is too high.
        """
        self.check_alive()
        client = self.clients.get(ClientId(client_id))
        if client is None or now - client.last_seen > client.timeout:
            self.expire_clients(now)
            raise client_gone()
        client.last_seen = now
        # All of them before the first is accepted.
        for report in reports:
            if report.version > VERSION_LIMIT:
                text = f"[tunnelservice] version {report.version} of channel {report.channel_id} is too high"
                raise parameter_invalid(text)
        for report in reports:
            self._accept(client.id, report)
        self.expire_clients(now)
        if now - self.assigned_at >= assign_interval:
            self._schedule(now)
            self.assigned_at = now if assign_interval else 0.0
        return [
            Channel(channel.id, channel.version, channel.status)
            for channel in self.channels.values()
            if channel.owner == client.id
        ]

    def shutdown(self, client_id: str) -> None:
        """Remove a client and free its channels; an unknown one is ignored."""
        client = self.clients.pop(ClientId(client_id), None)
        if client is not None:
            self._free(client.id)

    def expire_clients(self, now: float) -> None:
        """Remove clients that sent no heartbeat within their timeout."""
        for client in list(self.clients.values()):
            if now - client.last_seen > client.timeout:
                self.shutdown(client.id)

    def clock_set_back(self, now: float, init_delay: float) -> None:
        """Let stage and clients wait from now on where their times lie in the future."""
        self.ready_at = min(self.ready_at, now + init_delay)
        self.assigned_at = min(self.assigned_at, now)
        for client in self.clients.values():
            client.last_seen = min(client.last_seen, now)

    def check_alive(self) -> None:
        """Refuse when the tunnel has expired.

        Raises:
            Refusal: OTSTunnelExpired.
        """
        if self.expired:
            raise tunnel_expired()

    def _free(self, client_id: ClientId) -> None:
        for channel in self.channels.values():
            if channel.owner == client_id:
                channel.turn(ChannelStatus.CLOSE, None)

    # Channels

    def add(self, channel: TunnelChannel) -> None:
        """Add a channel, at creation or when a partition splits."""
        self.channels[channel.id] = channel

    def checkpoint(self, channel: TunnelChannel, token: Token, sequence: int) -> None:
        """Store a checkpoint; sequence number 0 is not checked and not stored (docs/protocol.md 4.6).

        Raises:
            Refusal: the sequence number is not newer than the stored one.
        """
        if sequence != 0 and sequence <= channel.sequence:
            text = f"[tunnelservice] sequence number {sequence} is not greater than {channel.sequence}"
            raise Refusal("OTSSequenceNumberNotMatch", text)
        channel.sequence = max(channel.sequence, sequence)
        channel.token = token

    def take_back(self, channel: TunnelChannel) -> None:
        """Ask the owner of an open channel to close it."""
        if channel.status is ChannelStatus.OPEN:
            channel.turn(ChannelStatus.CLOSING, channel.owner)

    def suspend(self, channel: TunnelChannel) -> None:
        """Take a channel back and assign it to no client until `resume`."""
        channel.suspended = True
        channel.forced = False
        self.take_back(channel)

    def resume(self, channel: TunnelChannel) -> None:
        """Assign a channel again, also one that waits for its parents."""
        channel.suspended = False
        channel.forced = channel.status is ChannelStatus.WAIT

    def terminate(self, channel: TunnelChannel) -> None:
        """End a channel without consuming the rest."""
        channel.turn(ChannelStatus.TERMINATED, None)

    def _accept(self, client_id: ClientId, report: Channel) -> None:
        channel = self.channels.get(report.channel_id)
        if channel is None or channel.owner != client_id:
            return
        ends = report.status in (ChannelStatus.CLOSE, ChannelStatus.TERMINATED)
        # Both sides may have raised the version at once: the client's end of the channel counts (docs/protocol.md 4.4).
        tied = report.version == channel.version and channel.status is ChannelStatus.CLOSING
        if report.version > channel.version or (tied and ends):
            channel.turn(report.status, None if ends else client_id, version=report.version)

    def _schedule(self, now: float) -> None:
        if not self.is_ready(now):
            return
        base_unfinished = self._base_unfinished()
        seats = [
            Seat(channel.id, channel.status, channel.owner, self._eligible(channel, base_unfinished))
            for channel in self.channels.values()
        ]
        for move in schedule(seats, list(self.clients)):
            self.channels[move.channel_id].turn(move.status, move.client)

    def _eligible(self, channel: TunnelChannel, base_unfinished: bool) -> bool:
        if channel.status is ChannelStatus.TERMINATED or channel.suspended:
            return False
        if channel.forced or channel.type is ChannelType.BASE:
            return True
        return not base_unfinished and self._parents_done(channel)

    def _parents_done(self, channel: TunnelChannel) -> bool:
        # A parent without a channel was complete before the tunnel was created.
        parents = (self.channels.get(ChannelId(parent)) for parent in channel.parents)
        return all(parent is None or parent.status is ChannelStatus.TERMINATED for parent in parents)

    def _base_unfinished(self) -> bool:
        return any(
            channel.type is ChannelType.BASE and channel.status is not ChannelStatus.TERMINATED
            for channel in self.channels.values()
        )
