"""One service, two clients, any interleaving: versions never fall, ends are reported in order.

The service is a short model of docs/protocol.md 4.3 to 4.5; the clients are the channel machine and the merge, wired
as a worker wires them. Answers may arrive late, so reports and changes cross.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from ots_tunnel.model import Channel, ChannelId, ChannelStatus
from ots_tunnel.protocol.assignment import merge
from ots_tunnel.protocol.channel import (
    Connected,
    ConnectFailed,
    Connection,
    Drain,
    Event,
    Notified,
    PipelineFailed,
    PipelineFinished,
    PipelineStopped,
    Report,
    StartPipeline,
    State,
    StopPipeline,
    StopReason,
    Vanished,
    step,
)

IDS = [ChannelId(f"channel-{number}") for number in range(3)]
CLIENTS = ["one", "two"]
UNDER_WAY = (State.CONNECTING, State.RUNNING, State.CLOSING)
ALIVE = (ChannelStatus.OPEN, ChannelStatus.CLOSING)
OVER = (ChannelStatus.CLOSE, ChannelStatus.TERMINATED)


@dataclass
class Service:
    channels: dict[ChannelId, Channel] = field(
        default_factory=lambda: {key: Channel(key, 0, ChannelStatus.CLOSE) for key in IDS}
    )
    owners: dict[ChannelId, str] = field(default_factory=dict)
    durable: set[ChannelId] = field(default_factory=set)

    def change(self, key: ChannelId, status: ChannelStatus) -> None:
        self.channels[key] = replace(self.channels[key], version=self.channels[key].version + 1, status=status)

    def heartbeat(self, client: str, reported: list[Channel]) -> list[Channel]:
        for channel in reported:
            stored = self.channels[channel.channel_id]
            if self.owners.get(channel.channel_id) == client and channel.version > stored.version:
                assert channel.status in OVER, "a client only ever reports an end"
                if channel.status is ChannelStatus.TERMINATED:
                    assert channel.channel_id in self.durable, "terminated before its checkpoint was durable"
                self.channels[channel.channel_id] = channel
                del self.owners[channel.channel_id]
        for key, channel in self.channels.items():
            if channel.status is ChannelStatus.CLOSE:
                self.owners[key] = client
                self.change(key, ChannelStatus.OPEN)
        return [
            channel
            for key, channel in self.channels.items()
            if self.owners.get(key) == client and channel.status in ALIVE
        ]


@dataclass
class Client:
    channels: dict[ChannelId, Channel] = field(default_factory=dict)
    connections: dict[ChannelId, Connection] = field(default_factory=dict)
    running: set[ChannelId] = field(default_factory=set)
    #: Channels that have not read their checkpoint yet.
    connecting: set[ChannelId] = field(default_factory=set)
    stopping: dict[ChannelId, StopReason] = field(default_factory=dict)
    waiting: list[Channel] | None = None

    def receive(self, answer: list[Channel]) -> None:
        found = merge(self.channels, answer)
        self.channels = dict(found.channels)
        for key in found.vanished:
            if key in self.connections:
                self.feed(key, Vanished())
                del self.connections[key]
        for key in found.fresh:
            assert key not in self.running, "a fresh connection while the old pipeline runs"
            self.connections[key] = Connection(self.channels[key])
        for key, channel in self.channels.items():
            if key in self.connections:
                self.feed(key, Notified(channel))

    def feed(self, key: ChannelId, event: Event) -> None:
        before = self.connections[key]
        after, effects = step(before, event)
        assert after.channel.version >= before.channel.version
        self.connections[key] = after
        for effect in effects:
            match effect:
                case StartPipeline():
                    assert key not in self.running, "a second pipeline"
                    self.running.add(key)
                    self.connecting.add(key)
                case StopPipeline(StopReason.OWNERSHIP_LOST):
                    # Bounded by fencing in the worker; here it is at once.
                    self.running.discard(key)
                    self.connecting.discard(key)
                    self.stopping.pop(key, None)
                case StopPipeline(reason):
                    self.stopping[key] = reason
                case Report(channel):
                    known = self.channels.get(channel.channel_id)
                    if known is not None and channel.version > known.version:
                        self.channels[channel.channel_id] = channel

    def end(self, key: ChannelId, event: Event) -> None:
        self.running.discard(key)
        self.connecting.discard(key)
        self.stopping.pop(key, None)
        self.feed(key, event)


class ChannelMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.service = Service()
        self.clients = {name: Client() for name in CLIENTS}
        self.highest = dict.fromkeys(IDS, 0)

    @rule(name=st.sampled_from(CLIENTS))
    def heartbeat_reaches_the_service(self, name: str) -> None:
        client = self.clients[name]
        if client.waiting is None:
            client.waiting = self.service.heartbeat(name, list(client.channels.values()))

    @rule(name=st.sampled_from(CLIENTS))
    def answer_reaches_the_client(self, name: str) -> None:
        client = self.clients[name]
        if client.waiting is not None:
            answer, client.waiting = client.waiting, None
            client.receive(answer)

    @rule(key=st.sampled_from(IDS))
    def service_rebalances(self, key: ChannelId) -> None:
        if self.service.channels[key].status is ChannelStatus.OPEN:
            self.service.change(key, ChannelStatus.CLOSING)

    @rule(
        name=st.sampled_from(CLIENTS), key=st.sampled_from(IDS), event=st.sampled_from([Connected(), ConnectFailed()])
    )
    def checkpoint_is_read_or_not(self, name: str, key: ChannelId, event: Event) -> None:
        client = self.clients[name]
        if key in client.connecting:
            client.connecting.discard(key)
            if isinstance(event, Connected):
                client.feed(key, event)
            else:
                client.end(key, event)

    @rule(
        name=st.sampled_from(CLIENTS),
        key=st.sampled_from(IDS),
        event=st.sampled_from([PipelineFinished(), PipelineFailed()]),
    )
    def pipeline_ends_by_itself(self, name: str, key: ChannelId, event: Event) -> None:
        client = self.clients[name]
        if key in client.running - client.connecting:
            if isinstance(event, PipelineFinished):
                self.service.durable.add(key)
            client.end(key, event)

    @rule(name=st.sampled_from(CLIENTS), key=st.sampled_from(IDS))
    def pipeline_obeys(self, name: str, key: ChannelId) -> None:
        if key in self.clients[name].stopping:
            self.clients[name].end(key, PipelineStopped())

    @rule(name=st.sampled_from(CLIENTS), key=st.sampled_from(IDS))
    def worker_drains(self, name: str, key: ChannelId) -> None:
        if key in self.clients[name].connections:
            self.clients[name].feed(key, Drain())

    @invariant()
    def versions_never_fall(self) -> None:
        for key, channel in self.service.channels.items():
            assert channel.version >= self.highest[key]
            self.highest[key] = channel.version

    @invariant()
    def a_channel_has_one_pipeline(self) -> None:
        running = [key for client in self.clients.values() for key in client.running]
        assert len(running) == len(set(running))

    @invariant()
    def connections_agree_with_what_is_reported(self) -> None:
        for client in self.clients.values():
            for key, connection in client.connections.items():
                assert client.channels[key] == connection.channel
                assert (key in client.running) == (connection.state in UNDER_WAY)

    @invariant()
    def a_running_pipeline_owns_its_channel(self) -> None:
        for name, client in self.clients.items():
            assert all(self.service.owners.get(key) == name for key in client.running)

    def teardown(self) -> None:
        """Left alone, every finished channel is terminated and the others are all served."""
        for _ in range(4):
            for name, client in self.clients.items():
                client.receive(client.waiting or self.service.heartbeat(name, list(client.channels.values())))
                client.waiting = None
                for key in list(client.stopping):
                    client.end(key, PipelineStopped())
        for key, channel in self.service.channels.items():
            assert channel.status in (ChannelStatus.OPEN, ChannelStatus.TERMINATED)
            if channel.status is ChannelStatus.OPEN:
                assert key in self.clients[self.service.owners[key]].running


TestChannelMachine = ChannelMachine.TestCase
