"""One channel between a scripted service and a sink, fed with heartbeat answers by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import cast

from ots_tunnel.client.page import Page
from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.errors import ConnectionLost, SequenceNumberMismatch, TunnelError
from ots_tunnel.fence import Fence
from ots_tunnel.model import (
    FINISHED,
    Action,
    Channel,
    ChannelId,
    ChannelStatus,
    Checkpoint,
    ClientId,
    SequenceInfo,
    Token,
    TunnelId,
)
from ots_tunnel.protocol import channel as machine
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.record import Record
from ots_tunnel.protocol.token import TokenContent, build_token, parse_token
from ots_tunnel.rate import RateLimit
from ots_tunnel.sinks import Batch, Guard, Immediate, Sink
from ots_tunnel.transport import BeforeAnswer
from ots_tunnel.worker.channel.task import ChannelTask
from ots_tunnel.worker.context import ClientContext, WorkerContext
from ots_tunnel.worker.pages.budget import ByteBudget, Share
from ots_tunnel.worker.pages.read_page import ReadPage
from ots_tunnel.worker.settings import WorkerSettings
from ots_tunnel.worker.status.metrics import WorkerMetrics
from ots_tunnel.worker.status.worker_status import WorkerStatus
from tests.support.waiting import until

CHANNEL = ChannelId("4873ae54_1")
SETTINGS = WorkerSettings(TunnelId("tunnel"), interval=10, timeout=40, checkpoint_interval=60, drain=100)


def at(name: str) -> Token:
    """Token of a named position in the stream; channels begin at `t0`."""
    return FINISHED if name == FINISHED else build_token(TokenContent(iterator=name))


def name_of(token: Token) -> str:
    """The name of a position."""
    return token if token == FINISHED else parse_token(token).iterator


def page(rows: int, following: str, may_more: bool | None = None) -> Page:
    """A page of `rows` records."""
    records = [Record(Action.PUT, encode_row((("pk", f"k{n}"),), (Column("n", n, 1),))) for n in range(rows)]
    return Page(records, at(following), may_more, 1000 * rows, None)


def read_page(answer: Page, position: SequenceInfo | None = None) -> ReadPage:
    """A page that a channel has read; `position` is that of its last record."""
    return ReadPage(at("t0"), answer.next_token, answer, Share(ByteBudget(0), 0), position)


@dataclass
class ScriptedService:
    """The service as one channel sees it: pages by position, one cursor, errors by call, or by call and position."""

    pages: dict[str, Page]
    stored: Checkpoint = field(default_factory=lambda: Checkpoint(at("t0"), 7))
    errors: dict[str, list[Exception]] = field(default_factory=dict)
    latency: dict[str, float] = field(default_factory=dict)
    events: list[str] = field(default_factory=list)

    async def get_checkpoint(self, *ids: object) -> Checkpoint:
        await self._inject("get")
        return self.stored

    async def read_records(
        self,
        tunnel_id: object,
        client_id: object,
        channel_id: object,
        token: Token,
        *,
        before_answer: BeforeAnswer | None = None,
    ) -> Page:
        await self._inject("read", name_of(token))
        if name_of(token) not in self.pages:
            raise ConnectionLost(f"no page at {name_of(token)}")
        return self.pages[name_of(token)]

    async def checkpoint(
        self, *ids_and_checkpoint: object, timeout: float, before_send: Callable[[], None] | None = None
    ) -> None:
        checkpoint = cast("Checkpoint", ids_and_checkpoint[-1])
        if before_send is not None:
            before_send()
        await self._inject("put", name_of(checkpoint.token))
        if checkpoint.sequence_number <= self.stored.sequence_number:
            raise SequenceNumberMismatch("OTSSequenceNumberNotMatch", "stale")
        self.stored = checkpoint
        self.events.append(f"stored {name_of(checkpoint.token)}")

    async def _inject(self, call: str, *what: str) -> None:
        where = " ".join((call, *what))
        self.events.append(where)
        await asyncio.sleep(self.latency.get(call, 0.001))
        for key in (call, where):
            if self.errors.get(key):
                raise self.errors[key].pop(0)


@dataclass
class CursorOf:
    """The service's calls for one channel, for a checkpointer or a reader without a `ChannelTask`."""

    service: ScriptedService

    async def get(self) -> Checkpoint:
        return await self.service.get_checkpoint()

    async def put(self, checkpoint: Checkpoint) -> None:
        await self.service.checkpoint(checkpoint, timeout=10)

    async def read(self, token: Token, before_answer: BeforeAnswer) -> Page:
        return await self.service.read_records("", "", "", token, before_answer=before_answer)


@dataclass
class EventSink(Immediate):
    """A sink that writes slowly, or waits for a gate."""

    events: list[str]
    delay: float = 0
    gate: asyncio.Event | None = None
    error: Exception | None = None
    begin_error: BaseException | None = None

    async def open(self) -> None: ...

    async def begin(self, *channel: object) -> None:
        if self.begin_error is not None:
            raise self.begin_error

    async def write(self, batch: Batch, guard: Guard) -> None:
        guard.check()
        self.events.append(f"write {name_of(batch.start)}")
        try:
            await asyncio.sleep(self.delay)
            if self.gate is not None:
                await self.gate.wait()
            if self.error is not None:
                raise self.error
        except asyncio.CancelledError:
            self.events.append(f"cancelled {name_of(batch.start)}")
            raise
        self.events.append(f"wrote {name_of(batch.start)}")

    async def close(self) -> None: ...


class ChannelScene:
    """One `ChannelTask` between a scripted service and a sink, fed with heartbeat answers by hand."""

    def __init__(
        self, service: ScriptedService, sink: Sink, *, slots: asyncio.Semaphore | None = None, **settings: object
    ) -> None:
        clock = asyncio.get_running_loop().time
        self.service = service
        self.fatal: list[TunnelError] = []
        chosen = replace(SETTINGS, **settings)
        metrics = WorkerMetrics("t")
        self.worker = WorkerContext(sink, metrics, ByteBudget(1 << 28), RateLimit(0), slots)
        fence = Fence(chosen.timeout, chosen.interval, clock, clock)
        fence.heartbeat_answered(clock() + 1e6)
        self.context = ClientContext(
            cast("TunnelClient", service),
            ClientId("client"),
            chosen,
            fence,
            self.worker,
            WorkerStatus("tunnel", "tag", metrics),
            beat_soon=self._beat_soon,
            end_worker=self.fatal.append,
        )
        self.channel: ChannelTask
        self._task: asyncio.Task[None] | None = None

    def _beat_soon(self) -> None:
        self.service.events.append(f"report {self.channel.channel.status.name}")

    def open(self, channel_id: ChannelId = CHANNEL) -> ChannelTask:
        """Start the channel and deliver its first heartbeat answer, version 1."""
        self.prepare(channel_id)
        self.notify(ChannelStatus.OPEN, 1)
        return self.channel

    def prepare(self, channel_id: ChannelId = CHANNEL) -> None:
        """Start the channel without a heartbeat answer."""
        self.channel = ChannelTask(self.context, Channel(channel_id, 1, ChannelStatus.OPEN))
        self._task = asyncio.create_task(self.channel.run())

    def notify(self, status: ChannelStatus, version: int) -> None:
        """Deliver a heartbeat answer."""
        self.channel.feed(machine.Notified(Channel(self.channel.channel.channel_id, version, status)))

    async def over(self) -> Channel:
        """Wait for the end of the channel; return what it reports."""
        await until(lambda: self.channel.is_over)
        return self.channel.channel

    def cancel(self) -> None:
        """Cancel the channel's task, as the end of the session does."""
        assert self._task is not None
        self._task.cancel()

    def vanish(self) -> None:
        """Remove the channel, as an answer without it does."""
        self.channel.feed(machine.Vanished())

    @property
    def is_left(self) -> bool:
        """Whether the channel's task has ended."""
        return self._task is not None and self._task.done()

    async def close(self) -> None:
        """Remove the channel, as an answer without it does, and wait for its end."""
        assert self._task is not None
        self.vanish()
        await self._task

    async def leave(self) -> None:
        """As `close`, also after `cancel`."""
        assert self._task is not None
        self.vanish()
        await asyncio.wait([self._task])
