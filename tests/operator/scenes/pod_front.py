"""A front of an API server that answers for pods on loopback.

The API server passes a request to a pod's port on (`pods/NAME:PORT/proxy`), but never to an address of 127.0.0.0/8,
where `LoopbackNode` runs its workers. This front does that one thing in its place; all else goes to the API server.
"""

from __future__ import annotations

import http.client
import re
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from urllib.parse import urlsplit

import yaml

from tests.support.kube.kube_api import KubeApi

_POD = re.compile(r"/api/v1/namespaces/([^/]+)/pods/([^/:]+):(\d+)/proxy(/.*)")
_SECONDS = 20.0


class PodFront:
    """Context manager that serves on loopback; `kubeconfig` leads to it.

    Args:
        kubeconfig: of the API server, with a token.
        folder: for the front's own kubeconfig.
    """

    def __init__(self, kubeconfig: Path, folder: Path) -> None:
        document = yaml.safe_load(kubeconfig.read_text())
        cluster, self._token = document["clusters"][0]["cluster"], document["users"][0]["user"]["token"]
        self._address = urlsplit(cluster["server"]).netloc
        self._tls = ssl.create_default_context(cafile=cluster["certificate-authority"])
        self._kube = KubeApi(kubeconfig)
        front = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                status, headers, body = front.answer(self.path, dict(self.headers))
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
                """Write no log."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, name="front", daemon=True)
        self.kubeconfig = folder / "front.kubeconfig"

    def __enter__(self) -> PodFront:
        server = f"http://127.0.0.1:{self._server.server_port}"
        context = {"name": "front", "context": {"cluster": "front", "user": "nobody"}}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "front", "cluster": {"server": server}}],
            "users": [{"name": "nobody", "user": {}}],
            "contexts": [context],
            "current-context": "front",
        }
        self.kubeconfig.write_text(yaml.safe_dump(document))
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(_SECONDS)

    def answer(self, path: str, headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of a GET."""
        found = _POD.fullmatch(path)
        if found is None:
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                self._address, context=self._tls, timeout=_SECONDS
            )
            kept = {"Accept": headers.get("Accept", "*/*"), "Authorization": f"Bearer {self._token}"}
            return _ask(connection, path, kept)
        namespace, name, port, rest = found.groups()
        pod = self._kube.get("Pod", namespace, name)
        assert pod is not None
        return _ask(http.client.HTTPConnection(pod["status"]["podIP"], int(port), timeout=_SECONDS), rest, {})


def _ask(
    connection: http.client.HTTPConnection, path: str, headers: dict[str, str]
) -> tuple[int, dict[str, str], bytes]:
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, {"Content-Type": answer.headers.get("Content-Type", "")}, answer.read()
    finally:
        connection.close()
