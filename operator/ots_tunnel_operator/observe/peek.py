"""Look without a client whether a channel has something to read. Changes nothing at the service.

One page is read from the channel's checkpoint and thrown away: no connection, no heartbeat, no checkpoint. The service
keeps no position of a reader, and does not ask whose channel it is (docs/protocol.md 4.6, 4.7); where it does, the look
fails, and a worker stays.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial

from ots_tunnel.errors import CodecError
from ots_tunnel.model import FINISHED, ChannelId, ClientId, TunnelId
from ots_tunnel.protocol.page import reached_log_end
from ots_tunnel_operator import names
from ots_tunnel_operator.assess.scaling.peeking import due, is_peeking
from ots_tunnel_operator.diagnosis import Place, call_problem, shortened
from ots_tunnel_operator.instance import CALL_ERRORS, Instance
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.settings import Settings
from ots_tunnel_operator.turns.queue import Patience
from ots_tunnel_operator.world.service import Peek, Tunnel
from ots_tunnel_operator.world.world import World

#: Seconds of one pass for such looks; the channels that are left are those of the next one.
PASS_SECONDS = 5.0
#: Seconds after a look that failed before the next one.
RETRY_SECONDS = 60.0


class PeekObserver:
    """Looks at the channels of objects that sleep, or that might, and of those that are paused."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    async def observe(self, world: World, cache: LoopCache, patience: Patience) -> World:
        """The world with the last look at each channel; those that are due are looked at.

        Args:
            world: with its tunnel.
            cache: of the object's loop.
            patience: how long the calls wait for their turns.
        """
        instance, recorded = cache.source.instance, str(world.resource.recorded_tunnel.get("id") or "")
        if cache.peeks_of != recorded:
            cache.peeks, cache.peeks_of, cache.peek_failure, cache.peek_failed = {}, recorded, "", None
        if isinstance(world.tunnel, Tunnel):
            listed = {str(channel.channel_id) for channel in world.tunnel.description.channels}
            cache.peeks = {key: peek for key, peek in cache.peeks.items() if key in listed}
        if not is_peeking(world):
            cache.peek_failure, cache.peek_failed = "", None
        elif instance is not None and self._is_retried(world, cache):
            await self._look(world, instance, cache, patience)
        return _with_peeks(world, cache)

    def _is_retried(self, world: World, cache: LoopCache) -> bool:
        return cache.peek_failed is None or world.now - cache.peek_failed >= RETRY_SECONDS

    async def _look(self, world: World, instance: Instance, cache: LoopCache, patience: Patience) -> None:
        """Look at one channel after the other, until one has something to read."""
        loop = asyncio.get_running_loop()
        began, tunnel_id = loop.time(), TunnelId(cache.peeks_of)
        # the description came before the pages: what they do not have was read by then
        described = world.tunnel.description.service_time if isinstance(world.tunnel, Tunnel) else None
        try:
            for channel in due(_with_peeks(world, cache)):
                waits = await self._waits(instance, tunnel_id, channel, patience)
                before = cache.peeks.get(channel)
                empty = before.empty if before is not None else None
                cache.peeks[channel] = Peek(world.now, waits, empty if waits or described is None else described)
                if waits or loop.time() - began > PASS_SECONDS:
                    break
        except CALL_ERRORS as error:
            problem = call_problem(error, Place.of_source(world.resource.spec.source))
            cache.peek_failure, cache.peek_failed = shortened(problem.message), world.now
        else:
            cache.peek_failure, cache.peek_failed = "", None

    async def _waits(self, instance: Instance, tunnel_id: TunnelId, channel: ChannelId, patience: Patience) -> bool:
        """Whether a worker would have something to do: records, the end of the channel, or a page that is not one."""
        client, about, seconds = ClientId(names.CLIENT_ID), f"pages of {tunnel_id}", self._settings.call_seconds
        stored = partial(instance.tunnels.get_checkpoint, tunnel_id, client, channel)
        token = (await instance.calls.make(seconds, stored, patience, about=about)).token
        if token == FINISHED:
            return True
        read = partial(instance.tunnels.read_records, tunnel_id, client, channel, token)
        try:
            page = await instance.calls.make(seconds, read, patience, about=about)
        except CodecError:
            # something is there, and a worker says what
            return True
        rows = len(page.records)
        return bool(rows) or page.next_token == FINISHED or not reached_log_end(page.may_more, rows)


def _with_peeks(world: World, cache: LoopCache) -> World:
    return replace(world, peeks=dict(cache.peeks), peek_failure=cache.peek_failure)
