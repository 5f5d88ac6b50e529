"""Read source and sink for one pass: their Secrets and tables. Changes nothing.

Secrets are read in every pass, from the copy that a watch keeps. Tables stay in the loop's cache for
Settings.refresh_seconds, unless something failed or is still undecided; that they are still there is looked at every
Settings.look_seconds, so that no condition claims it for longer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from ots_tunnel.errors import ObjectNotExist
from ots_tunnel.model import Credentials
from ots_tunnel_operator.api.object import Source, TablestoreSink
from ots_tunnel_operator.assess.verdict import was_behind
from ots_tunnel_operator.diagnosis import Place, secret_name, service_problem
from ots_tunnel_operator.instance import CALL_ERRORS, Instance
from ots_tunnel_operator.kube.cluster import Reader
from ots_tunnel_operator.kube.kinds import SECRET
from ots_tunnel_operator.loop_cache import LoopCache, Side
from ots_tunnel_operator.observe.access_key import read_credentials
from ots_tunnel_operator.settings import Settings
from ots_tunnel_operator.world import Failure, Missing, Table, Unread, World

R = TypeVar("R")

_UNREAD = Unread()


@dataclass(frozen=True, slots=True)
class SideView:
    """What was observed of source or sink; fields as those of `World`."""

    credentials: Credentials | Failure | Unread = _UNREAD
    table: Table | Missing | Failure | Unread = _UNREAD


class SidesObserver:
    """Reads source and sink of an object."""

    def __init__(self, kube: Reader, settings: Settings) -> None:
        self._kube = kube
        self._settings = settings

    async def observe(self, world: World, cache: LoopCache) -> World:
        """Read both concurrently: where neither answers, the object reports it after one timeout instead of two.

        Raises:
            KubeError: the API server does not answer.
        """
        sides = self._source(world, cache), self._sink(world, cache)
        source, sink = await asyncio.gather(*sides, return_exceptions=True)
        if isinstance(source, BaseException):
            raise source
        if isinstance(sink, BaseException):
            raise sink
        return replace(
            world,
            source_credentials=source.credentials,
            source=source.table,
            sink_credentials=sink.credentials,
            destination=sink.table,
        )

    async def _source(self, world: World, cache: LoopCache) -> SideView:
        source = world.resource.spec.source
        return await self._side(world, cache.source, source, Place.of_source(source))

    async def _sink(self, world: World, cache: LoopCache) -> SideView:
        sink = world.resource.spec.sink.tablestore
        if sink is None:
            return SideView()
        return await self._side(world, cache.sink, sink, Place.of_sink(sink), empty_matters=_depends_on_tables(world))

    async def _side(
        self, world: World, side: Side, spec: Source | TablestoreSink, place: Place, *, empty_matters: bool = False
    ) -> SideView:
        credentials = await self._credentials(world, side, spec, place)
        if isinstance(credentials, Failure):
            return SideView(credentials)
        instance = await side.connect(spec.endpoint, spec.instance, credentials)
        kept = self._kept_table(side, world, spec.table)
        try:
            if kept is not None:
                return SideView(credentials, await self._still(instance, side, kept, world))
            table = await self._table(instance, spec.table)
            if table is None:
                return SideView(credentials, Missing())
            if empty_matters:
                is_empty = partial(instance.tables.is_empty, spec.table, table.schema)
                table = replace(table, empty=await self._block(instance, is_empty))
        except CALL_ERRORS as error:
            side.forget()
            return SideView(credentials, Failure(service_problem(error, place)))
        side.table, side.table_name = table, spec.table
        side.table_time = side.look_time = world.now
        return SideView(credentials, table)

    async def _still(self, instance: Instance, side: Side, kept: Table, world: World) -> Table | Missing:
        """The cached table; looked at again where the last look is Settings.look_seconds old."""
        if world.now - side.look_time < self._settings.look_seconds:
            return kept
        try:
            await self._call(instance, partial(instance.rows.describe_table, side.table_name))
        except ObjectNotExist:
            side.table = None
            return Missing()
        side.look_time = world.now
        return kept

    async def _table(self, instance: Instance, table: str) -> Table | None:
        """A table and the retention of its stream; None where the table does not exist.

        The project's own client asks first. The vendor's SDK blocks one of a few threads (docs/architecture.md
        rule 20), and an endpoint that does not answer must not occupy it and delay other objects.
        """
        try:
            stream = (await self._call(instance, partial(instance.rows.describe_table, table))).stream
        except ObjectNotExist:
            return None
        schema = await self._block(instance, partial(instance.tables.describe, table))
        if schema is None:
            return None
        retention = stream.expiration_hours * 3600 if stream.enabled and stream.expiration_hours else None
        return Table(schema, stream_retention_seconds=retention, stream_start=stream.enabled_time)

    def _kept_table(self, side: Side, world: World, name: str) -> Table | None:
        """The cached table of this name, unless a decision still depends on it."""
        fresh = world.now - side.table_time < self._settings.refresh_seconds
        return side.table if fresh and side.table_name == name and not _depends_on_tables(world) else None

    async def _credentials(
        self, world: World, side: Side, spec: Source | TablestoreSink, place: Place
    ) -> Credentials | Failure:
        name = secret_name(spec)
        secret = await self._kube.get(SECRET, world.resource.namespace, name)
        found = read_credentials(secret, name, place)
        if isinstance(found, Credentials):
            side.credentials = found
        return found

    async def _call(self, instance: Instance, call: Callable[[], Awaitable[R]]) -> R:
        return await instance.calls.make(self._settings.call_seconds, call)

    async def _block(self, instance: Instance, call: Callable[[], Awaitable[R]]) -> R:
        return await instance.calls.make(self._settings.call_seconds, call, blocks=True)


def _depends_on_tables(world: World) -> bool:
    """Whether a decision depends on what the tables hold now."""
    return world.resource.undecided or was_behind(world.resource)
