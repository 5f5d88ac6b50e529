"""What the channels have in common: limits and sink of the worker, identity and fence of the client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Protocol

from ots_tunnel.client.page import Page
from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.errors import TunnelError
from ots_tunnel.fence import ChannelFence, Fence
from ots_tunnel.log_actions import LogAction
from ots_tunnel.model import ChannelId, ChannelType, ClientId, Token
from ots_tunnel.protocol.token import channel_type
from ots_tunnel.rate import RateLimit
from ots_tunnel.sinks import Deferred, Sink
from ots_tunnel.transport import BeforeAnswer
from ots_tunnel.worker.gaps.guard import GapGuard
from ots_tunnel.worker.pages.budget import ByteBudget
from ots_tunnel.worker.progress.checkpointer import CheckpointStore
from ots_tunnel.worker.progress.cursor import ChannelCursor
from ots_tunnel.worker.settings import WorkerSettings
from ots_tunnel.worker.status.metrics import WorkerMetrics
from ots_tunnel.worker.status.source_clock import SourceClock
from ots_tunnel.worker.status.worker_status import WorkerStatus


@dataclass(frozen=True, slots=True)
class WorkerContext:
    """Sink, metrics and limits of a worker: the same for all of its clients.

    Args:
        slots: channels that read and write at the same time; None means all.
        end_us: Unix microseconds at which stream channels stop; None means never.
        gaps: finds changes that may be missing; None looks for none.
        clock: of the service, as the pages tell it.
    """

    sink: Sink
    metrics: WorkerMetrics
    budget: ByteBudget
    rate: RateLimit
    slots: asyncio.Semaphore | None = None
    end_us: int | None = None
    gaps: GapGuard | None = None
    clock: SourceClock = field(default_factory=SourceClock)

    def slot(self) -> AbstractAsyncContextManager[None]:
        """A context held from a read until its page is written."""
        return self.slots if self.slots is not None else nullcontext()


class ReadsPages(Protocol):
    """The records of one channel."""

    async def read(self, token: Token, before_answer: BeforeAnswer) -> Page:
        """Read the page at a token; repeats calls that fail.

        Args:
            before_answer: awaited when an answer begins, before its page is in memory.
        """
        ...


class Cursor(CheckpointStore, ReadsPages, Protocol):
    """The checkpoint and the records of one channel."""


class ConsumerContext(Protocol):
    """What the consumption of a channel needs of its holder: a client of a tunnel, or a worker with a lease."""

    @property
    def settings(self) -> WorkerSettings:
        """Times of the checkpoints and of the fence."""
        ...

    @property
    def worker(self) -> WorkerContext:
        """Sink, metrics and limits."""
        ...

    @property
    def beat_soon(self) -> Callable[[], None]:
        """Called when the channel may have another owner."""
        ...

    @property
    def end_worker(self) -> Callable[[TunnelError], None]:
        """Called with an error that opening the channel again cannot fix."""
        ...

    def cursor(self, channel_id: ChannelId, fence: ChannelFence) -> Cursor:
        """The calls of one channel."""
        ...

    def channel_type(self, channel_id: ChannelId, token: Token) -> ChannelType:
        """Type of a channel whose checkpoint is `token`."""
        ...

    def taken_over(self) -> None:
        """A channel was opened that another owner has read before."""
        ...

    def log_fields(self, action: LogAction, channel_id: ChannelId) -> dict[str, object]:
        """The fields of a log line about one channel."""
        ...

    def log_ids(self, channel_id: ChannelId) -> dict[str, str]:
        """The ids that a log line about one channel carries."""
        ...


@dataclass(frozen=True, slots=True)
class ClientContext:
    """One connected client: the same for all channels of a session.

    Args:
        beat_soon: called when a channel has something to report; the next heartbeat may come early.
        end_worker: called with an error that a new client cannot fix; the worker drains and raises it.
    """

    client: TunnelClient
    client_id: ClientId
    settings: WorkerSettings
    fence: Fence
    worker: WorkerContext
    status: WorkerStatus
    beat_soon: Callable[[], None]
    end_worker: Callable[[TunnelError], None]

    def cursor(self, channel_id: ChannelId, fence: ChannelFence) -> ChannelCursor:
        """See `ConsumerContext.cursor`."""
        ids = (self.settings.tunnel_id, self.client_id, channel_id)
        # Only what is stored later can be replaced by a replay; what is written at once is only written again.
        replaces = isinstance(self.worker.sink, Deferred) and self.worker.sink.sends
        return ChannelCursor(self.client, ids, timeout=self.settings.write_deadline, guard=fence, doubts=replaces)

    def channel_type(self, channel_id: ChannelId, token: Token) -> ChannelType:
        """See `ConsumerContext.channel_type`."""
        return channel_type(channel_id, token)

    def taken_over(self) -> None:
        """See `ConsumerContext.taken_over`."""
        self.status.hand_overs += 1
        self.worker.metrics.handed_over("taken")

    def log_fields(self, action: LogAction, channel_id: ChannelId) -> dict[str, object]:
        """The fields of a log line about one channel."""
        return {"action": action, **self.log_ids(channel_id)}

    def log_ids(self, channel_id: ChannelId) -> dict[str, str]:
        """The ids that a log line about one channel carries."""
        return {"tunnel_id": self.settings.tunnel_id, "client_id": self.client_id, "channel_id": channel_id}
