"""An API server that keeps ConfigMaps, with optimistic locking, and can lose answers."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from ots_tunnel.snapshot.record import PROGRESS_LABEL
from ots_tunnel.spark.cluster import ClusterAccess


class ConfigMapServer:
    """State and behaviour of the server; the handler only transfers bytes."""

    def __init__(self) -> None:
        self.maps: dict[str, dict[str, Any]] = {}
        self.writes: list[str] = []
        self.tokens: set[str | None] = set()
        self.lose_answers = 0
        self.refuse_with: int | None = None
        #: Writes before which somebody else changes the metadata.
        self.changes_of_metadata = 0
        #: Writes that are not answered and carried out later, if at all.
        self.hold_writes = 0
        #: A held write arrives right before the next one.
        self.carry_out_at_next_write = False
        self._held: list[tuple[str, Any]] = []
        self._version = 0
        self._lock = threading.Lock()

    def handle(self, method: str, path: str, body: Any) -> tuple[int, dict[str, Any]]:
        with self._lock:
            if self.refuse_with is not None:
                return self.refuse_with, {"reason": "Refused", "message": "not now"}
            if method == "POST":
                path = f"{path}/{body['metadata']['name']}"
                return self._store(path, body, 201) if path not in self.maps else (409, {"message": "exists"})
            if path not in self.maps:
                return 404, {"message": "not found"}
            if method == "GET":
                return 200, self.maps[path]
            return self._replace(path, body)

    def _replace(self, path: str, body: Any) -> tuple[int, dict[str, Any]]:
        if self.hold_writes:
            self.hold_writes -= 1
            self.lose_answers += 1
            self._held.append((path, body))
            return 200, body
        if self.carry_out_at_next_write:
            self.carry_out_at_next_write = False
            self._replace(*self._held.pop())
        if self.changes_of_metadata:
            self.changes_of_metadata -= 1
            self._store(path, self.maps[path], 200)
        stored = self.maps[path]["metadata"]["resourceVersion"]
        if body["metadata"].get("resourceVersion", stored) != stored:
            return 409, {"message": "the object has been modified"}
        return self._store(path, body, 200)

    def make(self, path: str, label: str = "tunnel-1") -> None:
        """Make an empty record, as the operator does before it starts a driver."""
        folder, name = path.rsplit("/", 1)
        self.handle("POST", folder, {"metadata": {"name": name, "labels": {PROGRESS_LABEL: label}, "uid": "u-1"}})

    def _store(self, path: str, body: dict[str, Any], status: int) -> tuple[int, dict[str, Any]]:
        self._version += 1
        self.writes.append(path)
        self.maps[path] = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self._version)}}
        return status, self.maps[path]


@contextmanager
def serving(state: ConfigMapServer) -> Iterator[str]:
    """Serve on a free port; yield the URL."""

    class Handler(BaseHTTPRequestHandler):
        def serve(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            state.tokens.add(self.headers.get("Authorization"))
            status, answer = state.handle(self.command, self.path, body)
            if state.lose_answers and self.command != "GET":
                state.lose_answers -= 1
                self.close_connection = True
                return
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = serve

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base class's
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join(timeout=10)
        server.server_close()


@pytest.fixture
def config_map_server() -> ConfigMapServer:
    return ConfigMapServer()


@pytest.fixture
def cluster_access(config_map_server: ConfigMapServer, tmp_path: Path) -> Iterator[ClusterAccess]:
    token = tmp_path / "token"
    token.write_text("secret-token\n")
    with serving(config_map_server) as url:
        yield ClusterAccess(url, token)
