"""A store that speaks S3, in a thread of this process: moto, with answers that fail when a test says so."""

from __future__ import annotations

import gzip
import json
import logging
import ssl
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from wsgiref.types import StartResponse, WSGIEnvironment

import boto3
from moto.s3.models import s3_backends
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

BUCKET = "shop"


@dataclass
class Fault:
    """A failure of the next answers to some requests.

    Args:
        method: HTTP method of the requests.
        status, code: status and error code of the answers.
        times: number of answers.
        hang: event that is awaited before the answer is sent.
    """

    method: str
    status: int = 503
    code: str = "SlowDown"
    times: int = 1
    hang: threading.Event | None = None
    #: Selects requests by their path and query.
    where: Callable[[str], bool] = field(default=lambda _: True)


class S3Store:
    """The store; `url` is its endpoint."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._faults: list[Fault] = []
        self._turn = threading.Lock()
        #: AccessKey ids of the last requests.
        self.key_ids: deque[str] = deque(maxlen=100)

    def fail(self, method: str, **fault: Any) -> None:
        """Let the next requests of a method fail; see `Fault`."""
        with self._turn:
            self._faults.append(Fault(method, **fault))

    def heal(self) -> None:
        """Remove all faults."""
        with self._turn:
            self._faults.clear()

    def fault_of(self, method: str, target: str) -> Fault | None:
        """The fault of this request."""
        with self._turn:
            for fault in self._faults:
                if fault.method == method and fault.times and fault.where(target):
                    fault.times -= 1
                    return fault
        return None

    def names(self) -> list[str]:
        """Every object."""
        with closing(_client(self.url)) as client:
            return [entry["Key"] for entry in client.list_objects_v2(Bucket=BUCKET).get("Contents", ())]

    def records(self) -> dict[str, list[dict[str, Any]]]:
        """Records in the objects, which are compressed files of JSON lines."""
        bodies = self._bodies()
        return {name: list(map(json.loads, gzip.decompress(body).splitlines())) for name, body in bodies.items()}

    def texts(self, prefix: str) -> list[str]:
        """The objects below a prefix, which are texts."""
        return [body.decode() for name, body in self._bodies().items() if name.startswith(prefix)]

    def _bodies(self) -> dict[str, bytes]:
        with closing(_client(self.url)) as client:
            return {name: client.get_object(Bucket=BUCKET, Key=name)["Body"].read() for name in self.names()}


def _client(url: str, authority: Path | None = None) -> Any:
    return boto3.client(
        "s3",
        endpoint_url=url,
        aws_access_key_id="id",
        aws_secret_access_key="secret",
        region_name="us-east-1",
        verify=str(authority) if authority else None,
    )


class _Quiet(WSGIRequestHandler):
    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Log nothing."""


@contextmanager
def s3_store(
    certificate: Path | None = None, authority: Path | None = None, *, host: str = "127.0.0.1"
) -> Iterator[S3Store]:
    """A store with the bucket `shop`, empty.

    Args:
        certificate: of a TLS server for localhost, with its key; None serves without TLS.
        authority: that has signed it.
        host: address at which it listens: loopback, or the machine's own in a local cluster.
    """
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    s3_backends.reset()  # all stores of a process share them
    moto = DomainDispatcherApplication(create_backend_app)
    store = S3Store("")

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        target = f"{environ['PATH_INFO']}?{environ.get('QUERY_STRING', '')}"
        store.key_ids.append(environ.get("HTTP_AUTHORIZATION", "").partition("Credential=")[2].partition("/")[0])
        fault = store.fault_of(environ["REQUEST_METHOD"], target)
        if fault is None:
            found: Iterable[bytes] = moto(environ, start_response)
            return found
        environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        if fault.hang is not None:
            fault.hang.wait(60)
        body = f"<Error><Code>{fault.code}</Code><Message>as the test wants it</Message></Error>".encode()
        start_response(
            f"{fault.status} Fault", [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))]
        )
        return [body]

    tls = None
    if certificate is not None:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate)
    server = make_server(host, 0, answer, threaded=True, request_handler=_Quiet, ssl_context=tls)
    thread = threading.Thread(target=server.serve_forever, name="s3", daemon=True)
    thread.start()
    store.url = f"https://localhost:{server.server_port}" if tls else f"http://{host}:{server.server_port}"
    client = _client(store.url, authority)
    client.create_bucket(Bucket=BUCKET)
    client.close()
    try:
        yield store
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()
