"""Steps 1 and 2 of a replication job: the destination table and the tunnel (docs/architecture.md 3.2 and 4.6)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.console.explanations import Place, explaining
from ots_tunnel.errors import ConfigError, ObjectAlreadyExist, ObjectNotExist, PermissionDenied
from ots_tunnel.job_file import JobFile
from ots_tunnel.model import TunnelDescription, TunnelType
from ots_tunnel.replicate.plan import Findings, check_start, has_delivered
from ots_tunnel.replicate.state import JobState, is_same, writer_place
from ots_tunnel.tables import TableAdmin, run_blocking
from ots_tunnel.tables.destination import ensure_destination, refuse_same_table


@dataclass(frozen=True, slots=True)
class StartOptions:
    """What a job may find when it starts.

    Args:
        merge: see `plan.check_start`.
        state: file in which the job keeps the table that it delivers to; None keeps none.
    """

    merge: bool = False
    state: Path | None = None


class Preparation:
    """Creates or checks the destination and the tunnel; changes nothing before `plan.check_start` has passed.

    Args:
        job: the job file.
        client: client of the source's tunnels.
        admins: source and destination.
        places: the same for messages.
        start: what the job may find.
        is_foreign: whether the destination is known to lack what a tunnel has delivered; see `evidence`.
        end: end time of the job, with a time zone.
        say: prints a line.
    """

    def __init__(
        self,
        job: JobFile,
        client: TunnelClient,
        admins: tuple[TableAdmin, TableAdmin],
        places: tuple[Place, Place],
        *,
        start: StartOptions,
        is_foreign: Callable[[TunnelDescription], Awaitable[bool]],
        end: datetime,
        say: Callable[[str], None],
    ) -> None:
        self._job = job
        self._client = client
        self._source, self._destination = admins
        self._from, self._to = places
        self._merge = start.merge
        self._state = JobState(start.state)
        self._is_foreign = is_foreign
        self._end = end
        self._say = say

    async def run(self) -> TunnelDescription:
        """Check the job, then create or check the destination and the tunnel.

        Raises:
            ConfigError: the job must not start. Explained, ServiceError, TransportError: a call failed permanently.
        """
        reader, writer = self._job.reader, self._job.writer
        refuse_same_table(self._source, self._destination, reader.table_name, writer.table_name)
        found = await self._find_state()
        check_start(found, reader.tunnel_name, writer.table_name, self._end, merge=self._merge)
        with explaining(self._to, destination=True):
            result = await ensure_destination(
                self._source, self._destination, reader.table_name, writer.table_name, create=True
            )
        if result.usable is None:
            problems = "; ".join(map(str, result.problems))
            raise ConfigError(f"destination table {writer.table_name!r} cannot take an equal copy: {problems}")
        made = "created" if result.created else "exists and is compatible"
        self._say(f"1/4 destination table {writer.table_name} in {writer.instance_name}: {made}")
        made = "resumes" if found.tunnel else "created"
        if found.tunnel is None and not await self._create_tunnel():
            made, found = "resumes", await self._find_state()
            check_start(found, reader.tunnel_name, writer.table_name, self._end, merge=self._merge)
        with explaining(self._from):
            tunnel = found.tunnel or await self._client.describe_tunnel(reader.table_name, reader.tunnel_name)
        self._keep_destination(replace(found, tunnel=tunnel), tunnel)
        self._say(f"2/4 tunnel {reader.tunnel_name} on {reader.table_name} in {reader.instance_name}: {made}")
        return tunnel

    async def _find_state(self) -> Findings:
        writer = self._job.writer
        with explaining(self._from):
            tunnel = await self._find_tunnel()
        with explaining(self._to, destination=True):
            schema = await run_blocking(self._destination.describe, writer.table_name)
            exists = schema is not None
            empty = schema is None or await run_blocking(self._destination.is_empty, writer.table_name, schema)
        found = Findings(tunnel, exists, destination_empty=empty)
        if tunnel is None:
            return found
        known = self._state.destination_of(tunnel.tunnel.tunnel_id)
        same = None if known is None else is_same(known, writer_place(self._job))
        found = replace(found, known=same is True, other=known if same is False else None)
        if empty:
            return replace(found, source_empty=await self._is_source_empty())
        if same is not None or self._merge or not has_delivered(tunnel):
            return found
        return replace(found, foreign=await self._is_foreign(tunnel))

    def _keep_destination(self, found: Findings, tunnel: TunnelDescription) -> None:
        """Keep the destination, and check again where another run that has started meanwhile has kept another one."""
        reader, place = self._job.reader, writer_place(self._job)
        try:
            other = self._state.keep(tunnel.tunnel.tunnel_id, place, replace=self._merge)
        except ConfigError as error:
            self._say(f"    note: {error}; a later run may not notice that ots-writer was changed")
            return
        if other is not None:
            check_start(replace(found, other=other), reader.tunnel_name, place.table, self._end, merge=self._merge)

    async def _is_source_empty(self) -> bool:
        """Whether the source is known to hold no row; the key of a tunnel may lack the right to read rows."""
        table = self._job.reader.table_name
        with explaining(self._from):
            schema = await run_blocking(self._source.describe, table)
            try:
                return schema is not None and await run_blocking(self._source.is_empty, table, schema)
            except PermissionDenied:
                return False

    async def _find_tunnel(self) -> TunnelDescription | None:
        reader = self._job.reader
        if await run_blocking(self._source.describe, reader.table_name) is None:
            raise ObjectNotExist("OTSObjectNotExist", "Requested table does not exist.", http_status=404)
        named = {info.tunnel_name for info in await self._client.list_tunnels(reader.table_name)}
        if reader.tunnel_name not in named:
            return None
        return await self._client.describe_tunnel(reader.table_name, reader.tunnel_name)

    async def _create_tunnel(self) -> bool:
        """Create the tunnel; False where another run has done so at the same moment."""
        reader = self._job.reader
        with explaining(self._from):
            try:
                await self._client.create_tunnel(reader.table_name, reader.tunnel_name, TunnelType.BaseAndStream)
            except ObjectAlreadyExist:
                return False
        return True
