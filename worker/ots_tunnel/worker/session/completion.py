"""Whether a tunnel is complete, as one of its clients sees it.

Without an end time a tunnel is complete when the service has terminated every channel. With one, the service keeps the
channels open, so the worker compares the channels of the tunnel with those that it has read up to the end time; where
all have ended nevertheless, it waits for that time (`ended_early`). A
channel that still waits for its parents counts as done once it is proven that it holds nothing from before the end time
(`waiting.WaitingChannels`): how soon the service gives such a channel out is not known (docs/architecture.md 3.4).
"""

from __future__ import annotations

import asyncio
import enum
import logging
import math
from collections.abc import Callable, Mapping, Set

from ots_tunnel.errors import CodecError, ServiceError, TransportError
from ots_tunnel.log_actions import LogAction
from ots_tunnel.model import (
    ChannelId,
    ChannelStatus,
    ChannelType,
    ClientId,
    Stage,
    TunnelDescription,
    TunnelType,
)
from ots_tunnel.worker.context import ClientContext
from ots_tunnel.worker.progress.channel_progress import ChannelProgress
from ots_tunnel.worker.session.waiting import WaitingChannels

logger = logging.getLogger(__name__)

#: A worker without channels describes the tunnel this many heartbeat intervals apart; the call is expensive.
CHECK_INTERVALS = 3
#: Where only its owner may read a channel: fewest checks, an interval or more apart, that have to find the same ones
#: before a channel that waits counts as the child of one that stopped. They take the heartbeat timeout at least.
SETTLING_CHECKS = 4


class Completion(enum.Enum):
    """How far a tunnel is, as seen by one of its clients."""

    OPEN = "there is something to read"
    OWN_SHARE_DONE = "every channel of this client, and every channel without a client, is done"
    OTHERS_FINISH = "as OWN_SHARE_DONE, and a client whose id sorts first is there to take over the channels"
    ALL = "every channel is done"


def completion(
    tunnel: TunnelDescription, client_id: ClientId | None, done: Set[ChannelId], passed: Set[ChannelId]
) -> Completion:
    """How far a tunnel is.

    Args:
        client_id: the client that wants to know.
        done: its channels that have reached the end time.
        passed: channels that hold nothing from before the end time. One that waits is then the child of a channel that
            stopped, here or at another client, or of one that another client still reads.
    """
    if tunnel.tunnel.stage != Stage.STREAM or not tunnel.channels:
        return Completion.OPEN
    others: set[ClientId] = set()
    waiting = False
    for channel in tunnel.channels:
        if channel.status is ChannelStatus.TERMINATED or channel.channel_id in done:
            continue
        if channel.status is ChannelStatus.WAIT and channel.channel_id in passed:
            waiting = True
            continue
        if channel.client_id and channel.client_id != client_id:
            others.add(channel.client_id)
            continue
        return Completion.OPEN
    if waiting and not done and not others:
        return Completion.OPEN  # no channel stopped, so the service opens the child
    if not others:
        return Completion.ALL
    # Clients keep the channels they have read to the end time. If each waited for the channels of the others, none
    # would ever end; so all but the one whose id sorts first leave.
    leaves = client_id is not None and done and min(others) < client_id
    return Completion.OTHERS_FINISH if leaves else Completion.OWN_SHARE_DONE


def ended_early(tunnel: TunnelDescription, end_us: int, *, settled: bool) -> bool:
    """Whether every channel has ended although changes from before the end time may still come.

    A stream ends before by an end of the tunnel's own, or where it is switched off; or its next channels are not listed
    yet, those behind the existing rows or behind a split. Existing rows alone have no end time.

    Args:
        end_us: the end time.
        settled: whether the tunnel has not changed for a while.
    """
    channels = tunnel.channels
    if tunnel.tunnel.tunnel_type is TunnelType.BaseData:
        return False
    if any(channel.status is not ChannelStatus.TERMINATED for channel in channels):
        return False
    has_stream = any(channel.channel_type is ChannelType.STREAM for channel in channels)
    is_past = tunnel.service_time is not None and tunnel.service_time * 1e6 > end_us
    return not (has_stream and is_past and settled)


class CompletionWatch:
    """Finds out from time to time whether the tunnel is complete, and writes it into the status.

    Args:
        channels: returns the progress of every channel that this client holds.
        on_complete: called when nothing is left to do for this client.
    """

    def __init__(
        self,
        context: ClientContext,
        channels: Callable[[], Mapping[ChannelId, ChannelProgress]],
        on_complete: Callable[[], None],
    ) -> None:
        self._context = context
        self._channels = channels
        self._on_complete = on_complete
        end_us = context.settings.end_us
        self._waiting = None if end_us is None else WaitingChannels(context, end_us)
        #: What the last check found, and how many checks in a row have found it.
        self._found: frozenset[tuple[ChannelId, ChannelStatus, ClientId]] = frozenset()
        self._checks = 0

    def __repr__(self) -> str:
        return f"CompletionWatch({self._context.client_id})"

    def channel_gained(self) -> None:
        """A new channel has to be read first: what was found before holds no longer."""
        status = self._context.status
        status.completed, status.tunnel_done, self._checks = False, False, 0

    async def run(self) -> None:
        """Check until the task is cancelled; a new client knows nothing.

        A worker whose own share is done describes the tunnel further in two cases. With an end time a channel of
        another client may end without a worker. A worker that is to end with the tunnel waits for the others.
        """
        settings, status = self._context.settings, self._context.status
        goes_on = settings.end_us is not None or settings.exit_when_complete
        self.channel_gained()
        while True:
            await asyncio.sleep(settings.interval)
            if self._done() is None:
                self.channel_gained()
            elif settings.tunnel_name and status.is_ready and (goes_on or not status.completed):
                await self._check()

    async def _check(self) -> None:
        """Describe the tunnel and compare; a worker without channels pauses afterwards."""
        context, settings = self._context, self._context.settings
        try:
            tunnel = await context.client.describe_tunnel(settings.table, settings.tunnel_name, settings.tunnel_id)
        except (TransportError, ServiceError, CodecError):
            return  # the heartbeat reports what is wrong
        settled = self._has_settled(tunnel)
        passed = await self._passed(tunnel, settled=settled)
        done = self._done()
        if done is None:
            return  # a channel came during the calls
        early = settings.end_us is not None and ended_early(tunnel, settings.end_us, settled=settled)
        self._apply(Completion.OPEN if early else completion(tunnel, context.client_id, done, passed))
        if not done:
            await asyncio.sleep(settings.interval * (CHECK_INTERVALS - 1))

    async def _passed(self, tunnel: TunnelDescription, *, settled: bool) -> Set[ChannelId]:
        """The waiting channels that hold nothing from before the end time; none unless they alone are left."""
        known_time, done = tunnel.service_time, self._done()
        waiting = [channel.channel_id for channel in tunnel.channels if channel.status is ChannelStatus.WAIT]
        if self._waiting is None or known_time is None or known_time <= self._waiting.end or done is None:
            return frozenset()
        if completion(tunnel, self._context.client_id, done, frozenset(waiting)) is Completion.OPEN:
            return frozenset()
        return await self._waiting.passed(waiting, known_time, settled=settled)

    def _has_settled(self, tunnel: TunnelDescription) -> bool:
        """Count a check; whether as many as it needs have found the same."""
        found = frozenset((channel.channel_id, channel.status, channel.client_id) for channel in tunnel.channels)
        self._checks = self._checks + 1 if found == self._found else 1
        self._found = found
        settings = self._context.settings
        return self._checks > max(SETTLING_CHECKS, math.ceil(settings.timeout / settings.interval))

    def _done(self) -> Set[ChannelId] | None:
        """The channels of this client if each has reached the end time; None if one has not."""
        channels = self._channels()
        return channels.keys() if all(progress.end_reached for progress in channels.values()) else None

    def _apply(self, found: Completion) -> None:
        context = self._context
        before, context.status.completed = context.status.completed, found is not Completion.OPEN
        context.status.tunnel_done = found is Completion.ALL
        if found is Completion.ALL and not before:
            fields = {"tunnel_id": context.settings.tunnel_id, "client_id": context.client_id}
            logger.info("every channel is done", extra={"action": LogAction.COMPLETED, **fields})
        if found in (Completion.ALL, Completion.OTHERS_FINISH):
            self._on_complete()
