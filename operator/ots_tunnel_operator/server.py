"""HTTP server of /livez, /readyz and /metrics, in its own thread: it answers even while the event loop is blocked.

`/livez` checks progress (docs/architecture.md 6.1). It fails when the event loop stands still or when an object has
had no pass for too long, and Kubernetes then restarts the operator.
"""

from __future__ import annotations

import asyncio
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from typing import Self

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from ots_tunnel.listening import listening_socket
from ots_tunnel_operator.metrics import OperatorMetrics

#: Seconds that the event loop may stand still before /livez fails.
LOOP_SECONDS = 60.0
#: Seconds between two ticks of the event loop.
TICK_SECONDS = 1.0
#: Seconds after which a connection that sends nothing is closed: its thread would wait for as long as the peer does.
IDLE_SECONDS = 10.0
#: Seconds that an object may go without a pass, or the process without one that observes its object. One object that
#: cannot be observed restarts nothing while others can, and neither does one that is being deleted.
PASS_SECONDS = 900.0


class Health:
    """State behind the probes; the operator sets it, the server's thread reads it."""

    def __init__(self, metrics: OperatorMetrics) -> None:
        self.metrics = metrics
        self.ready = False
        self.leading = False
        metrics.leader_is(lambda: self.leading)
        self.waits_for = ""
        """Who leads instead, in words; empty while that is not known."""
        self._tick = time.monotonic()

    def tick(self) -> None:
        """Record that the event loop, or the wait for the lease, is alive."""
        self._tick = time.monotonic()

    def still(self) -> float:
        """Seconds since the event loop, or the wait for the lease, was last seen alive."""
        return time.monotonic() - self._tick

    async def keep_ticking(self) -> None:
        """Tick until cancelled."""
        while True:
            self.tick()
            await asyncio.sleep(TICK_SECONDS)

    def state(self) -> str:
        """What the process does, in words."""
        if not self.ready:
            return "starting"
        if self.leading:
            return "leading"
        return "standing by" + (f" for {self.waits_for}" if self.waits_for else "")

    def live(self) -> str:
        """Describe why the process is not alive; empty while it is."""
        still = self.still()
        if still > LOOP_SECONDS:
            return f"the event loop has not run for {still:.0f} s"
        oldest = self.metrics.oldest_pass()
        if oldest > PASS_SECONDS:
            return f"an object has had no pass for {oldest:.0f} s"
        failing = self.metrics.failing_seconds()
        return f"no pass has observed its object for {failing:.0f} s" if failing > PASS_SECONDS else ""


class EveryAddressServer(ThreadingHTTPServer):
    """A server that listens on one address, or on all of the pod's with 0.0.0.0 (`ots_tunnel.listening`)."""

    def server_bind(self) -> None:
        """Listen on the address that the server was made with."""
        host, port = str(self.server_address[0]), int(self.server_address[1])
        self.socket.close()
        self.socket = listening_socket(host, port)
        self.server_address = self.socket.getsockname()


class ServingThread:
    """Context manager that runs an HTTP server in a thread of its own."""

    def __init__(self, server: HTTPServer, name: str) -> None:
        self._server = server
        self._thread = threading.Thread(target=server.serve_forever, name=name, daemon=True)

    @property
    def port(self) -> int:
        """Port that the server listens on."""
        return int(self._server.server_address[1])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class HealthServer(ServingThread):
    """Context manager that serves `Health`; port 0 selects a free port."""

    def __init__(self, health: Health, host: str, port: int) -> None:
        server = EveryAddressServer((host, port), _handler(health))
        server.daemon_threads = True
        super().__init__(server, "health")


def _handler(health: Health) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Handler of one request."""

        timeout = IDLE_SECONDS

        def do_GET(self) -> None:
            """Answer a probe or a scrape of the metrics."""
            match self.path.partition("?")[0]:
                case "/livez":
                    wrong = health.live()
                    self._answer(503 if wrong else 200, (wrong or "ok").encode())
                case "/readyz":
                    self._answer(200 if health.ready else 503, health.state().encode())
                case "/metrics":
                    self._answer(200, generate_latest(health.metrics.registry), CONTENT_TYPE_LATEST)
                case _:
                    self._answer(404, b"not found")

        def _answer(self, status: int, body: bytes, content: str = "text/plain; charset=utf-8") -> None:
            self.send_response(status)
            self.send_header("Content-Type", content)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing: probes come every few seconds."""

    return Handler
