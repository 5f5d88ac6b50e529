"""Read source and sink for one pass: their Secrets and tables. Changes nothing.

Secrets are read in every pass, from the copy that a watch keeps. Tables stay in the loop's cache for
Settings.refresh_seconds, unless something failed or is still undecided; that they are still there is looked at every
Settings.look_seconds, so that no condition claims it for longer.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from functools import partial

from ots_tunnel.client.table import TableDescription
from ots_tunnel.errors import ObjectNotExist
from ots_tunnel.model import Credentials
from ots_tunnel_operator.api.secrets import secret_name
from ots_tunnel_operator.api.sink import TablestoreSink
from ots_tunnel_operator.api.source import Source
from ots_tunnel_operator.assess.gap import recorded_gaps
from ots_tunnel_operator.assess.verdict import was_behind
from ots_tunnel_operator.diagnosis import Place, instance_busy, service_problem
from ots_tunnel_operator.instance import CALL_ERRORS, Instance, table_schema
from ots_tunnel_operator.kube.cluster import Reader
from ots_tunnel_operator.kube.kinds import SECRET
from ots_tunnel_operator.loop_cache import LoopCache, Side
from ots_tunnel_operator.observe.access_key import read_credentials
from ots_tunnel_operator.reset.record import asked, running
from ots_tunnel_operator.settings import Settings
from ots_tunnel_operator.turns.queue import NoTurn, Patience
from ots_tunnel_operator.world.absence import Failure, Missing, Unread
from ots_tunnel_operator.world.service import Table
from ots_tunnel_operator.world.world import World

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

    async def observe(self, world: World, cache: LoopCache, patience: Patience) -> World:
        """Read both concurrently: where neither answers, the object reports it after one timeout instead of two.

        Args:
            patience: how long the calls wait for their turns.

        Raises:
            KubeError: the API server does not answer.
        """
        sides = self._source(world, cache, patience), self._sink(world, cache, patience)
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

    async def _source(self, world: World, cache: LoopCache, patience: Patience) -> SideView:
        source = world.resource.spec.source
        return await self._side(world, cache.source, source, Place.of_source(source), patience)

    async def _sink(self, world: World, cache: LoopCache, patience: Patience) -> SideView:
        sink = world.resource.spec.sink.tablestore
        if sink is None:
            return SideView()
        side = cache.sink
        return await self._side(
            world, side, sink, Place.of_sink(sink), patience, empty_matters=_depends_on_tables(world)
        )

    async def _side(
        self,
        world: World,
        side: Side,
        spec: Source | TablestoreSink,
        place: Place,
        patience: Patience,
        *,
        empty_matters: bool = False,
    ) -> SideView:
        credentials = await self._credentials(world, side, spec, place)
        if isinstance(credentials, Failure):
            return SideView(credentials)
        instance = await side.connect(spec.endpoint, spec.instance, credentials)
        kept = self._kept_table(side, world, spec.table)
        try:
            if kept is not None:
                return SideView(credentials, await self._still(instance, side, kept, world, patience))
            described = await self._described(instance, spec.table, patience)
            if described is None:
                side.table = None  # of before this look
                return SideView(credentials, Missing())
            table = _table(described)
            if empty_matters:
                is_empty = partial(instance.rows.is_empty, spec.table, table.schema.keys)
                seconds, about = self._settings.call_seconds, f"rows of {spec.table}"
                empty = await instance.calls.make(seconds, is_empty, patience, about=about)
                table = replace(table, empty=empty)
        except NoTurn:
            # nothing was asked, so what is known stays known
            return SideView(credentials, Failure(instance_busy(place)))
        except CALL_ERRORS as error:
            side.forget()
            return SideView(credentials, Failure(service_problem(error, place)))
        # whether it is empty holds for this look alone
        side.table, side.table_name = replace(table, empty=None), spec.table
        side.table_time = side.look_time = world.now
        return SideView(credentials, table)

    async def _still(
        self, instance: Instance, side: Side, kept: Table, world: World, patience: Patience
    ) -> Table | Missing:
        """The cached table; looked at again where the last look is Settings.look_seconds old, or a gap is recorded.

        With a gap no worker may start before the look that sees a longer retention: it would notice nothing any more.
        """
        has_gap = any(not gap.accepted and not gap.is_final for gap in recorded_gaps(world.resource.status))
        if world.now - side.look_time < self._settings.look_seconds and not has_gap:
            return kept
        found = await self._described(instance, side.table_name, patience)
        if found is None:
            side.table = None
            return Missing()
        side.look_time = world.now
        side.table = _table(found)
        return side.table

    async def _described(self, instance: Instance, table: str, patience: Patience) -> TableDescription | None:
        """The description by the project's own client: the vendor's SDK would block one of a few threads."""
        call = partial(instance.rows.describe_table, table)
        try:
            return await instance.calls.make(self._settings.call_seconds, call, patience, about=f"table {table}")
        except ObjectNotExist:
            return None

    def _kept_table(self, side: Side, world: World, name: str) -> Table | None:
        """The cached table of this name, unless a decision still depends on it."""
        fresh = world.now - side.table_time < self._settings.refresh_seconds
        return side.table if fresh and side.table_name == name and not _depends_on_tables(world) else None

    async def _credentials(
        self, world: World, side: Side, spec: Source | TablestoreSink, place: Place
    ) -> Credentials | Failure:
        name = secret_name(spec.credentials)
        namespace = world.resource.namespace
        version = await self._kube.stored_version(SECRET, namespace, name)
        if side.credentials is not None and version and side.secret == (name, version):
            # a Secret may be large, and changes seldom
            return side.credentials
        secret = await self._kube.get(SECRET, namespace, name)
        found = read_credentials(secret, name, place)
        if isinstance(found, Credentials):
            side.credentials, side.secret = found, (name, version)
        return found


def _table(found: TableDescription) -> Table:
    """A table and the retention of its stream."""
    stream = found.stream
    retention = stream.expiration_hours * 3600 if stream.enabled and stream.expiration_hours else None
    return Table(
        table_schema(found),
        stream_retention_seconds=retention,
        stream_start=stream.enabled_time,
        created=None if found.created_us is None else found.created_us / 1e6,
    )


def _depends_on_tables(world: World) -> bool:
    """Whether a decision depends on what the tables hold now."""
    resource = world.resource
    is_reset = running(resource.status) or asked(resource.object.metadata.annotations, resource.status)
    return resource.undecided or was_behind(resource) or is_reset is not None
