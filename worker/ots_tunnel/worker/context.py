"""What the channels of a worker share: the sink, and the limits they keep together."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass

from ots_tunnel.rate import RateLimit
from ots_tunnel.sinks import Sink
from ots_tunnel.worker.budget import ByteBudget
from ots_tunnel.worker.metrics import WorkerMetrics


@dataclass(frozen=True, slots=True)
class Shared:
    """Sink, metrics and limits of all channels.

    Args:
        slots: channels that read and write at the same time; None means all.
        end_us: Unix microseconds at which stream channels stop; None means never.
    """

    sink: Sink
    metrics: WorkerMetrics
    budget: ByteBudget
    rate: RateLimit
    slots: asyncio.Semaphore | None = None
    end_us: int | None = None

    def slot(self) -> AbstractAsyncContextManager[None]:
        """Held from a read until its page is confirmed."""
        return self.slots if self.slots is not None else nullcontext()
