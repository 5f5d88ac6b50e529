"""Follows a tunnel for a query: a worker of the tunnel in a thread of its own, and the calls that Spark's thread makes.

Theory of operation. The worker is that of `ots-tunnel run`: heartbeats, channels, back-pressure, gaps, checkpoints. Its
sink is `HandOver`. `follow` takes these steps once per process, because nothing else may run before them:

1. refuse a checkpoint folder of another tunnel, and a tunnel that another client consumes
2. end the clients that former processes of this query have left
3. set the tunnel's checkpoints to Spark's positions
4. start the worker

While it runs, the tunnel is described every `WATCH_SECONDS`: a client that joins later is refused as well, and so is a
tunnel that has expired. With it, until when every channel was read is found out, for the figures; that of single
channels goes into Spark's log where they are idle (`channel_pages`), and proves to the next process that nothing is
missing. An error that a new client cannot fix ends the worker and is raised by the next call. What
passes is repeated by the worker, and the query has no records meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Coroutine, Mapping
from contextlib import closing, suppress
from math import floor
from typing import Any, Final, TypeVar

from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.errors import ConfigError, PossibleGap, TunnelError, TunnelExpired
from ots_tunnel.log_actions import LogAction
from ots_tunnel.model import ChannelId, ChannelStatus, Stage, TunnelDescription, TunnelId
from ots_tunnel.protocol.possible_gap import Gap
from ots_tunnel.protocol.read_by_all import read_by_all
from ots_tunnel.protocol.record import Record
from ots_tunnel.spark.reader.logins import credentials_of
from ots_tunnel.spark.stream.alignment import align, first_offset
from ots_tunnel.spark.stream.hand_over import HandOver
from ots_tunnel.spark.stream.lag import lag_of_channels
from ots_tunnel.spark.stream.ledger import Ledger
from ots_tunnel.spark.stream.offsets import Offset
from ots_tunnel.spark.stream.options import StreamOptions, own_tag
from ots_tunnel.spark.stream.tunnel_calls import check_clients, check_tunnel, describe, read_again, release
from ots_tunnel.worker.settings import WorkerSettings
from ots_tunnel.worker.worker import TunnelWorker

R = TypeVar("R")

logger = logging.getLogger(__name__)

#: Seconds between two descriptions of the tunnel, which the service finds expensive; own choice.
WATCH_SECONDS: Final = 15.0
#: Seconds between two checkpoints of a channel. What Spark has committed and no checkpoint has is not read twice.
CHECKPOINT_SECONDS: Final = 2.0
#: Seconds for handing the channels back; Spark waits for about 2 before it kills the process.
DRAIN_SECONDS: Final = 2.0
#: Batches of which records are held: one under way, one read ahead.
HELD_BATCHES: Final = 2
#: Bytes of answers that the worker has in memory beside them.
READ_BYTES: Final = 64 << 20


class Follower:
    """Follows one tunnel; all methods are for Spark's thread."""

    def __init__(self, options: StreamOptions) -> None:
        self._options = options
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="ots-tunnel", daemon=True)
        self._client: TunnelClient | None = None
        self._tunnel: TunnelDescription | None = None
        self._hand_over: HandOver | None = None
        self._worker: TunnelWorker | None = None
        #: Those that former processes have passed, and of channels that had ended before this one.
        self._gaps: Mapping[ChannelId, Gap] = {}
        #: Unix seconds at which every stream channel had been read to its end and committed; None is unknown.
        self._read_by_all: float | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._error: BaseException | None = None
        self._ends = False
        self._thread.start()

    def __repr__(self) -> str:
        return f"Follower({self._options.tunnel})"

    @property
    def is_following(self) -> bool:
        """Whether `follow` was called."""
        return self._hand_over is not None

    def open(self) -> TunnelDescription:
        """The tunnel as it was when it was first asked for.

        Raises:
            ConfigError: no connection, no credentials, or no such tunnel. ServiceError, TransportError: see `describe`.
        """
        if self._tunnel is None:
            with closing(self._options.place.reachable_client()):
                pass  # an endpoint where nothing listens fails here, and not after the client's patience
            self._tunnel = self._call(self._describe())
        return self._tunnel

    def first_offset(self, query_id: str) -> Offset:
        """See `alignment.first_offset`.

        Raises:
            ConfigError: those of `open`. ServiceError, TransportError: the service refuses, or does not answer.
        """
        return self._call(self._first_offset(self.open(), query_id))

    def check(self, offset: Offset) -> None:
        """Refuse the offset of another tunnel.

        Raises:
            ConfigError: as `check_tunnel`; and those of `open`.
        """
        check_tunnel(offset, self.open().tunnel.tunnel_id, self._options.tunnel)

    def follow(self, start: Offset, *, is_new: bool = False) -> None:
        """Start the worker behind an offset that Spark has committed.

        Args:
            is_new: whether the offset is that of a new checkpoint folder, see `alignment.align`.

        Raises:
            ConfigError: see `tunnel_calls` and `alignment`. ServiceError, TransportError: the service refuses, or does
                not answer.
        """
        self.check(start)
        self._call(self._follow(start, is_new=is_new))

    def next_batch(self, start: Offset, limit_bytes: int) -> Offset:
        """See `Ledger.next_batch`.

        Raises:
            TunnelError: the worker has ended with it.
        """
        self._check_worker()
        return self._followed.next_batch(start, limit_bytes)

    def wait(self, seconds: float) -> bool:
        """See `HandOver.wait`."""
        return self._followed.wait(seconds)

    def records_of(self, end: Offset) -> dict[ChannelId, list[Record]]:
        """The records of the batch that ends at an offset: those that are held, or read again.

        Raises:
            ReplayDiffers: a logged batch is not there as it was. ServiceError, TransportError, CodecError: reads fail.
        """
        if self._hand_over is not None:
            held = self._hand_over.records_of(end)
            if held is not None:
                return held
        self.check(end)
        return self._call(self._read_again(end))

    def is_caught_up(self, until: float) -> bool:
        """Whether everything from before a time is committed, by the service's clock; Unix seconds.

        Raises:
            TunnelError: the worker has ended with it, or the tunnel cannot be described.
        """
        self._check_worker()
        return self._call(self._is_caught_up(until))

    def report(self) -> dict[str, Any] | None:
        """Figures for the progress of the query; None before it follows."""
        return self._call(self._report()) if self._worker is not None else None

    def stop(self) -> None:
        """Store the last checkpoints, hand the channels back, end the thread; a second call changes nothing."""
        if not self._thread.is_alive():
            return
        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(2 * DRAIN_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(1)
        if not self._thread.is_alive():
            self._loop.close()

    @property
    def _followed(self) -> HandOver:
        assert self._hand_over is not None, "follow comes first"
        return self._hand_over

    def _call(self, coroutine: Coroutine[Any, Any, R]) -> R:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def _check_worker(self) -> None:
        if self._error is not None:
            raise self._error

    async def _connected(self) -> TunnelClient:
        if self._client is None:
            place = self._options.place
            keys = credentials_of(place.credentials_directory, place.credentials_provider)
            self._client = TunnelClient(place.endpoint, place.instance, keys)
        return self._client

    async def _describe(self) -> TunnelDescription:
        return await describe(await self._connected(), self._options.place.table, self._options.tunnel)

    async def _first_offset(self, tunnel: TunnelDescription, query_id: str) -> Offset:
        return await first_offset(await self._connected(), tunnel, query_id)

    async def _follow(self, start: Offset, *, is_new: bool) -> None:
        client, tunnel = await self._connected(), await self._describe()
        check_tunnel(start, tunnel.tunnel.tunnel_id, self._options.tunnel)
        tag, own = self._options.tag_of(start.query_id), own_tag(start.query_id)
        check_clients(tunnel, own)
        await release(client, tunnel, own)
        ended = await align(client, tunnel, start, goes_on=self._options.goes_on_behind_gaps, is_new=is_new)
        logged = {name: found.position.gap for name, found in start.channels.items() if found.position.gap is not None}
        self._gaps = {**logged, **ended.gaps}
        self._tell(ended.gaps)
        ledger = Ledger(start, time.monotonic, ended.over, read_until=self._read_until, gap_of=self._gap_of)
        self._hand_over = HandOver(ledger, HELD_BATCHES * self._options.batch_bytes)
        settings = self._settings(tunnel.tunnel.tunnel_id, tag)
        positions = {channel_id: found.position for channel_id, found in start.channels.items()}

        def logged_until(channel_id: ChannelId) -> float | None:
            return positions[channel_id].until if channel_id in positions else None

        self._worker = TunnelWorker(client, self._hand_over, settings, read_mark=logged_until)
        self._tasks = [asyncio.create_task(self._run(self._worker)), asyncio.create_task(self._watch(own))]

    def _tell(self, gaps: Mapping[ChannelId, Gap]) -> None:
        for channel_id, gap in gaps.items():
            fields = {"channel_id": channel_id, "error": str(PossibleGap(channel_id, gap.start, gap.end))}
            logger.warning("going on behind a possible gap", extra={"action": LogAction.POSSIBLE_GAP, **fields})

    def _settings(self, tunnel_id: TunnelId, tag: str) -> WorkerSettings:
        options = self._options
        return WorkerSettings(
            tunnel_id=tunnel_id,
            table=options.place.table,
            tunnel_name=options.tunnel,
            client_tag=tag,
            interval=options.interval,
            timeout=options.timeout,
            checkpoint_interval=CHECKPOINT_SECONDS,
            drain=DRAIN_SECONDS,
            memory_budget_bytes=READ_BYTES,
            on_possible_gap="Continue" if options.goes_on_behind_gaps else "Stop",
        )

    async def _run(self, worker: TunnelWorker) -> None:
        try:
            await worker.run()
        except Exception as error:  # a bug of the worker, too, is the query's error: nothing else would show it
            self._error = self._error or error
        else:
            if not self._ends:
                self._error = self._error or TunnelError("the worker of the tunnel has ended without an error")

    async def _watch(self, own: str) -> None:
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            try:
                described = await self._describe()
                check_clients(described, own)  # a channel that another client has ended was not read by this query
                self._find_read_by_all(described)
            except (ConfigError, TunnelExpired) as error:
                # which other calls of an expired tunnel are refused is not documented
                self._error = self._error or error
                return self._leave()
            except TunnelError:
                continue  # the worker's heartbeat tells whether it is for good

    def _read_until(self, channel_id: ChannelId) -> float | None:
        """Until when a channel was read to its end and committed; for Spark's thread, too."""
        view = None if self._worker is None else self._worker.status.channels.get(channel_id)
        return None if view is None else view.progress.consumed_up_to

    def _gap_of(self, channel_id: ChannelId) -> Gap | None:
        """What the worker has last found missing of a channel, and goes on behind."""
        if self._worker is None or not self._options.goes_on_behind_gaps:
            return None
        return self._worker.status.possible_gaps.get(channel_id)

    def _find_read_by_all(self, described: TunnelDescription) -> None:
        times = {channel.channel_id: self._read_until(channel.channel_id) for channel in described.channels}
        found = read_by_all(described, {name: time for name, time in times.items() if time is not None})
        if found is not None:
            self._read_by_all = max(found, self._read_by_all or found)

    async def _read_again(self, end: Offset) -> dict[ChannelId, list[Record]]:
        client = await self._connected()
        return {
            channel_id: await read_again(client, end.tunnel_id, channel_id, channel)
            for channel_id, channel in end.spans.items()
        }

    async def _is_caught_up(self, until: float) -> bool:
        assert self._worker is not None, "follow comes first"
        tunnel = await self._describe()
        if tunnel.tunnel.stage == Stage.INIT or not tunnel.channels:
            return False
        for channel in tunnel.channels:
            if channel.status is ChannelStatus.TERMINATED:
                continue
            view = self._worker.status.channels.get(channel.channel_id)
            reached = None if view is None else view.progress.caught_up_time
            if reached is None or reached < until:
                return False
        return True

    async def _report(self) -> dict[str, Any]:
        assert self._worker is not None, "follow comes first"
        status = self._worker.status
        lag = lag_of_channels((view.progress for view in status.channels.values()), status.source_clock())
        gaps = {**self._gaps, **(status.possible_gaps if self._options.goes_on_behind_gaps else {})}
        return {
            "channels": len(status.channels),
            "error": status.error,
            "heldBytes": self._followed.held,
            "lagSeconds": None if lag is None else round(lag, 1),
            "passedGaps": {name: [gap.start, gap.end] for name, gap in gaps.items()},
            "readUntil": None if self._read_by_all is None else floor(self._read_by_all),
        }

    def _leave(self) -> None:
        """Hand the channels back; what Spark has not committed is read again."""
        if self._hand_over is not None and self._worker is not None:
            self._hand_over.leave()
            self._worker.drain()

    async def _end(self) -> None:
        self._ends = True
        self._leave()
        for task in self._tasks[1:]:
            task.cancel()
        for running in self._tasks[:1]:
            await asyncio.wait((running,), timeout=DRAIN_SECONDS + 0.5)
            if not running.done() and self._worker is not None:
                self._worker.close()
                await asyncio.wait((running,), timeout=0.5)
        if self._client is not None:
            await self._client.close()
