"""Read the tunnel for one pass: its description, its checkpoints and foreign clients. Changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import TypeVar

from ots_tunnel.errors import CodecError, ParameterInvalid, ResourceGone, TunnelError, TunnelExpired
from ots_tunnel.model import ChannelId, Checkpoint, ClientId, TunnelDescription, TunnelId
from ots_tunnel.protocol.movement import has_moved
from ots_tunnel_operator import names
from ots_tunnel_operator.assess.completion import awaits_proof
from ots_tunnel_operator.assess.creation import is_recreated
from ots_tunnel_operator.assess.draining import client_without_pod
from ots_tunnel_operator.assess.lag import is_initialised
from ots_tunnel_operator.assess.preflight import tunnel_expired
from ots_tunnel_operator.assess.spark.snapshot import COMPLETED
from ots_tunnel_operator.assess.verdict import was_behind
from ots_tunnel_operator.assess.worker_pods.place import awaits_movement
from ots_tunnel_operator.diagnosis import Place, instance_busy, instance_slow, service_problem
from ots_tunnel_operator.instance import CALL_ERRORS, Instance
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.reset.record import asked
from ots_tunnel_operator.settings import Settings
from ots_tunnel_operator.turns.calls import CALLS
from ots_tunnel_operator.turns.queue import NoTurn, Patience
from ots_tunnel_operator.world.absence import Failure, Missing
from ots_tunnel_operator.world.service import Table, Tunnel
from ots_tunnel_operator.world.world import World

#: Most channels of a tunnel: an endpoint is whatever an object names, and all objects share the memory.
MAX_CHANNELS = 20_000

#: Seconds of one look for checkpoints. Each of the twelve steps of a pass may need one (`loop.reconcile.MAX_STEPS`),
#: and the pass has to end before /livez fails (`server.PASS_SECONDS`). MAX_CHANNELS are read where a call takes 24 ms.
CHECKPOINT_SECONDS = 60.0

R = TypeVar("R")


class LookTooLong(TunnelError):
    """A look was given up although every call was answered; the text says how far it came."""


class TunnelObserver:
    """Reads the tunnel of an object whose source was read before."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    async def observe(self, world: World, cache: LoopCache, patience: Patience) -> World:
        """The world with its tunnel; unchanged where the source could not be read.

        Args:
            patience: how long the calls wait for their turns.
        """
        spec = world.resource.spec
        instance = cache.source.instance
        if world.resource.wire_type is None or instance is None or not isinstance(world.source, Table):
            return world
        kept = self._kept_tunnel(world, cache)
        if kept is not None:
            # the time since the last description is no sighting: it must not count as presence
            unseen = world.now - cache.tunnel_time
            foreign = {owner: since + unseen for owner, since in cache.foreign_since.items()}
            return replace(world, tunnel=kept, foreign_since=foreign)
        cache.tunnel = None
        # a look that fails ends the row: nobody knows what happened meanwhile
        last_picture, cache.picture = cache.picture, frozenset()
        try:
            description = await self._description(world, instance, patience)
        except CALL_ERRORS as error:
            return replace(world, tunnel=failed_look(error, world, cache))
        if description is None:
            return replace(world, tunnel=Missing())
        world = replace(world, foreign_since=foreign_clients(description, world, cache))
        try:
            checkpoints = None
            is_told = not awaits_movement(world) or has_moved(description) is not None
            if _needs_checkpoints(world) or not is_told:
                checkpoints = await self._checkpoints(instance, description, patience)
        except ResourceGone as error:
            problem = Problem(
                Reason.CHECKPOINT_UNREADABLE,
                f"spec.source.tunnel.name {spec.source.a_tunnel.name!r}: the service does not show its checkpoints "
                f"({error.code}), so it is unknown what was consumed: create another object with another tunnel name "
                f"instead, or {world.resource.start_over()}",
                ("TunnelReady",),
            )
            return replace(world, tunnel=Failure(problem))
        except CALL_ERRORS as error:
            return replace(world, tunnel=failed_look(error, world, cache))
        same = same_since(description, last_picture, world, cache)
        cache.tunnel = Tunnel(description, checkpoints, same, seen=world.now)
        cache.tunnel_of, cache.tunnel_time = spec.identity, world.now
        listed = {str(channel.channel_id) for channel in description.channels}
        cache.consumed_until = {key: time for key, time in cache.consumed_until.items() if key in listed}
        return replace(world, tunnel=cache.tunnel)

    def _kept_tunnel(self, world: World, cache: LoopCache) -> Tunnel | None:
        """The cached tunnel if it is younger than a poll, so that a burst of pod events causes no calls.

        None while a decision depends on a fresh one: no watch reports a new tunnel, the first token of a channel,
        the end of the last channel, or that of the last worker of a suspended object.
        """
        resource, kept = world.resource, cache.tunnel
        recorded = resource.recorded_tunnel.get("id")
        if (
            kept is None
            or cache.tunnel_of != resource.spec.identity
            or not 0 <= world.now - cache.tunnel_time < self._settings.poll_seconds
        ):
            return None
        if (
            world.resource.undecided
            or is_recreated(world)
            or asked(resource.object.metadata.annotations, resource.status) is not None
            or kept.description.tunnel.tunnel_id != recorded
            or not is_initialised(kept.description)
            or awaits_proof(world)
            or awaits_movement(world)
            or (resource.spec.suspend and client_without_pod(replace(world, tunnel=kept)))
        ):
            return None
        starting = _needs_checkpoints(world) and resource.recorded_snapshot.get("tunnelId") != recorded
        return None if starting else kept

    async def _description(self, world: World, instance: Instance, patience: Patience) -> TunnelDescription | None:
        """The tunnel of the spec's name; None where it certainly does not exist.

        The service gives one error for a missing table, a missing tunnel and a bad argument; only the list tells
        them apart.
        """
        source = world.resource.spec.source
        about = f"tunnels of {source.table}"
        describe = partial(instance.tunnels.describe_tunnel, source.table, source.a_tunnel.name)
        if world.resource.recorded_tunnel.get("id"):
            try:
                return _bounded(await self._call(instance, describe, patience, about))
            except ParameterInvalid:
                pass
        listed = await self._call(instance, partial(instance.tunnels.list_tunnels, source.table), patience, about)
        if all(tunnel.tunnel_name != source.a_tunnel.name for tunnel in listed):
            return None
        return _bounded(await self._call(instance, describe, patience, about))

    async def _checkpoints(
        self, instance: Instance, description: TunnelDescription, patience: Patience
    ) -> dict[ChannelId, Checkpoint]:
        """The checkpoint of every channel: a part of them proves nothing of the tunnel.

        Raises:
            LookTooLong: CHECKPOINT_SECONDS were not enough.
            Exception: the errors of the calls.
        """
        loop = asyncio.get_running_loop()
        began, found = loop.time(), dict[ChannelId, Checkpoint]()
        channels = [channel.channel_id for channel in description.channels]
        for start in range(0, len(channels), CALLS):
            if start and loop.time() - began > CHECKPOINT_SECONDS:
                read = f"{start} of {len(channels)} checkpoints were read"
                raise LookTooLong(f"only {read} within {CHECKPOINT_SECONDS:g} s")
            group = channels[start : start + CALLS]
            tunnel_id = description.tunnel.tunnel_id
            calls = (self._checkpoint(instance, tunnel_id, channel, patience) for channel in group)
            # every call of a group is awaited, so that none goes on behind the look
            for channel, answer in zip(group, await asyncio.gather(*calls, return_exceptions=True), strict=True):
                if isinstance(answer, BaseException):
                    raise answer
                found[channel] = answer
        return found

    async def _checkpoint(
        self, instance: Instance, tunnel_id: TunnelId, channel: ChannelId, patience: Patience
    ) -> Checkpoint:
        call = partial(instance.tunnels.get_checkpoint, tunnel_id, ClientId(names.CLIENT_ID), channel)
        return await self._call(instance, call, patience, f"checkpoints of {tunnel_id}")

    async def _call(self, instance: Instance, call: Callable[[], Awaitable[R]], patience: Patience, about: str) -> R:
        return await instance.calls.make(self._settings.call_seconds, call, patience, about=about)


def _bounded(description: TunnelDescription) -> TunnelDescription:
    """A description that can be kept.

    Raises:
        CodecError: it lists more channels than any table has.
    """
    number = len(description.channels)
    if number > MAX_CHANNELS:
        raise CodecError(f"DescribeTunnel: found {number} channels, allowed are {MAX_CHANNELS}")
    return description


def failed_look(error: Exception, world: World, cache: LoopCache) -> Failure:
    """What a failed call tells; the next pass reads credentials and table again, unless every call was answered."""
    place = Place.of_source(world.resource.spec.source)
    if isinstance(error, NoTurn):
        return Failure(instance_busy(place))
    if isinstance(error, LookTooLong):
        return Failure(instance_slow(place, str(error)))
    cache.source.forget()
    if isinstance(error, TunnelExpired):
        return Failure(tunnel_expired(world))
    return Failure(service_problem(error, place))


def _needs_checkpoints(world: World) -> bool:
    """Whether a decision depends on a moved tunnel or on the channels' tokens."""
    if world.resource.undecided or was_behind(world.resource) or is_recreated(world):
        return True
    return world.resource.uses_spark and world.resource.recorded_snapshot.get("state") != COMPLETED


def same_since(
    description: TunnelDescription, last: frozenset[tuple[str, str, str]], world: World, cache: LoopCache
) -> float:
    """Time of the first of the looks in a row that found the channels as they are now; `last` is the last look's."""
    cache.picture = frozenset(
        (str(channel.channel_id), channel.status.name, str(channel.client_id)) for channel in description.channels
    )
    if cache.picture != last:
        cache.picture_time = world.now
    return cache.picture_time


def foreign_clients(description: TunnelDescription, world: World, cache: LoopCache) -> dict[str, float]:
    """Owners of channels that are no workers of this object: client id -> time of the first sighting."""
    prefix = names.client_tag_prefix(world.resource.uid)
    owners = {str(channel.client_id) for channel in description.channels if channel.client_id}
    foreign = {owner for owner in owners if not owner.startswith(prefix)}
    cache.foreign_since = {owner: cache.foreign_since.get(owner, world.now) for owner in foreign}
    return dict(cache.foreign_since)
