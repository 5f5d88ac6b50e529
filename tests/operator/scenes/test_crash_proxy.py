"""The proxy of the operator's tests leaves nothing behind, whatever the API server does."""

from __future__ import annotations

import gc
import socket
import ssl
import threading
from pathlib import Path

import pytest
from aiohttp import web

from tests.operator.scenes.crash_proxy import STREAM, Chunks, CrashProxy, Handler, Middleware, emulator, kubernetes
from tests.support.kube.kubeconfig import write_kubeconfig
from tests.support.network.certificates import self_signed

ACCEPTED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"


@web.middleware
async def _break(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Let the first chunk of a watch fail, as the write to a caller does that has just gone."""

    async def fail(chunks: Chunks) -> Chunks:
        async for _ in chunks:
            raise ConnectionResetError("the caller is gone")
            yield b""

    request[STREAM] = fail
    return await handler(request)


@pytest.mark.parametrize(
    ("answer", "middleware"), [(b"", None), (ACCEPTED, None), (ACCEPTED, _break)], ids=["silent", "begun", "broken"]
)
def test_a_call_that_is_not_answered_to_its_end_ends_with_the_proxy(
    tmp_path: Path, answer: bytes, middleware: Middleware | None
) -> None:
    """The API server does not even say the farewell of TLS: what is left open makes a warning, which is an error."""
    certificate = self_signed(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    is_asked, is_over = threading.Event(), threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"https://localhost:{listening.getsockname()[1]}"

        def serve() -> None:
            plain, _ = listening.accept()
            with tls.wrap_socket(plain, server_side=True) as connection:
                connection.recv(65536)
                connection.sendall(answer)
                is_asked.set()
                is_over.wait(60)

        serving = threading.Thread(target=serve, daemon=True)
        serving.start()
        kubeconfig = write_kubeconfig(tmp_path, url, authority=certificate)
        with CrashProxy(kubernetes(kubeconfig), emulator("http://127.0.0.1:1"), middleware) as proxy:
            address = proxy.kube_url.removeprefix("http://").split(":")
            with socket.create_connection((address[0], int(address[1]))) as caller:
                caller.sendall(b"GET /api/v1/pods?watch=1 HTTP/1.1\r\nHost: api\r\n\r\n")
                assert is_asked.wait(60)
                if answer:
                    assert caller.recv(65536)
        is_over.set()
        serving.join(60)

    gc.collect()
