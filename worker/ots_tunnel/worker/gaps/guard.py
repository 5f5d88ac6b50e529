"""Finds changes that may be missing because nobody read them in time; stops there, or says so and goes on.

Theory of operation. `protocol.possible_gap` decides from a few times; this room brings them together:

    GapGuard         one worker: opens the watches, and reports what they find
    GapWatch         one open channel: asked about every page before the sink gets it
    ServiceView      description of the tunnel, retention of the table

When a channel is opened, the tunnel is described, because the consume point tells what was consumed even where the
service has moved the cursor. A channel that this worker has read before, and whose checkpoint is the token of its last
page, is read until the answer of that page: the consume point of an idle channel may be old. So it is at a token where
it stood for long before records came, since a write that fails leads back there (`watch.KnownTokens`). In each case
the read mark counts where it is later: the operator keeps it while workers come and go (`read_mark`), and a query of
Spark has one for each channel in its log.

The retention is asked for only when a page comes later than a tenth of the shortest retention after what was read
before, and again after six minutes, since it may be lowered. The same answer tells since when the stream is enabled:
nothing can be missing of what came before a stream that is as old as the tunnel.

With `Stop` a possible gap ends the worker. Nothing behind it is written and no checkpoint passes it, so the next worker
finds it again. With `Continue` it is logged, counted and shown in the status.

Source: docs/architecture.md 3.8.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.errors import PossibleGap
from ots_tunnel.fence import boottime
from ots_tunnel.log_actions import LogAction
from ots_tunnel.model import ChannelId, Checkpoint, Token
from ots_tunnel.protocol.possible_gap import Gap, needs_parents, read_until
from ots_tunnel.worker.gaps.service_view import ServiceView
from ots_tunnel.worker.gaps.watch import GapWatch, WatchParts
from ots_tunnel.worker.settings import WorkerSettings
from ots_tunnel.worker.status.metrics import WorkerMetrics
from ots_tunnel.worker.status.worker_status import WorkerStatus

logger = logging.getLogger(__name__)

#: Tells nothing of what was read.
NO_TOKEN: Final = Token("")


class GapGuard:
    """What the channels of one worker share; channels may ask at the same time.

    Args:
        read_mark: until when a channel was certainly read, as others tell now, Unix seconds; None is unknown.
        clock: seconds that count suspended time. wall: Unix seconds, where an answer has no time.
    """

    def __init__(
        self,
        client: TunnelClient,
        settings: WorkerSettings,
        status: WorkerStatus,
        metrics: WorkerMetrics,
        read_mark: Callable[[ChannelId], float | None],
        *,
        clock: Callable[[], float] = boottime,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._settings = settings
        self._status = status
        self._metrics = metrics
        self._read_mark = read_mark
        self._parts = WatchParts(ServiceView(client, settings, clock), self._found, {}, wall)

    def __repr__(self) -> str:
        return f"GapGuard({self._settings.tunnel_id}, {len(self._parts.known)} channels)"

    async def watch(
        self, channel_id: ChannelId, checkpoint: Checkpoint, refused_at: Checkpoint | None = None
    ) -> GapWatch:
        """The watch of a stream channel that is opened at a checkpoint.

        Args:
            refused_at: last checkpoint of this worker, where the service has dropped the records behind it. The other
                one is the service's then, and its time tells nothing of what was read.

        Raises:
            TransportError, ServerUnavailable: the tunnel cannot be described at present.
        """
        until = await self._read_until(channel_id, refused_at or checkpoint)
        return GapWatch(self._parts, channel_id, checkpoint.token, until, was_refused=refused_at is not None)

    async def _read_until(self, channel_id: ChannelId, checkpoint: Checkpoint) -> float | None:
        known = self._parts.known.get(channel_id)
        until = known.at(checkpoint.token) if known is not None else None
        if until is None:
            # the cursor that no client has stored is the service's, also where it has moved it behind what is gone
            token = checkpoint.token if checkpoint.sequence_number > 0 else NO_TOKEN
            tunnel = await self._parts.service.tunnel(channel_id)
            parents: tuple[str, ...] = ()
            if tunnel is not None and needs_parents(channel_id, token, tunnel):
                parents = await self._parts.service.parents(channel_id)
            until = read_until(channel_id, token, tunnel, parents=parents, mark=self._read_mark(channel_id))
        elif (mark := self._read_mark(channel_id)) is not None:
            until = max(until, mark)  # a sibling has read the channel since, and its token did not move
        return until

    def _found(self, channel_id: ChannelId, gap: Gap) -> None:
        """Report a possible gap.

        Raises:
            PossibleGap: the settings say Stop.
        """
        error = PossibleGap(channel_id, gap.start, gap.end)
        self._status.possible_gaps[channel_id] = gap
        self._metrics.possible_gap()
        if self._settings.on_possible_gap == "Stop":
            raise error
        fields = {"tunnel_id": self._settings.tunnel_id, "channel_id": channel_id, "error": str(error)}
        logger.warning("going on behind a possible gap", extra={"action": LogAction.POSSIBLE_GAP, **fields})
