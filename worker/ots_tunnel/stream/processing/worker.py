"""The vendor's interface for following a table by shards: a worker that runs until it is shut down.

    config = StreamWorkerConfig(endpoint, instance, Credentials(key_id, secret), "orders", "orders_leases")
    StreamWorker("worker1", config, factory).run()

Source: the vendor's Java library `tablestore-streamclient` 1.0.0, `Worker`.
"""

from __future__ import annotations

import asyncio
import enum
import logging
from collections.abc import Callable, Mapping

from ots_tunnel.client.caller import ServiceCaller
from ots_tunnel.credentials import static_credentials
from ots_tunnel.errors import ConfigError, InvalidTransition, TunnelError
from ots_tunnel.fence import ChannelFence, boottime
from ots_tunnel.forks.running import run
from ots_tunnel.log_actions import LogAction
from ots_tunnel.protocol.possible_gap import Gap
from ots_tunnel.sinks.python.sink import end_process
from ots_tunnel.stream.calls.client import StreamClient
from ots_tunnel.stream.calls.lease_table import LeaseTable
from ots_tunnel.stream.decide.consumer import State
from ots_tunnel.stream.following.follower import StreamFollower
from ots_tunnel.stream.following.gaps import ShardGaps
from ots_tunnel.stream.following.reader import ShardReader
from ots_tunnel.stream.following.shard_task import ShardTask
from ots_tunnel.stream.holding.held_lease import HeldLease
from ots_tunnel.stream.lease.lease import Lease, WorkerId
from ots_tunnel.stream.processing.parts import ProcessorParts
from ots_tunnel.stream.processing.processor import RecordProcessorFactory
from ots_tunnel.stream.processing.settings import StreamWorkerConfig
from ots_tunnel.stream.processing.work import ProcessorWork
from ots_tunnel.stream.shards import ShardId, StreamInfo
from ots_tunnel.transport import Transport
from ots_tunnel.transport.aio import AioTransport

logger = logging.getLogger(__name__)


class WorkerState(enum.Enum):
    """What a worker does."""

    NOT_RUNNING = "not running"
    RUNNING = "running"
    SHUTDOWN = "shut down"
    ERROR = "ended by an error"


class StreamWorker:
    """Follows a table until `shutdown`, beside all workers with the same table of leases, in every language.

    Args:
        worker_id: unique over all of these workers. One that starts again under its old id has its leases back at
            once; two that run under one id write beside each other.
        record_processor_factory: makes a processor for every shard that this worker gets.
        transport: None connects to the endpoint; it is closed by `run`.
        clock: monotonic seconds that count suspended time. on_hang: replaced in tests.

    Raises:
        ConfigError: the id is no text, or empty.
    """

    def __init__(
        self,
        worker_id: str,
        config: StreamWorkerConfig,
        record_processor_factory: RecordProcessorFactory,
        *,
        transport: Transport | None = None,
        clock: Callable[[], float] = boottime,
        on_hang: Callable[[str], None] = end_process,
    ) -> None:
        if not isinstance(worker_id, str) or not worker_id:
            raise ConfigError(
                f"worker_id: found {worker_id!r}, allowed is a text that is not empty, and that no other worker of the "
                "leases has"
            )
        self.worker_id = WorkerId(worker_id)
        self._config = config
        self._factory = record_processor_factory
        self._transport = transport
        self._clock = clock
        self._on_hang = on_hang
        self._state = WorkerState.NOT_RUNNING
        self._error: Exception | None = None
        self._stopped = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._follower: StreamFollower | None = None
        self._client: StreamClient | None = None
        self.gaps = ShardGaps(stops=config.on_possible_gap == "Stop", on_gap=self._found_gap)
        #: The error that stopped each shard, until it has moved again.
        self.shard_errors: dict[ShardId, TunnelError] = {}
        #: The last gap of each shard.
        self.possible_gaps: dict[ShardId, Gap] = {}

    def __repr__(self) -> str:
        return f"StreamWorker({self.worker_id}, {self._state.value})"

    @property
    def status(self) -> WorkerState:
        """What the worker does."""
        return self._state

    @property
    def exception(self) -> Exception | None:
        """The error that ended the worker."""
        return self._error

    @property
    def leases(self) -> Mapping[ShardId, Lease]:
        """Every lease of the stream as this worker knows it; of any thread."""
        return {} if self._follower is None else self._follower.leases

    @property
    def shards(self) -> Mapping[ShardId, State]:
        """The shards whose leases this worker holds, and what it does with each; of any thread."""
        follower = self._follower
        return {} if follower is None else {shard: task.state for shard, task in follower.shards.items()}

    def run(self) -> None:
        """Follow, blocking, in any thread; errors as in `run_async`."""
        run(self.run_async())

    async def run_async(self) -> None:
        """Follow until `shutdown`.

        Raises:
            InvalidTransition: a worker runs once; make a new one.
            ProcessorFailed: a processor raised, and the configuration says Stop.
            TunnelError: see `StreamFollower.run`.
        """
        if self._state is not WorkerState.NOT_RUNNING:
            raise InvalidTransition(self._state.value, "a second run")
        self._state = WorkerState.RUNNING
        self._loop = asyncio.get_running_loop()
        try:
            await self._follow()
        except Exception as error:
            self._state, self._error = WorkerState.ERROR, error
            raise
        finally:
            if self._state is WorkerState.RUNNING:
                self._state = WorkerState.SHUTDOWN

    async def _follow(self) -> None:
        config, keys = self._config, static_credentials(self._config.credentials)
        # Without a limit: a renewal must not wait for the reads of shards.
        transport = self._transport or AioTransport(config.endpoint, max_connections=0)
        caller = ServiceCaller(transport, config.instance, keys)
        self._client = client = StreamClient(config.endpoint, config.instance, keys, caller=caller)
        table, settings = LeaseTable(caller, config.status_table), config.follow_settings()
        try:
            self._follower = follower = StreamFollower(
                client, table, config.data_table, self.worker_id, self, settings, clock=self._clock
            )
            if self._stopped:
                follower.stop()
            await follower.run()
        finally:
            await client.close()

    def shutdown(self) -> None:
        """Let every processor finish its records and store its checkpoint, hand the leases over, end `run`.

        Any thread may call it.
        """
        self._stopped = True
        if self._loop is not None and self._follower is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._follower.stop)

    # What the follower asks for

    def work_on(self, stream: StreamInfo, held: HeldLease, fence: ChannelFence) -> ProcessorWork:
        """See `following.owner.Owner`."""
        assert self._client is not None, "`run` has begun"
        assert self._follower is not None, "`run` has begun"
        config = self._config
        parts = ProcessorParts(
            self._factory,
            config.gives_empty_pages,
            config.on_processor_error == "Restart",
            self._follower.end,
            self._shard_failed,
            self._on_hang,
        )
        reader = ShardReader(self._client, stream, held.lease, self.gaps, limit=config.max_records)
        return ProcessorWork(parts, reader, held, fence)

    def started(self, stream: StreamInfo) -> None:
        """See `following.owner.Owner`."""
        logger.info("following stream %s", stream.stream_id, extra=self._fields(LogAction.CONNECTED))

    def changed(self, task: ShardTask, before: State) -> None:
        """See `following.owner.Owner`."""
        if task.state.is_over:
            self.shard_errors.pop(task.shard_id, None)
        if task.state is not before:
            fields = {**self._fields(LogAction.CHANNEL_STATE), "channel_id": task.shard_id}
            logger.info("shard: %s -> %s", before.value, task.state.value, extra=fields)

    def call_failed(self, error: TunnelError) -> None:
        """See `following.owner.Owner`."""
        fields = {**self._fields(LogAction.LEASE_CALL_FAILED), "error": str(error)}
        logger.warning("a call about leases or shards failed", extra=fields)

    def _shard_failed(self, shard_id: ShardId, error: TunnelError | None) -> None:
        if error is None:
            self.shard_errors.pop(shard_id, None)
        else:
            self.shard_errors[shard_id] = error

    def _found_gap(self, shard_id: ShardId, gap: Gap) -> None:
        self.possible_gaps[shard_id] = gap

    def _fields(self, action: LogAction) -> dict[str, object]:
        return {"action": action, "tunnel_id": self._config.status_table, "client_id": self.worker_id}
