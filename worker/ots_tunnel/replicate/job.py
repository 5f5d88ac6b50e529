"""The four steps of a replication: destination, tunnel, watch for the end, copy (docs/architecture.md 4.6).

A second run of the same job finds the first two done and goes on where the tunnel's checkpoints are. It ends when
every channel has been read past the end time, which is not what the tunnel's consume point says
(docs/architecture.md 3).
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TextIO

from ots_tunnel.client.table import TableClient
from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.config import DeliveryConfig
from ots_tunnel.console.explanations import explaining
from ots_tunnel.console.progress_bar import show_progress
from ots_tunnel.credentials import CredentialsProvider
from ots_tunnel.errors import ConfigError, ObjectAlreadyExist, ObjectNotExist, TunnelError
from ots_tunnel.job_file import JobFile, place_of
from ots_tunnel.model import ChannelStatus, ChannelType, TunnelDescription, TunnelId, TunnelType
from ots_tunnel.replicate.meter import ReplicationMeter
from ots_tunnel.replicate.plan import Findings, check_start, end_warning
from ots_tunnel.sinks.table.sink import TablestoreSink
from ots_tunnel.tables import TableAdmin, run_blocking
from ots_tunnel.tables.destination import ensure_destination, refuse_same_table
from ots_tunnel.worker.settings import WorkerSettings
from ots_tunnel.worker.worker import TunnelWorker

#: Seconds between two looks at the tunnel.
LOOK_PAUSE = 2.0

#: One process on a machine that somebody looks at: shorter times than a pod's.
SETTINGS = WorkerSettings(TunnelId(""), interval=5, timeout=30, checkpoint_interval=2, drain=20)


@dataclass(frozen=True, slots=True)
class Copied:
    """What a run did.

    Args:
        complete: everything up to the end time is copied; False when it was stopped before.
        rows: records confirmed in this run.
        others: whether another run of the job is at work still.
    """

    complete: bool
    rows: int
    seconds: float
    others: bool = False


class ReplicationJob:
    """One run of a job.

    Args:
        end: the end time, with a time zone.
        keys: credentials of source and destination.
        folders: where these are, for messages; None is the job's file.
        merge: see `plan.check_start`.
        say: prints a line for people.
        stream: where progress is shown.
        settings: of the worker; the tunnel and the end time are filled in.
    """

    def __init__(
        self,
        job: JobFile,
        end: datetime,
        keys: tuple[CredentialsProvider, CredentialsProvider],
        *,
        merge: bool,
        say: Callable[[str], None],
        stream: TextIO,
        settings: WorkerSettings = SETTINGS,
        folders: tuple[Path | None, Path | None] = (None, None),
    ) -> None:
        self._job = job
        self._end = end
        self._merge = merge
        self._say = say
        self._stream = stream
        self._settings = settings
        reader, writer = job.reader, job.writer
        self._keys = keys
        self._from = place_of(reader, "ots-reader", folders[0])
        self._to = place_of(writer, "ots-writer", folders[1])
        self._client = TunnelClient(reader.endpoint, reader.instance_name, keys[0])
        self._source = TableAdmin(reader.endpoint, reader.instance_name, keys[0])
        self._destination = TableAdmin(writer.endpoint, writer.instance_name, keys[1])
        self._worker: TunnelWorker | None = None

    def __repr__(self) -> str:
        return f"ReplicationJob({self._job.reader.table_name} -> {self._job.writer.table_name})"

    async def run(self) -> Copied:
        """Copy until the end time; `interrupt` ends it before.

        Raises:
            ConfigError: the job must not begin. Explained, SinkRejected: it cannot go on.
        """
        began = time.monotonic()
        try:
            tunnel = await self._prepare()
            with explaining(self._from):
                rows, done = await self._copy(tunnel)
                others = await self._others_are_at_work()
        finally:
            await self._client.close()
            await run_blocking(self._source.close)
            await run_blocking(self._destination.close)
        return Copied(done and not others, rows, time.monotonic() - began, others)

    def interrupt(self) -> bool:
        """Stop copying in good order, the second time at once; False before copying has begun."""
        if self._worker is None:
            return False
        self._worker.interrupt()
        return True

    async def _prepare(self) -> TunnelDescription:
        reader, writer = self._job.reader, self._job.writer
        refuse_same_table(self._source, self._destination, reader.table_name, writer.table_name)
        found = await self._look()
        check_start(found, reader.tunnel_name, writer.table_name, merge=self._merge)
        with explaining(self._to, destination=True):
            result = await ensure_destination(
                self._source, self._destination, reader.table_name, writer.table_name, create=True
            )
        if result.usable is None:
            problems = "; ".join(map(str, result.problems))
            raise ConfigError(f"destination table {writer.table_name!r} cannot take an equal copy: {problems}")
        made = "created" if result.created else "is there and fits"
        self._say(f"1/4 destination table {writer.table_name} in {writer.instance_name}: {made}")
        with explaining(self._from):
            tunnel = found.tunnel or await self._create_tunnel()
        made = "goes on" if found.tunnel else "created"
        self._say(f"2/4 tunnel {reader.tunnel_name} on {reader.table_name} in {reader.instance_name}: {made}")
        if warning := end_warning(tunnel, self._end):
            self._say(f"    note: {warning}")
        return tunnel

    async def _look(self) -> Findings:
        writer = self._job.writer
        with explaining(self._from):
            tunnel = await self._find_tunnel()
        with explaining(self._to, destination=True):
            schema = await run_blocking(self._destination.describe, writer.table_name)
            if schema is None:
                return Findings(tunnel, destination_exists=False)
            empty = await run_blocking(self._destination.is_empty, writer.table_name, schema)
        return Findings(tunnel, destination_exists=True, destination_empty=empty)

    async def _find_tunnel(self) -> TunnelDescription | None:
        reader = self._job.reader
        if await run_blocking(self._source.describe, reader.table_name) is None:
            raise ObjectNotExist("OTSObjectNotExist", "Requested table does not exist.", http_status=404)
        named = {info.tunnel_name for info in await self._client.list_tunnels(reader.table_name)}
        if reader.tunnel_name not in named:
            return None
        return await self._client.describe_tunnel(reader.table_name, reader.tunnel_name)

    async def _create_tunnel(self) -> TunnelDescription:
        reader = self._job.reader
        # Somebody who starts the same job at the same time may be faster.
        with suppress(ObjectAlreadyExist):
            await self._client.create_tunnel(reader.table_name, reader.tunnel_name, TunnelType.BaseAndStream)
        return await self._client.describe_tunnel(reader.table_name, reader.tunnel_name)

    async def _copy(self, tunnel: TunnelDescription) -> tuple[int, bool]:
        reader, writer = self._job.reader, self._job.writer
        settings = replace(
            self._settings,
            tunnel_id=tunnel.tunnel.tunnel_id,
            table=reader.table_name,
            tunnel_name=reader.tunnel_name,
            client_tag=f"replicate-{socket.gethostname()}",
            exit_when_complete=True,
            end_us=int(self._end.timestamp() * 1_000_000),
        )
        sink = TablestoreSink(
            TableClient(writer.endpoint, writer.instance_name, self._keys[1]),
            writer.table_name,
            delivery=DeliveryConfig(batch_max_rows=writer.batch_write_count),
            lanes=8,
            deadline=settings.write_deadline,
        )
        worker_client = TunnelClient(reader.endpoint, reader.instance_name, self._keys[0])
        self._worker = worker = TunnelWorker(worker_client, sink, settings)
        meter = ReplicationMeter(self._end.timestamp(), time.time)
        meter.describe(tunnel)
        self._say(f"3/4 watching for the end time {self._end:%Y-%m-%d %H:%M:%S} UTC")
        self._say("4/4 copying; stop it with Ctrl-C, the same command goes on")
        try:
            async with show_progress(meter, self._stream):
                looking = asyncio.create_task(self._measure(meter, worker), name="look")
                try:
                    await worker.run()
                finally:
                    looking.cancel()
                    await asyncio.gather(looking, return_exceptions=True)
                    self._take(meter, worker)
        finally:
            await worker_client.close()
        return worker.status.metrics.rows_total, worker.status.completed

    async def _others_are_at_work(self) -> bool:
        """Whether somebody holds a channel; a run that is done with its own leaves the rest to one other."""
        reader = self._job.reader
        tunnel = await self._client.describe_tunnel(reader.table_name, reader.tunnel_name)
        return any(channel.client_id and channel.status is not ChannelStatus.TERMINATED for channel in tunnel.channels)

    async def _measure(self, meter: ReplicationMeter, worker: TunnelWorker) -> None:
        reader = self._job.reader
        while True:
            # What cannot be seen for a moment stays as it was; the worker says what is wrong.
            with suppress(TunnelError):
                meter.describe(await self._client.describe_tunnel(reader.table_name, reader.tunnel_name))
            until = time.monotonic() + LOOK_PAUSE
            while time.monotonic() < until:
                self._take(meter, worker)
                await asyncio.sleep(LOOK_PAUSE / 8)

    def _take(self, meter: ReplicationMeter, worker: TunnelWorker) -> None:
        document = worker.status.document()
        meter.rows, meter.rows_per_second = document["rowsTotal"], document["rowsPerSecond"]
        lags = [
            lag
            for view in worker.status.channels.values()
            if view.progress.channel_type is ChannelType.STREAM
            and (lag := view.progress.lag(worker.status.wall())) is not None
        ]
        meter.lag = max(lags, default=None)
