"""Serve probes, wait for the lease, run kopf, end.

The process never tries to resume: after the loss of its lease, or an error of kopf, it ends, and Kubernetes starts
another one, which follows whoever leads by then (docs/architecture.md 6.2).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NoReturn, TypeVar

import kopf

from ots_tunnel.errors import ConfigError
from ots_tunnel_operator.console.console import Console
from ots_tunnel_operator.console.server import ConsoleServer
from ots_tunnel_operator.handlers import register
from ots_tunnel_operator.kube.client import Kube
from ots_tunnel_operator.kube.lease import Lease
from ots_tunnel_operator.log_actions import LogAction
from ots_tunnel_operator.metrics import OperatorMetrics
from ots_tunnel_operator.running.leadership import leadership
from ots_tunnel_operator.runtime import Runtime
from ots_tunnel_operator.server import Health, HealthServer
from ots_tunnel_operator.settings import Settings

logger = logging.getLogger(__name__)

_Server = TypeVar("_Server", HealthServer, ConsoleServer)

#: Seconds after the loss of the lease within which the process must end; meanwhile it writes nothing.
LOST_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Place:
    """Where the process works and listens.

    Args:
        namespaces: that it serves; empty means all.
        lease_namespace: of the Lease; empty means no election.
        lease_name: of the Lease.
        http_host: address of the server of probes and metrics.
        http_port: its port; 0 selects a free one.
        console_host: address of the console.
        console_port: its port; 0 selects a free one, None means no console.
        console_names: names by which a browser may ask for it.
    """

    namespaces: tuple[str, ...]
    lease_namespace: str
    lease_name: str
    http_host: str
    http_port: int
    console_host: str
    console_port: int | None
    console_names: tuple[str, ...]


def run_operator(settings: Settings, place: Place) -> int:
    """Run until a signal arrives; returns the exit code.

    Raises:
        ConfigError: there is no cluster, or an address cannot be used.
    """
    # before anything is served: kopf would try again without end what cannot succeed
    asyncio.run(_find_cluster())
    metrics = OperatorMetrics()
    health = Health(metrics)
    is_shown = place.console_port is not None
    console = Console(health, settings.lease, poll_seconds=settings.poll_seconds) if is_shown else None
    with (
        _listening("http", place.http_host, place.http_port, partial(HealthServer, health)) as server,
        console_server(console, place),
    ):
        logger.info("serving probes and metrics", extra={"action": LogAction.SERVING, "port": server.port})
        with leadership(place.lease_namespace, place.lease_name, place.namespaces, health) as lease:
            health.leading = True
            # Never closed: closing would wait for threads that still resolve or call an unreachable endpoint.
            runner = asyncio.Runner()
            may_write = lease.is_held if lease is not None else None
            runtime = Runtime(settings, metrics, place.namespaces, may_write=may_write)
            return runner.run(operate(runtime, health, place.namespaces, lease, console))


def end(code: int) -> NoReturn:
    """End the process without waiting for other threads: all state is written and the lease is released."""
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


@contextlib.contextmanager
def console_server(console: Console | None, place: Place) -> Iterator[None]:
    """Serve the console; without one, nothing."""
    if console is None or place.console_port is None:
        yield
        return

    def make(host: str, port: int) -> ConsoleServer:
        return ConsoleServer(console, host, port, place.console_names)

    with _listening("console", place.console_host, place.console_port, make) as server:
        logger.info("serving the console", extra={"action": LogAction.SERVING_CONSOLE, "port": server.port})
        yield


def _listening(option: str, host: str, port: int, make: Callable[[str, int], _Server]) -> _Server:
    """Make a server.

    Args:
        option: begin of the options that name its address.

    Raises:
        ConfigError: the address cannot be used.
    """
    try:
        return make(host, port)
    except OSError as error:
        # asyncio and socket repeat the address behind the reason
        reason = str(error.strerror or error).partition(" (while")[0]
        raise ConfigError(f"--{option}-host {host} --{option}-port {port}: cannot listen: {reason}") from error


async def _find_cluster() -> None:
    kube = await Kube.connect()
    await kube.close()


async def operate(
    runtime: Runtime,
    health: Health,
    namespaces: tuple[str, ...],
    lease: Lease | None,
    console: Console | None = None,
) -> int:
    """Run kopf until a signal arrives or the lease is lost; returns the exit code, 1 where kopf ends with an error."""
    clusterwide, event_loop = not namespaces, asyncio.get_running_loop()
    # An asyncio event: kopf waits for any other kind of flag in a thread that it cannot stop.
    stop = asyncio.Event()
    beside = [asyncio.create_task(health.keep_ticking(), name="tick")]
    if console is not None:
        beside.append(asyncio.create_task(console.follow(runtime), name="console"))
    if lease is not None:
        lease.when_lost(lambda: _stop_soon(event_loop, stop))
    try:
        await kopf.operator(
            registry=register(runtime, health, clusterwide=clusterwide, stop=stop),
            standalone=True,
            clusterwide=clusterwide,
            namespaces=namespaces,
            stop_flag=stop,
        )
    except Exception:
        # The edge of the process: whatever ends kopf, left to the interpreter the end would wait for threads in calls
        # that nobody answers, and nobody would work meanwhile.
        logger.exception(LogAction.KOPF_ENDED.description, extra={"action": LogAction.KOPF_ENDED})
        return 1
    finally:
        for task in beside:
            task.cancel()
    if lease is None:
        return 0
    lease.when_lost(None)
    return 1 if lease.lost.is_set() else 0


def _stop_soon(event_loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    """Set the event from another thread, and end the process even if its event loop never runs again."""
    timer = threading.Timer(LOST_SECONDS, end, (1,))
    timer.daemon = True
    timer.start()
    with contextlib.suppress(RuntimeError):
        event_loop.call_soon_threadsafe(stop.set)
