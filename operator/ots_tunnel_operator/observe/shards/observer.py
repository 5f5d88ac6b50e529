"""Read the stream of an object without a tunnel for one pass: shards, leases and checkpoints. Changes nothing.

Three calls tell who reads which shard: ListStream, GetRange over the leases, and DescribeStream, in this order
(`ots_tunnel.stream.decide.sync` says why leases come before shards). Once a minute a fourth one describes the table of
leases (`leases`). How far a shard is read its worker reports; only where none does, a record is read at the checkpoint
(`checkpoints`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import TypeVar

from ots_tunnel.errors import NoStream, ObjectNotExist, ServiceError, WrongLeaseTable
from ots_tunnel.stream.decide.sightings import observe
from ots_tunnel_operator.api.shards import LeasedStream
from ots_tunnel_operator.assess.completion import awaits_proof
from ots_tunnel_operator.assess.creation import is_recreated
from ots_tunnel_operator.assess.shards.problems import lease_table_unusable
from ots_tunnel_operator.assess.worker_pods.place import awaits_movement
from ots_tunnel_operator.diagnosis import Place, call_problem, shortened
from ots_tunnel_operator.instance import CALL_ERRORS, Instance
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.observe.shards.checkpoints import look_at_checkpoints
from ots_tunnel_operator.observe.shards.leases import look_at_leases
from ots_tunnel_operator.observe.shards.view import checkpoints, described
from ots_tunnel_operator.observe.tunnel import failed_look, foreign_clients, same_since
from ots_tunnel_operator.settings import Settings
from ots_tunnel_operator.turns.queue import Patience
from ots_tunnel_operator.world.absence import Failure, Missing
from ots_tunnel_operator.world.service import Table, Tunnel
from ots_tunnel_operator.world.world import World

R = TypeVar("R")


class StreamChanged(ServiceError):
    """The stream, or a shard of it, is gone since it was listed; not the table."""


class ShardsObserver:
    """Reads the stream of an object whose source was read before."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    async def observe(self, world: World, cache: LoopCache, patience: Patience) -> World:
        """The world with the stream in place of the tunnel; unchanged where the source could not be read.

        Args:
            patience: how long the calls wait for their turns.
        """
        stream, instance = world.resource.spec.source.stream, cache.source.instance
        if stream is None or instance is None or not isinstance(world.source, Table):
            return world
        if (kept := self._kept(world, cache)) is not None:
            # the time since the last look is no sighting: it must not count as presence
            unseen = world.now - cache.tunnel_time
            foreign = {owner: since + unseen for owner, since in cache.foreign_since.items()}
            world = replace(world, peeks=dict(cache.peeks), peek_failure=cache.peek_failure)
            return replace(world, tunnel=kept, foreign_since=foreign)
        cache.tunnel = None
        # a look that fails ends the row: nobody knows what happened meanwhile
        last_picture, cache.picture = cache.picture, frozenset()
        try:
            try:
                found = await self._look(instance, stream, world, cache, patience)
            except StreamChanged:
                # whether the stream is off, or another one, its list tells
                found = await self._look(instance, stream, world, cache, patience)
        except NoStream:
            return replace(world, tunnel=Missing())
        except WrongLeaseTable as error:
            return replace(world, tunnel=Failure(lease_table_unusable(world.resource, str(error), stops=True)))
        except CALL_ERRORS as error:
            return replace(world, tunnel=failed_look(error, world, cache))
        world = replace(world, foreign_since=foreign_clients(found.description, world, cache))
        same = same_since(found.description, last_picture, world, cache)
        cache.tunnel = replace(found, same_since=same, seen=world.now)
        cache.tunnel_of, cache.tunnel_time = world.resource.spec.identity, world.now
        listed = {str(channel.channel_id) for channel in found.description.channels}
        cache.consumed_until = {key: time for key, time in cache.consumed_until.items() if key in listed}
        return replace(world, tunnel=cache.tunnel, peeks=dict(cache.peeks), peek_failure=cache.peek_failure)

    def _kept(self, world: World, cache: LoopCache) -> Tunnel | None:
        """The last look if it is younger than a poll; None while a decision depends on a fresh one."""
        resource, kept = world.resource, cache.tunnel
        is_fresh = 0 <= world.now - cache.tunnel_time < self._settings.poll_seconds
        if kept is None or not is_fresh or cache.tunnel_of != resource.spec.identity:
            return None
        is_recorded = kept.description.tunnel.tunnel_id == resource.recorded_tunnel.get("id")
        needs_look = resource.undecided or is_recreated(world) or awaits_movement(world) or awaits_proof(world)
        return kept if is_recorded and not needs_look else None

    async def _look(
        self, instance: Instance, of: LeasedStream, world: World, cache: LoopCache, patience: Patience
    ) -> Tunnel:
        """The stream as a tunnel.

        Raises:
            NoStream: it is switched off.
            StreamChanged: it was switched off, or a shard was dropped, after it was listed.
            WrongLeaseTable: the table is none for leases.
            TunnelError: a call failed.
        """
        table = world.resource.spec.source.table
        stream = await self._call(instance, partial(instance.streams.stream_of, table), patience, table)
        if cache.leases_of != (of.lease_table, stream.stream_id):
            cache.leases_of, cache.sightings, cache.peeks = (of.lease_table, stream.stream_id), {}, {}
            cache.unread_shards = {}
            cache.leases_fit = None
        listing, unfit = await look_at_leases(instance, cache, partial(self._call, instance, patience=patience))
        now = asyncio.get_running_loop().time()
        cache.sightings = observe(cache.sightings, listing.leases, now)
        try:
            shards = await self._call(instance, partial(instance.streams.describe, stream.stream_id), patience, table)
        except ObjectNotExist as error:
            raise StreamChanged(error.code, error.message, error.request_id, error.http_status) from error
        cache.peek_failure = ""
        try:
            listed = {shard.shard_id for shard in shards.shards}
            await look_at_checkpoints(instance, listing.leases, listed, world, cache, self._settings, patience)
        except CALL_ERRORS as error:
            # who reads which shard is known all the same; the status counts the shards whose lag is not
            # without the id of the request, which would be another one, and a write of the status, in each look
            problem = call_problem(error, Place.of_source(world.resource.spec.source))
            cache.peek_failure = shortened(problem.message)
        duration = float(world.resource.spec.worker_settings.heartbeat_timeout_seconds)
        return Tunnel(
            described(
                stream,
                shards.shards,
                cache.sightings,
                now=now,
                duration=duration,
                service_time=shards.service_time,
            ),
            checkpoints(listing.leases),
            faults=tuple(map(str, listing.unreadable)),
            unfit=unfit,
        )

    async def _call(self, instance: Instance, call: Callable[[], Awaitable[R]], patience: Patience, about: str) -> R:
        return await instance.calls.make(self._settings.call_seconds, call, patience, about=f"stream of {about}")
