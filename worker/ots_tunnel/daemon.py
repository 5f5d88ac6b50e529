"""The vendor's way to consume a tunnel, in Python: a configuration, a client, and a daemon that runs for ever.

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

from ots_tunnel.client.tunnel import SyncTunnelClient, TunnelClient
from ots_tunnel.errors import ConfigError
from ots_tunnel.fence import write_deadline
from ots_tunnel.model import TunnelId
from ots_tunnel.processor import ProcessorFactory
from ots_tunnel.sinks.python.sink import ProcessorSink
from ots_tunnel.worker.settings import WorkerSettings
from ots_tunnel.worker.worker import TunnelWorker

#: Seconds; the service's own minimum (docs/protocol.md 5.5).
LEAST_INTERVAL = 5
#: They drain a daemon, and close it the second time.
SIGNALS = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True, slots=True)
class TunnelWorkerConfig:
    """How a worker behaves; several workers may share one. Times in seconds.

    Args:
        processor_factory: makes the processor of every channel.
        heartbeat_interval: between two heartbeats, 5 at least; new channels come with a heartbeat.
        heartbeat_timeout: without a heartbeat for so long the service gives the channels to others; whole seconds,
            more than the interval.
        checkpoint_interval: progress is stored at most so often per channel.
        client_tag: shown in the client's id; empty means the host's name.
        max_parallel_channels: channels read at the same time; 0 means all.
        rows_per_second: rows read per second; 0 means no limit.
        memory_budget_bytes: records held in memory.
        drain_timeout: how long a shutdown may take.
        reconnect: bounds of the random pause before a new client connects.

    Raises:
        ConfigError: a value is out of its range; the text names it.
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

    def __post_init__(self) -> None:
        _allow("heartbeat_interval", self.heartbeat_interval, LEAST_INTERVAL, "the service refuses shorter ones")
        if self.heartbeat_timeout != int(self.heartbeat_timeout):
            # On the wire it is an integer; cutting the rest off would shorten it silently (docs/protocol.md 6.1, G23).
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

    def settings(self, tunnel_id: TunnelId) -> WorkerSettings:
        """The engine's settings for one worker."""
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
        )

    def worker(self, client: TunnelClient, tunnel_id: TunnelId) -> TunnelWorker:
        """A worker of its own: nothing of it is shared with others of this configuration (docs/protocol.md 6.2, J5)."""
        patience = write_deadline(self.heartbeat_timeout, self.heartbeat_interval)
        return TunnelWorker(client, ProcessorSink(self.processor_factory, patience=patience), self.settings(tunnel_id))


class TunnelDaemon:
    """Consumes a tunnel until it is told to stop, through reconnects and troubles that pass.

    Args:
        client: blocking or not; only where it leads to is used.
        tunnel_id: what create_tunnel returned.
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
        """Consume, blocking. In the main thread SIGTERM and SIGINT drain, and close the second time.

        Raises:
            ServiceError: the tunnel is not to be had: expired, deleted, no permission. SinkRejected: final.
        """
        with _own_handlers_kept():
            asyncio.run(self._run_with_signals())

    async def run_async(self) -> None:
        """Consume until `shutdown`; errors as in `run`."""
        client = TunnelClient(self._client.endpoint, self._client.instance, self._client.credentials)
        self._loop = asyncio.get_running_loop()
        self._worker = self._config.worker(client, self._tunnel_id)
        try:
            if not self._stopped:
                await self._worker.run()
        finally:
            await client.close()

    def shutdown(self) -> None:
        """Drain: finish what is being processed, store checkpoints, hand the channels back; from any thread."""
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
def _own_handlers_kept() -> Iterator[None]:
    """Give the signals back to the caller's handlers: a loop that is closed leaves the default ones."""
    in_main_thread = threading.current_thread() is threading.main_thread()
    handlers = {number: signal.getsignal(number) for number in SIGNALS} if in_main_thread else {}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            if handler is not None:  # one that was not set from Python cannot be set again
                signal.signal(number, handler)


def _allow(name: str, value: float, least: float, reason: str) -> None:
    if value < least:
        raise ConfigError(f"{name}: found {value}, allowed is {least} or more: {reason}")
