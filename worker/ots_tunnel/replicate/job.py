"""A replication job: copy the rows of a table, then its changes up to an end time (docs/architecture.md 4.6).

Theory of operation
-------------------

One process does what the operator and its workers do in a cluster, in four steps that it prints:

1. Destination. Create the table with the source's schema, or check that the existing one can take an equal copy.
2. Tunnel. Create a BaseAndStream tunnel under the job's name, or use the one that an earlier run created.
3. End time. Print it, and warn if it lies before the tunnel's creation.
4. Copy. Run a worker that stops itself at the end time (docs/architecture.md 3.4).

Before step 1 nothing is changed: `plan.check_start` refuses a job that would lose or overwrite rows. How far a job has
come is in the tunnel's checkpoints, so a second run of the job finds steps 1 and 2 done and resumes there; several runs
share the tunnel's channels like workers. Where to is in a state file (`state`).

How a run can end, by priority:

    an error             Explained or SinkRejected; checkpoints stay, the same command resumes
    a signal             the worker drains; the run reports "stopped" and exits with 128 and the signal's number
    complete             one description of the tunnel has every channel read past the end time, or ended, and the
                         destination is the table of the beginning (`kept_destination`)
    own share complete   the worker is done, but another client still holds channels: that run finishes them, or the
                         same command does, where that client belongs to a run that is gone; exits with 6

The worker decides about the end, not the tunnel's consume point: the consume point of an idle table may never reach
the end time (docs/architecture.md 3.5). The end may lie in the future; the worker then follows the changes until then.

Example: `endTime` is 17:00. Two runs start at 16:50 and share four channels. At 17:00 each of them has read its two
channels past the end. The first one to ask sees the channels of the other and reports its own share, the second one
reports "complete".
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
from ots_tunnel.errors import TunnelError
from ots_tunnel.job_file import JobFile, place_of
from ots_tunnel.model import ChannelType, TunnelDescription, TunnelId
from ots_tunnel.replicate.evidence import Side, is_foreign
from ots_tunnel.replicate.kept_destination import KeptDestination
from ots_tunnel.replicate.meter import ReplicationMeter
from ots_tunnel.replicate.other_clients import OtherClients
from ots_tunnel.replicate.plan import end_warning
from ots_tunnel.replicate.preparation import Preparation, StartOptions
from ots_tunnel.sinks.table.sink import TablestoreSink
from ots_tunnel.tables import TableAdmin, run_blocking
from ots_tunnel.worker.settings import WorkerSettings
from ots_tunnel.worker.status.worker_status import WorkerStatus
from ots_tunnel.worker.worker import TunnelWorker

#: Seconds between two descriptions of the tunnel for the progress display; own choice.
DESCRIBE_PAUSE = 2.0

#: The worker's own figures are read this many times per description, without a call: four times a second.
READS_PER_DESCRIPTION = 8

#: A user waits at the terminal, so the times are shorter than those of a pod: a crashed run's channels are free after
#: 30 s, and Ctrl-C takes at most 20 s.
SETTINGS = WorkerSettings(TunnelId(""), interval=5, timeout=30, checkpoint_interval=2, drain=20)


#: Parallel writers per channel, the default of a worker's document.
LANES = 8


@dataclass(frozen=True, slots=True)
class Copied:
    """Result of a run.

    Args:
        complete: whether everything up to the end time is copied.
        rows: records that this run confirmed.
        seconds: duration of this run.
        others: whether this run's share is copied, and another client held the rest.
    """

    complete: bool
    rows: int
    seconds: float
    others: bool = False


class ReplicationJob:
    """One run of a job.

    Args:
        end: end time, with a time zone.
        keys: credentials of source and destination.
        start: what the job may find when it starts.
        say: prints a line above the progress.
        stream: receives the progress.
        settings: settings of the worker; the job fills in the tunnel and the end time.
        folders: folders of the credentials, for messages; None means that the job file holds them.
    """

    def __init__(
        self,
        job: JobFile,
        end: datetime,
        keys: tuple[CredentialsProvider, CredentialsProvider],
        *,
        start: StartOptions,
        say: Callable[[str], None],
        stream: TextIO,
        settings: WorkerSettings = SETTINGS,
        folders: tuple[Path | None, Path | None] = (None, None),
    ) -> None:
        self._job = job
        self._end = end
        self._start = start
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
        """Copy until the end time, or until `interrupt` is called.

        Raises:
            ConfigError: the job must not start. Explained, SinkRejected: it cannot continue.
        """
        began = time.monotonic()
        try:
            tunnel = await self._preparation().run()
            if warning := end_warning(tunnel, self._end):
                self._say(f"    note: {warning}")
            status = await self._copy_into_kept(tunnel)
        finally:
            await self._client.close()
            await run_blocking(self._source.close)
            await run_blocking(self._destination.close)
        # a second look would not do: a client that was lost meanwhile is not in it, nor is what it had not read
        others = status.completed and not status.tunnel_done
        return Copied(status.tunnel_done, status.metrics.rows_total, time.monotonic() - began, others)

    def interrupt(self) -> bool:
        """Drain the worker, at the second call close it; return False if the worker does not exist yet."""
        if self._worker is None:
            return False
        self._worker.interrupt()
        return True

    def _preparation(self) -> Preparation:
        return Preparation(
            self._job,
            self._client,
            (self._source, self._destination),
            (self._from, self._to),
            start=self._start,
            is_foreign=self._is_foreign,
            end=self._end,
            say=self._say,
        )

    async def _is_foreign(self, tunnel: TunnelDescription) -> bool:
        """See `evidence.is_foreign`; most runs need no connections for it."""
        reader, writer = self._job.reader, self._job.writer
        source = Side(TableClient(reader.endpoint, reader.instance_name, self._keys[0]), self._from)
        to = TableClient(writer.endpoint, writer.instance_name, self._keys[1])
        destination = Side(to, self._to, is_destination=True)
        try:
            return await is_foreign(source, destination, tunnel, time.time())
        finally:
            await source.client.close()
            await to.close()

    async def _copy_into_kept(self, tunnel: TunnelDescription) -> WorkerStatus:
        """Copy, and look at the end whether the destination is still the table of the beginning."""
        reader, writer = self._job.reader, self._job.writer
        client = TableClient(writer.endpoint, writer.instance_name, self._keys[1])
        kept = KeptDestination(client, writer.table_name, reader.tunnel_name)
        try:
            with explaining(self._to, destination=True):
                await kept.remember()
            with explaining(self._from):
                status = await self._copy(tunnel)
            if status.tunnel_done:
                with explaining(self._to, destination=True):
                    await kept.check(self._source, self._destination, reader.table_name)
        finally:
            await client.close()
        return status

    async def _copy(self, tunnel: TunnelDescription) -> WorkerStatus:
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
            lanes=LANES,
            deadline=settings.write_deadline,
        )
        worker_client = TunnelClient(reader.endpoint, reader.instance_name, self._keys[0])
        self._worker = worker = TunnelWorker(worker_client, sink, settings)
        meter = ReplicationMeter(self._end.timestamp(), time.time)
        meter.describe(tunnel)
        self._say(f"3/4 end time {self._end:%Y-%m-%d %H:%M:%S} UTC")
        self._say("4/4 copying; Ctrl-C stops, the same command resumes")
        try:
            async with show_progress(meter, self._stream):
                measuring = asyncio.create_task(self._measure(meter, worker), name="measure")
                try:
                    await worker.run()
                finally:
                    measuring.cancel()
                    await asyncio.gather(measuring, return_exceptions=True)
                    self._read_status(meter, worker)
        finally:
            await worker_client.close()
        return worker.status

    async def _measure(self, meter: ReplicationMeter, worker: TunnelWorker) -> None:
        reader, others = self._job.reader, OtherClients(self._settings.timeout)
        while True:
            # The display keeps its last figures while calls fail; the worker reports permanent errors.
            with suppress(TunnelError):
                tunnel = await self._client.describe_tunnel(reader.table_name, reader.tunnel_name)
                others.is_own(worker.status.client_id)
                meter.describe(tunnel)
                meter.elsewhere = others.held(tunnel).total()
                for note in others.notes(tunnel):
                    self._say(f"    note: {note}")
            until = time.monotonic() + DESCRIBE_PAUSE
            while time.monotonic() < until:
                self._read_status(meter, worker)
                await asyncio.sleep(DESCRIBE_PAUSE / READS_PER_DESCRIPTION)

    def _read_status(self, meter: ReplicationMeter, worker: TunnelWorker) -> None:
        document = worker.status.document()
        meter.rows, meter.rows_per_second = document["rowsTotal"], document["rowsPerSecond"] or 0.0
        lags = [
            lag
            for view in worker.status.channels.values()
            if view.progress.channel_type is ChannelType.STREAM
            and (lag := view.progress.lag(worker.status.source_clock())) is not None
        ]
        meter.lag = max(lags, default=None)
