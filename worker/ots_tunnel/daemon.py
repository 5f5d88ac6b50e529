"""The vendor's interface for consuming a tunnel: a configuration, a client, and a daemon that runs until stopped.

    client = TunnelClient(endpoint, instance, Credentials(key_id, secret))
    config = TunnelWorkerConfig(SimpleProcessorFactory(process, custom_value="anything"))
    TunnelDaemon(client, tunnel_id, config).run()

Source: docs/protocol.md 5.1, 5.5, 5.9; the vendor's Go `TunnelDaemon` and Java `TunnelWorker`.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ots_tunnel.client.sync_tunnel import SyncTunnelClient
from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.errors import ConfigError, InvalidTransition
from ots_tunnel.fence import write_deadline
from ots_tunnel.forks.running import run
from ots_tunnel.forks.signals import SIGNALS
from ots_tunnel.model import TunnelId
from ots_tunnel.processor import ProcessorFactory
from ots_tunnel.sinks.python.sink import processor_sink
from ots_tunnel.worker.settings import WorkerSettings
from ots_tunnel.worker.worker import TunnelWorker

#: Seconds; the service's own minimum (docs/protocol.md 5.5).
LEAST_INTERVAL = 5


@dataclass(frozen=True, slots=True)
class TunnelWorkerConfig:
    """How a worker behaves; several workers may share one. Times in seconds.

    Args:
        processor_factory: makes the processor of every channel.
        heartbeat_interval: between two heartbeats, 5 or more; new channels come with a heartbeat.
        heartbeat_timeout: the service gives the channels to other clients after this time without a heartbeat; whole
            seconds, more than the interval.
        checkpoint_interval: least time between two checkpoints of a channel.
        client_tag: shown in the client's id; empty means the host's name.
        max_parallel_channels: channels read at the same time; 0 means all.
        rows_per_second: rows read per second; 0 means no limit.
        memory_budget_bytes: bytes of records held in memory.
        drain_timeout: after this time a shutdown gives up what is being written. A callback that is busy then is waited
            for, because it might still write, by at most a third of `heartbeat_timeout` - `heartbeat_interval`.
        reconnect: bounds of the random pause before a new client connects.
        on_possible_gap: `Stop` raises PossibleGap where changes may be missing because they were not read within the
            stream's retention; `Continue` logs them and goes on.

    Raises:
        ConfigError: a value is out of its range; the message names it.
    """

    processor_factory: ProcessorFactory
    heartbeat_interval: float = 30
    heartbeat_timeout: int = 300
    checkpoint_interval: float = 5
    client_tag: str = ""
    max_parallel_channels: int = 0
    rows_per_second: int = 0
    memory_budget_bytes: int = 268_435_456
    drain_timeout: float = 30
    reconnect: tuple[float, float] = (1, 3)
    on_possible_gap: Literal["Stop", "Continue"] = "Stop"

    def __post_init__(self) -> None:
        _allow("heartbeat_interval", self.heartbeat_interval, LEAST_INTERVAL, "the service refuses shorter ones")
        if self.heartbeat_timeout != int(self.heartbeat_timeout):
            # On the wire it is an integer; truncating it would shorten it silently (docs/protocol.md 6.1, G23).
            raise ConfigError(f"heartbeat_timeout: found {self.heartbeat_timeout}, allowed are whole seconds")
        if self.heartbeat_timeout <= self.heartbeat_interval:
            raise ConfigError(
                f"heartbeat_timeout: found {self.heartbeat_timeout}, it must be more than heartbeat_interval "
                f"{self.heartbeat_interval}: otherwise the service forgets the client between two heartbeats"
            )
        _allow("checkpoint_interval", self.checkpoint_interval, 0.1, "each checkpoint is a call")
        _allow("max_parallel_channels", self.max_parallel_channels, 0, "0 means all")
        _allow("rows_per_second", self.rows_per_second, 0, "0 means no limit")
        _allow("memory_budget_bytes", self.memory_budget_bytes, 16_777_216, "the largest pages must fit")
        _allow("drain_timeout", self.drain_timeout, 1, "checkpoints have to be stored")
        if not 0 <= self.reconnect[0] <= self.reconnect[1]:
            raise ConfigError(f"reconnect: found {self.reconnect}, allowed are two growing numbers from 0 on")
        if self.on_possible_gap not in ("Stop", "Continue"):
            raise ConfigError(f"on_possible_gap: found {self.on_possible_gap!r}, allowed are 'Stop' and 'Continue'")

    def settings(self, tunnel_id: TunnelId) -> WorkerSettings:
        """Settings of one worker."""
        return WorkerSettings(
            tunnel_id=tunnel_id,
            client_tag=self.client_tag or socket.gethostname(),
            interval=self.heartbeat_interval,
            timeout=self.heartbeat_timeout,
            checkpoint_interval=self.checkpoint_interval,
            drain=self.drain_timeout,
            memory_budget_bytes=self.memory_budget_bytes,
            max_parallel_channels=self.max_parallel_channels,
            rows_per_second=self.rows_per_second,
            reconnect=self.reconnect,
            on_possible_gap=self.on_possible_gap,
        )

    def worker(self, client: TunnelClient, tunnel_id: TunnelId) -> TunnelWorker:
        """A new worker, which shares nothing with other workers of this configuration (docs/protocol.md 6.2, J5)."""
        patience = write_deadline(self.heartbeat_timeout, self.heartbeat_interval)
        return TunnelWorker(client, processor_sink(self.processor_factory, patience=patience), self.settings(tunnel_id))


class TunnelDaemon:
    """Consumes a tunnel until `shutdown`, once; reconnects and repeats calls that fail.

    Args:
        client: blocking or not; the daemon takes its endpoint, instance and credentials and makes a client itself.
        tunnel_id: as returned by `create_tunnel`.
    """

    def __init__(
        self, client: TunnelClient | SyncTunnelClient, tunnel_id: TunnelId | str, config: TunnelWorkerConfig
    ) -> None:
        self._client = client
        self._tunnel_id = TunnelId(tunnel_id)
        self._config = config
        self._worker: TunnelWorker | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopped = False

    def __repr__(self) -> str:
        return f"TunnelDaemon({self._tunnel_id}, {self._worker})"

    def run(self) -> None:
        """Consume, blocking. In the main thread SIGTERM and SIGINT drain; the second signal closes.

        Raises:
            ServiceError: the tunnel cannot be consumed: expired, deleted, no permission.
            SinkRejected: records are refused permanently. PossibleGap: changes may be missing.
            InvalidTransition: see `run_async`.
        """
        with _signal_handlers_restored():
            run(self._run_with_signals())

    async def run_async(self) -> None:
        """Consume until `shutdown`; errors as in `run`.

        Raises:
            InvalidTransition: it has run before; make a new daemon.
        """
        if self._worker is not None:
            raise InvalidTransition("a daemon that has run", "another run")
        client = TunnelClient(self._client.endpoint, self._client.instance, self._client.credentials)
        self._loop = asyncio.get_running_loop()
        self._worker = self._config.worker(client, self._tunnel_id)
        try:
            if not self._stopped:
                await self._worker.run()
        finally:
            await client.close()

    def shutdown(self) -> None:
        """Drain: finish the present records, store checkpoints, hand the channels back. Any thread may call it."""
        self._stopped = True
        if self._loop is not None and self._worker is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._worker.drain)

    async def _run_with_signals(self) -> None:
        running = asyncio.create_task(self.run_async(), name="tunnel daemon")
        await asyncio.sleep(0)
        if threading.current_thread() is threading.main_thread() and self._worker is not None:
            for number in SIGNALS:
                asyncio.get_running_loop().add_signal_handler(number, self._worker.interrupt)
        await running


@contextlib.contextmanager
def _signal_handlers_restored() -> Iterator[None]:
    """Restore the caller's signal handlers: a closed event loop leaves the default ones."""
    in_main_thread = threading.current_thread() is threading.main_thread()
    handlers = {number: signal.getsignal(number) for number in SIGNALS} if in_main_thread else {}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            if handler is not None:  # a handler that was not set from Python cannot be set again
                signal.signal(number, handler)


def _allow(name: str, value: float, least: float, reason: str) -> None:
    if value < least:
        raise ConfigError(f"{name}: found {value}, allowed is {least} or more: {reason}")
