"""Reads everything one pass needs; changes nothing.

What could not be read becomes a `Failure` with the problem, never an exception and never a default. Schemas and
Secrets are kept in memory for a while, but not where something is wrong or undecided.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Awaitable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import aiohttp

from ots_tunnel.errors import ObjectNotExist, ParameterInvalid, ReadTimeout, ResourceGone, TunnelError
from ots_tunnel.model import ChannelId, Checkpoint, ClientId, Credentials, TunnelDescription
from ots_tunnel_operator import names
from ots_tunnel_operator.api import Source, TablestoreSink
from ots_tunnel_operator.conditions import Problem, Reason
from ots_tunnel_operator.faults import RESET_HINT, Place, secret_name, service_problem
from ots_tunnel_operator.kube import CONFIG_MAP, DEPLOYMENT, POD, SECRET, SPARK_APPLICATION, Kind, Kube
from ots_tunnel_operator.lag import is_initialised
from ots_tunnel_operator.memory import Instance, Memory, Side
from ots_tunnel_operator.pods import spark_pod, worker_pod
from ots_tunnel_operator.scrape import scrape
from ots_tunnel_operator.settings import Settings
from ots_tunnel_operator.snapshot import COMPLETED
from ots_tunnel_operator.world import Competitor, Failure, Missing, Resource, Table, Tunnel, World

R = TypeVar("R")

#: What a failed call to an instance may raise.
CALL_ERRORS = (TunnelError, TimeoutError, OSError)


class Observer:
    """Reads the world of one object after the other."""

    def __init__(self, kube: Kube, session: aiohttp.ClientSession, settings: Settings) -> None:
        self._kube = kube
        self._session = session
        self._settings = settings

    async def observe(self, resource: Resource, memory: Memory, *, elder: Competitor | None, now: float) -> World:
        """Everything there is to know of one object now.

        Raises:
            KubeError: the API server does not answer.
        """
        world = World(resource, now, elder=elder, children=await self._children(resource))
        selector = names.selector_text(resource.name)
        items = await self._kube.list(POD, resource.namespace, selector)
        pods = await scrape(self._session, [worker_pod(item) for item in items], timeout=self._settings.scrape_seconds)
        world = replace(world, pods=pods)
        if resource.spec.uses_spark:
            selector = f"sparkoperator.k8s.io/app-name={names.snapshot_name(resource.name)}"
            found = await self._kube.list(POD, resource.namespace, selector)
            world = replace(world, spark_pods=tuple(spark_pod(item) for item in found))
        if elder is not None:
            return world
        return await self._tunnel(await self._ends(world, memory), memory)

    async def _ends(self, world: World, memory: Memory) -> World:
        """Source and sink at the same time: where neither answers, the object is to say so after one wait, not two."""
        ends = self._source(world, memory), self._sink(world, memory)
        source, sink = await asyncio.gather(*ends, return_exceptions=True)
        if isinstance(source, BaseException):
            raise source
        if isinstance(sink, BaseException):
            raise sink
        return replace(source, sink_credentials=sink.sink_credentials, destination=sink.destination)

    async def _children(self, resource: Resource) -> dict[tuple[str, str], Mapping[str, Any]]:
        wanted: list[tuple[Kind, str]] = [(DEPLOYMENT, names.deployment_name(resource.name))]
        if resource.spec.uses_spark:
            wanted.append((CONFIG_MAP, names.snapshot_name(resource.name)))
            wanted.append((SPARK_APPLICATION, names.snapshot_name(resource.name)))
        found: dict[tuple[str, str], Mapping[str, Any]] = {}
        for kind, name in wanted:
            item = await self._kube.get(kind, resource.namespace, name)
            if item is not None:
                found[kind.kind, name] = item
        return found

    async def _source(self, world: World, memory: Memory) -> World:
        source = world.resource.spec.source
        place = Place.of_source(source)
        credentials = await self._credentials(world, memory.source, source, place)
        if isinstance(credentials, Failure):
            return replace(world, source_credentials=credentials)
        instance = await memory.source.connect(source.endpoint, source.instance, credentials)
        world = replace(world, source_credentials=credentials)
        kept = self._kept_table(memory.source, world)
        if kept is not None:
            return replace(world, source=kept)
        try:
            table = await self._table(instance, source.table)
        except CALL_ERRORS as error:
            memory.source.forget()
            return replace(world, source=Failure(service_problem(error, place)))
        if table is None:
            return replace(world, source=Missing())
        memory.source.table, memory.source.table_time = table, world.now
        return replace(world, source=table)

    async def _table(self, instance: Instance, table: str) -> Table | None:
        """A table and how long it keeps its stream; None where there is none.

        Our own client asks first: an endpoint that does not answer never gets one of the few threads in which the
        vendor's SDK blocks (design rule 20), so that it holds up no other object.
        """
        try:
            stream = (await self._call(instance.rows.describe_table(table))).stream
        except ObjectNotExist:
            return None
        schema = await self._call(instance.tables.describe(table))
        if schema is None:
            return None
        retention = stream.expiration_hours * 3600 if stream.enabled and stream.expiration_hours else None
        return Table(schema, stream_retention_seconds=retention)

    async def _sink(self, world: World, memory: Memory) -> World:
        sink = world.resource.spec.sink.tablestore
        if sink is None:
            return world
        place = Place.of_sink(sink)
        credentials = await self._credentials(world, memory.sink, sink, place)
        if isinstance(credentials, Failure):
            return replace(world, sink_credentials=credentials)
        instance = await memory.sink.connect(sink.endpoint, sink.instance, credentials)
        world = replace(world, sink_credentials=credentials)
        kept = self._kept_table(memory.sink, world)
        if kept is not None:
            return replace(world, destination=kept)
        try:
            table = await self._table(instance, sink.table)
            if table is None:
                return replace(world, destination=Missing())
            if _undecided(world):
                table = replace(table, empty=await self._call(instance.tables.is_empty(sink.table, table.schema)))
        except CALL_ERRORS as error:
            memory.sink.forget()
            return replace(world, destination=Failure(service_problem(error, place)))
        memory.sink.table, memory.sink.table_time = table, world.now
        return replace(world, destination=table)

    def _kept_table(self, side: Side, world: World) -> Table | None:
        """The table as read a while ago, unless something is still to be decided by it."""
        fresh = world.now - side.table_time < self._settings.refresh_seconds
        return side.table if fresh and not _undecided(world) else None

    async def _credentials(
        self, world: World, side: Side, spec: Source | TablestoreSink, place: Place
    ) -> Credentials | Failure:
        fresh = world.now - side.credentials_time < self._settings.refresh_seconds
        if side.credentials is not None and fresh:
            return side.credentials
        name = secret_name(spec)
        secret = await self._kube.get(SECRET, world.resource.namespace, name)
        found = read_credentials(secret, name, place)
        if isinstance(found, Credentials):
            side.credentials, side.credentials_time = found, world.now
        return found

    async def _tunnel(self, world: World, memory: Memory) -> World:
        spec = world.resource.spec
        instance = memory.source.instance
        if spec.wire_type is None or instance is None or not isinstance(world.source, Table):
            return world
        kept = self._kept_tunnel(world, memory)
        if kept is not None:
            # a client has been there for as long as it was seen, not until now
            unseen = world.now - memory.tunnel_time
            foreign = {owner: since + unseen for owner, since in memory.foreign_since.items()}
            return replace(world, tunnel=kept, foreign_since=foreign)
        memory.tunnel = None
        try:
            description = await self._description(world, instance)
        except CALL_ERRORS as error:
            memory.source.forget()
            return replace(world, tunnel=Failure(service_problem(error, Place.of_source(spec.source))))
        if description is None:
            return replace(world, tunnel=Missing())
        world = replace(world, foreign_since=_foreign(description, world, memory))
        try:
            checkpoints = await self._checkpoints(instance, description) if _needs_checkpoints(world) else None
        except ResourceGone as error:
            problem = Problem(
                Reason.CHECKPOINT_UNREADABLE,
                f"spec.source.tunnel.name {spec.source.tunnel.name!r}: the service does not show its checkpoints to a "
                f"reader ({error.code}), so nobody can tell what was consumed: use another name, or {RESET_HINT}",
                ("TunnelReady",),
            )
            return replace(world, tunnel=Failure(problem))
        except CALL_ERRORS as error:
            memory.source.forget()
            return replace(world, tunnel=Failure(service_problem(error, Place.of_source(spec.source))))
        memory.tunnel, memory.tunnel_time = Tunnel(description, checkpoints), world.now
        return replace(world, tunnel=memory.tunnel)

    def _kept_tunnel(self, world: World, memory: Memory) -> Tunnel | None:
        """The tunnel as described less than a poll ago, so that a burst of pod events costs the service nothing.

        Not while the tunnel, or the first token of its channels, is waited for: nobody tells when they are there.
        """
        kept, recorded = memory.tunnel, world.resource.recorded_tunnel.get("id")
        if kept is None or not 0 <= world.now - memory.tunnel_time < self._settings.poll_seconds:
            return None
        if _undecided(world) or kept.description.tunnel.tunnel_id != recorded or not is_initialised(kept.description):
            return None
        starting = _needs_checkpoints(world) and world.resource.recorded_snapshot.get("tunnelId") != recorded
        return None if starting else kept

    async def _description(self, world: World, instance: Instance) -> TunnelDescription | None:
        """The tunnel of the spec's name, None when there certainly is none.

        The service says the same of a missing table, tunnel or argument; only the list tells them apart.
        """
        source = world.resource.spec.source
        if world.resource.recorded_tunnel.get("id"):
            try:
                return await self._call(instance.tunnels.describe_tunnel(source.table, source.tunnel.name))
            except ParameterInvalid:
                pass
        listed = await self._call(instance.tunnels.list_tunnels(source.table))
        if all(tunnel.tunnel_name != source.tunnel.name for tunnel in listed):
            return None
        return await self._call(instance.tunnels.describe_tunnel(source.table, source.tunnel.name))

    async def _checkpoints(self, instance: Instance, description: TunnelDescription) -> dict[ChannelId, Checkpoint]:
        tunnel_id = description.tunnel.tunnel_id
        found = {}
        for channel in description.channels:
            call = instance.tunnels.get_checkpoint(tunnel_id, ClientId(names.CLIENT_ID), channel.channel_id)
            found[channel.channel_id] = await self._call(call)
        return found

    async def _call(self, call: Awaitable[R]) -> R:
        try:
            async with asyncio.timeout(self._settings.call_seconds):
                return await call
        except TimeoutError as error:
            raise ReadTimeout(f"not within {self._settings.call_seconds:g} s") from error


def _undecided(world: World) -> bool:
    """Whether the destination or the tunnel is still to be made or adopted."""
    resource = world.resource
    needs_tunnel = resource.spec.wire_type is not None and not resource.recorded_tunnel.get("id")
    needs_destination = resource.spec.sink.tablestore is not None and not resource.recorded_destination.get(
        "ensuredTime"
    )
    return needs_tunnel or needs_destination


def _needs_checkpoints(world: World) -> bool:
    """Whether it matters if the tunnel has moved, or whether its channels have tokens."""
    if _undecided(world):
        return True
    return world.resource.spec.uses_spark and world.resource.recorded_snapshot.get("state") != COMPLETED


def _foreign(description: TunnelDescription, world: World, memory: Memory) -> dict[str, float]:
    """Owners that are not ours, with the time they were first seen."""
    prefix = names.client_tag_prefix(world.resource.uid)
    owners = {str(channel.client_id) for channel in description.channels if channel.client_id}
    foreign = {owner for owner in owners if not owner.startswith(prefix)}
    memory.foreign_since = {owner: memory.foreign_since.get(owner, world.now) for owner in foreign}
    return dict(memory.foreign_since)


def read_credentials(secret: Mapping[str, Any] | None, name: str, place: Place) -> Credentials | Failure:
    """The AccessKey pair of a Secret, or what is wrong with it. Values never reach a message."""
    field = f"{place.path}.credentials.secretRef.name {name!r}"
    affected = ("CredentialsValid",) if place.condition == "TunnelReady" else ("CredentialsValid", place.condition)
    if secret is None:
        message = f"{field}: no such Secret: create it with the keys accessKeyId and accessKeySecret"
        return Failure(Problem(Reason.SECRET_NOT_FOUND, message, affected))
    data = secret.get("data") or {}
    values: dict[str, str] = {}
    for key in ("accessKeyId", "accessKeySecret", "securityToken"):
        try:
            values[key] = base64.b64decode(data.get(key) or "", validate=True).decode().strip()
        except (binascii.Error, UnicodeDecodeError):
            values[key] = ""
    missing = [key for key in ("accessKeyId", "accessKeySecret") if not values[key]]
    if missing:
        message = (
            f"{field}: the Secret has no usable {' and no '.join(missing)}, it has {sorted(data)}: add what is missing"
        )
        return Failure(Problem(Reason.KEY_MISSING, message, affected))
    return Credentials(values["accessKeyId"], values["accessKeySecret"], values["securityToken"] or None)
