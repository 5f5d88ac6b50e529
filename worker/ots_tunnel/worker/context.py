"""What the channels have in common: limits and sink of the worker, identity and fence of the client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass

from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.errors import TunnelError
from ots_tunnel.fence import Fence
from ots_tunnel.log_actions import LogAction
from ots_tunnel.model import ChannelId, ClientId
from ots_tunnel.rate import RateLimit
from ots_tunnel.sinks import Sink
from ots_tunnel.worker.gaps.guard import GapGuard
from ots_tunnel.worker.pages.budget import ByteBudget
from ots_tunnel.worker.settings import WorkerSettings
from ots_tunnel.worker.status.metrics import WorkerMetrics
from ots_tunnel.worker.status.worker_status import WorkerStatus


@dataclass(frozen=True, slots=True)
class WorkerContext:
    """Sink, metrics and limits of a worker: the same for all of its clients.

    Args:
        slots: channels that read and write at the same time; None means all.
        end_us: Unix microseconds at which stream channels stop; None means never.
        gaps: finds changes that may be missing; None looks for none.
    """

    sink: Sink
    metrics: WorkerMetrics
    budget: ByteBudget
    rate: RateLimit
    slots: asyncio.Semaphore | None = None
    end_us: int | None = None
    gaps: GapGuard | None = None

    def slot(self) -> AbstractAsyncContextManager[None]:
        """A context held from a read until its page is written."""
        return self.slots if self.slots is not None else nullcontext()


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

    def log_fields(self, action: LogAction, channel_id: ChannelId) -> dict[str, object]:
        """The fields of a log line about one channel."""
        return {"action": action, **self.log_ids(channel_id)}

    def log_ids(self, channel_id: ChannelId) -> dict[str, str]:
        """The ids that a log line about one channel carries."""
        return {"tunnel_id": self.settings.tunnel_id, "client_id": self.client_id, "channel_id": channel_id}
