"""A web service that takes batches of CloudEvents, in a thread of this process."""

from __future__ import annotations

import base64
import hmac
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Hook:
    """What the service has taken; a batch with a refused key is answered by 422, one without a signature by 401.

    Args:
        secret: key of the signature of every request.
        refused: keys that it does not take.
    """

    def __init__(self, secret: bytes, refused: frozenset[str]) -> None:
        self._secret = secret
        self._refused = refused
        self._turn = threading.Lock()
        self._taken: list[dict[str, Any]] = []
        self.url = ""

    @property
    def records(self) -> list[dict[str, Any]]:
        """The records of all batches that were taken."""
        with self._turn:
            return list(self._taken)

    def answer(self, headers: Any, body: bytes) -> int:
        """Take a batch, and return the status of the answer."""
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        expected = b"v1," + base64.b64encode(hmac.digest(self._secret, signed, "sha256"))
        if not hmac.compare_digest(expected, str(headers["webhook-signature"]).encode()):
            return 401
        records = [event["data"] for event in json.loads(body)]
        if any(record["key"]["id"] in self._refused for record in records):
            return 422
        with self._turn:
            self._taken += records
        return 200


@contextmanager
def running_hook(secret: bytes, *refused: str) -> Iterator[Hook]:
    """Run the service on loopback; `refused` are keys of rows."""
    hook = Hook(secret, frozenset(refused))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(hook.answer(self.headers, body))
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 - the name that http.server gives it
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, name="hook", daemon=True)
    thread.start()
    hook.url = f"http://127.0.0.1:{server.server_port}/orders"
    try:
        yield hook
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()
