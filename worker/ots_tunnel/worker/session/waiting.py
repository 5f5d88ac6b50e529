"""Whether a channel that waits for its parents holds changes from before the end time.

Theory of operation. A description does not say whose child a channel is, nor how soon the service gives it to a client.
So neither its status nor any time tells whether somebody has still to read it:

    the child of a channel that stopped at the end time     holds nothing from before it, and is never given out
    the child of a channel that was read to its end         is given out, sooner or later, and may hold such changes

The channel itself tells. The service lets every client read every channel (docs/protocol.md 4.6). Nothing is left of a
channel whose first record was committed after the end time, or which has none in a read that was sent after it. Nothing
is written, and no checkpoint is stored. A verdict never changes while the channel waits, so each channel is looked at
once. A look that meets many empty pages ends without a verdict, and the next one goes on behind them, as long as the
checkpoint stays.

A service that lets only owners read answers 410. Then nothing can be proven, and time has to do
(`completion.CompletionWatch`).

Source: docs/architecture.md 3.4.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Set

from ots_tunnel.errors import CodecError, ResourceGone, ServiceError, TransportError, TunnelError
from ots_tunnel.log_actions import LogAction
from ots_tunnel.model import FINISHED, ChannelId, Token
from ots_tunnel.worker.context import ClientContext
from ots_tunnel.worker.pages.end_time import cut_page

logger = logging.getLogger(__name__)

#: Pages of one look that may be empty and announce more; then the next look goes on.
EMPTY_PAGES = 20


class WaitingChannels:
    """Looks into channels that wait; one client's."""

    def __init__(self, context: ClientContext, end_us: int) -> None:
        self._context = context
        self._end_us = end_us
        #: Channel to whether it holds changes from before the end time.
        self._known: dict[ChannelId, bool] = {}
        #: Channel to its checkpoint, and the token behind the empty pages that were read from there.
        self._reached: dict[ChannelId, tuple[Token, Token]] = {}
        #: Channel to the kind of its last refusal that repeats do not change.
        self._refusals: dict[ChannelId, type[TunnelError]] = {}

    def __repr__(self) -> str:
        return f"WaitingChannels({len(self._known)} known)"

    @property
    def end(self) -> float:
        """The end time, Unix seconds."""
        return self._end_us / 1e6

    async def passed(self, waiting: Iterable[ChannelId], known_time: float, *, settled: bool) -> Set[ChannelId]:
        """The channels that hold nothing from before the end time, up to the first one of which that is not proven.

        Args:
            known_time: the service's clock in an answer that has come, Unix seconds, after the end time.
            settled: whether a channel that nobody but its owner may read counts as one of them.
        """
        found: set[ChannelId] = set()
        for channel_id in waiting:
            try:
                if not await self._is_passed(channel_id, known_time):
                    return found
            except ResourceGone:
                if not settled:
                    return found
            except (TransportError, ServiceError, CodecError) as error:
                self._tell(channel_id, error)
                return found
            found.add(channel_id)
        return found

    def _tell(self, channel_id: ChannelId, error: TunnelError) -> None:
        """Log a refusal that stays, once; the heartbeat reports what passes."""
        if error.retryable or self._refusals.get(channel_id) is type(error):
            return
        self._refusals[channel_id] = type(error)
        fields = {**self._context.log_fields(LogAction.LOOK_REFUSED, channel_id), "error": str(error)}
        logger.warning("a waiting channel cannot be read, so completion is not known: %s", error, extra=fields)

    async def _is_passed(self, channel_id: ChannelId, known_time: float) -> bool:
        if channel_id not in self._known:
            try:
                holds = await self._holds_changes(channel_id, known_time)
            except (ServiceError, CodecError) as error:
                if not error.retryable:  # the token may be the reason, so the next look begins at the checkpoint
                    self._reached.pop(channel_id, None)
                raise
            if holds is None:
                return False
            self._known[channel_id] = holds
        return not self._known[channel_id]

    async def _holds_changes(self, channel_id: ChannelId, known_time: float) -> bool | None:
        """Whether a channel holds changes from before the end time; None is not known yet."""
        context, client = self._context, self._context.client
        ids = (context.settings.tunnel_id, context.client_id, channel_id)
        checkpoint = (await client.get_checkpoint(*ids)).token
        begun_at, token = self._reached.get(channel_id, (checkpoint, checkpoint))
        if begun_at != checkpoint:
            token = checkpoint
        for _ in range(EMPTY_PAGES):
            if token == FINISHED:
                return False
            with await context.worker.budget.reserve():
                page = await client.read_records(*ids, token)
            cut = cut_page(page, self._end_us, known_time)
            if cut.page.records or cut.done:
                return bool(cut.page.records)
            token = page.next_token
            self._reached[channel_id] = checkpoint, token
        return None
