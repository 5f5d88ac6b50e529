"""Opens a channel: reads its checkpoint, and finds out what was consumed before."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from ots_tunnel.log_actions import LogAction
from ots_tunnel.model import FINISHED, ChannelId, ChannelType, Checkpoint
from ots_tunnel.worker.context import ConsumerContext, Cursor
from ots_tunnel.worker.gaps.watch import GapWatch

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Opened:
    """A channel at its checkpoint.

    Args:
        gaps: asked about every page; None where no changes can be missing.
    """

    checkpoint: Checkpoint
    gaps: GapWatch | None


class Opening:
    """The calls that open one channel; `stop` cancels them."""

    def __init__(self, context: ConsumerContext, channel_id: ChannelId, cursor: Cursor) -> None:
        self._context = context
        self._channel_id = channel_id
        self._cursor = cursor
        self._limit: asyncio.Timeout | None = None

    def __repr__(self) -> str:
        return f"Opening({self._channel_id})"

    def stop(self) -> None:
        """Cancel the call under way."""
        if self._limit is not None:
            self._limit.reschedule(asyncio.get_running_loop().time())

    async def run(self, refused_at: Checkpoint | None = None) -> Opened | None:
        """The channel at its checkpoint, or None when the order to stop came first.

        Args:
            refused_at: last checkpoint of this worker, where the service has dropped the records behind it.

        Raises:
            TransportError, ServiceError, CodecError: the service does not say where the channel is.
            PossibleGap: nothing is left of records that were not read, and the settings say Stop.
        """
        try:
            async with asyncio.timeout(None) as limit:
                self._limit = limit
                checkpoint = await self._cursor.get()
                opened = Opened(checkpoint, await self._watch_gaps(checkpoint, refused_at))
        except TimeoutError:
            if not limit.expired():
                raise
            return None
        finally:
            self._limit = None
        sequence = checkpoint.sequence_number
        if sequence > 0 and refused_at is None:
            self._context.taken_over()
        fields = self._context.log_fields(LogAction.CHANNEL_OPENED, self._channel_id)
        logger.info("channel: at sequence number %d", sequence, extra=fields)
        return opened

    async def _watch_gaps(self, checkpoint: Checkpoint, refused_at: Checkpoint | None) -> GapWatch | None:
        guard = self._context.worker.gaps
        if guard is None or self._context.channel_type(self._channel_id, checkpoint.token) is not ChannelType.STREAM:
            return None
        is_over = checkpoint.token == FINISHED
        if is_over and checkpoint.sequence_number > 0 and refused_at is None:
            return None  # a client has read it to its end
        watch = await guard.watch(self._channel_id, checkpoint, refused_at)
        if is_over:
            await watch.nothing_left(self._context.worker.end_us)
        return watch
