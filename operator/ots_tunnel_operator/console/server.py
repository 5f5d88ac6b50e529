"""HTTP server of the console, in threads of its own: a page, its script, its style sheet and one JSON document.

It only answers GET, and no answer changes anything. It shows what may be read by whom reaches it: on a loopback address
that is whom the cluster allows to forward a port of this pod (`kubectl port-forward`).
"""

from __future__ import annotations

import gzip
import ipaddress
import json
import sys
import threading
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qs, urlsplit

from ots_tunnel_operator.console.console import Console, StandsStill
from ots_tunnel_operator.server import EveryAddressServer, ServingThread

#: Requests that are answered at once; a further connection is closed, so that readers cannot use up the process.
MOST_REQUESTS = 16
#: Seconds after which a connection that sends nothing is closed.
IDLE_SECONDS = 10.0
#: Names by which a forwarded port is opened. Another name that leads to this address is a page of elsewhere that tries
#: to read this one through the reader's browser (DNS rebinding).
LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
#: Ends of the names of Services, which nobody outside of a cluster can have.
OF_CLUSTER = (".svc", ".svc.cluster.local")
#: Bytes from which a document is compressed.
_LARGE = 1024

#: Only this page's own files run and are loaded; a script can make no markup out of a text.
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_FILES = {
    "/": ("page.html", "text/html; charset=utf-8"),
    "/console.js": ("console.js", "text/javascript; charset=utf-8"),
    "/console.css": ("console.css", "text/css; charset=utf-8"),
}
_JSON = "application/json"
_UNKNOWN_NAME = (
    b"this is no name of this page: console.names of the chart, or --console-name, lists those of an Ingress\n"
)


class ConsoleServer(ServingThread):
    """Context manager that serves a `Console`; port 0 selects a free port.

    Only requests by a name of the page are answered: on a loopback address those of this machine, otherwise also an
    address, the name of a Service, and further ones that are given.
    """

    def __init__(self, console: Console, host: str, port: int, names: Iterable[str] = ()) -> None:
        known = None if is_loopback(host) else frozenset(name.lower() for name in names)
        super().__init__(_Server((host, port), _handler(console, known)), "console")
        console.port = self.port


class _Server(EveryAddressServer):
    """A server with a thread for each request, up to a number."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(address, handler)
        self._places = threading.BoundedSemaphore(MOST_REQUESTS)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for a request, or close its connection where too many are answered already."""
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer a request in its thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print an error of ours; a reader that went away is none."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


def is_loopback(host: str) -> bool:
    """Whether an address to listen on is reached from the same machine, or pod, alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_own_name(host: str, names: frozenset[str] | None) -> bool:
    """Whether a name that a browser asks for leads to this page by the will of who runs it.

    Args:
        host: without the port.
        names: further names, lower case; None where only those of this machine are taken.
    """
    if host in LOCAL_NAMES or names is None:
        return host in LOCAL_NAMES
    if host in names or host.endswith(OF_CLUSTER):
        return True
    try:
        ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        # a Service of the reader's own namespace; a public name has a dot
        return bool(host) and "." not in host
    return True


def _handler(console: Console, names: frozenset[str] | None) -> type[BaseHTTPRequestHandler]:
    wrong_name = b"open this page as http://localhost\n" if names is None else _UNKNOWN_NAME
    folder = files("ots_tunnel_operator.console")
    # read once: a process without a free descriptor still answers
    found = {path: ((folder / name).read_bytes(), kind) for path, (name, kind) in _FILES.items()}

    class Handler(BaseHTTPRequestHandler):
        """Handler of one request."""

        timeout = IDLE_SECONDS

        def do_GET(self) -> None:
            """Answer with a file, or with the state."""
            address = urlsplit(self.path)
            if not is_own_name(_host(self.headers.get("Host", "")), names):
                self._answer(421, wrong_name, "text/plain; charset=utf-8")
            elif address.path in found:
                self._answer(200, *found[address.path])
            elif address.path == "/state":
                self._answer(*_state(console, parse_qs(address.query).get("object", [])), _JSON)
            else:
                self._answer(404, b"not found\n", "text/plain; charset=utf-8")

        def _answer(self, status: int, body: bytes, kind: str) -> None:
            self.send_response(status)
            for name, value in HEADERS.items():
                self.send_header(name, value)
            if len(body) >= _LARGE and "gzip" in self.headers.get("Accept-Encoding", ""):
                body = gzip.compress(body, 1)
                self.send_header("Content-Encoding", "gzip")
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing: an open page asks every few seconds."""

    return Handler


def _host(header: str) -> str:
    """The name in a Host header, without the port."""
    name, colon, port = header.rpartition(":")
    return (name if colon and port.isdecimal() else header).lower()


def _state(console: Console, named: list[str]) -> tuple[int, bytes]:
    """Status and document: of one object where it is named as `namespace/name`, otherwise of the fleet."""
    try:
        if not named:
            return 200, console.fleet_json()
        namespace, _, name = named[0].partition("/")
        return 200, console.object_json((namespace, name))
    except StandsStill as error:
        return 503, json.dumps({"failure": str(error)}).encode()
