"""The status server: which request gets which page, and the treatment of misbehaving clients."""

from __future__ import annotations

import asyncio

import pytest

from ots_tunnel.errors import ConfigError
from ots_tunnel.model import TunnelId
from ots_tunnel.worker.status.metrics import WorkerMetrics
from ots_tunnel.worker.status.server import REQUEST_LIMIT, Page, StatusServer, page_of
from ots_tunnel.worker.status.worker_status import WorkerStatus
from tests.support.network.ip_versions import HAS_BOTH

PAGES = {"/healthz": lambda: Page(b"ok\n"), "/broken": lambda: Page(b"no\n", status=503)}


@pytest.mark.parametrize(
    ("request_line", "status", "body"),
    [
        ("GET /healthz HTTP/1.1", 200, b"ok\n"),
        ("GET /healthz?verbose=1 HTTP/1.0", 200, b"ok\n"),
        ("HEAD /healthz HTTP/1.1", 200, b""),
        ("GET /broken HTTP/1.1", 503, b"no\n"),
        ("GET /else HTTP/1.1", 404, b"there are /healthz, /broken\n"),
        ("POST /healthz HTTP/1.1", 405, b"allowed are GET and HEAD\n"),
        ("GET /healthz HTTP/2", 400, b"no request\n"),
        ("nonsense", 400, b"no request\n"),
    ],
)
def test_which_request_gets_which_page(request_line: str, status: int, body: bytes) -> None:
    head, _, found = page_of(f"{request_line}\r\nHost: x\r\n\r\n".encode(), PAGES).partition(b"\r\n\r\n")

    assert head.startswith(f"HTTP/1.1 {status} ".encode())
    assert found == body


def status_server(port: int = 0, host: str = "127.0.0.1") -> StatusServer:
    return StatusServer(WorkerStatus(TunnelId("t"), "tag", WorkerMetrics("t")), host, port)


async def ask(server: StatusServer, message: bytes, host: str = "127.0.0.1") -> bytes:
    reader, writer = await asyncio.open_connection(host, int(server.url.rpartition(":")[2]))
    writer.write(message)
    async with asyncio.timeout(30):
        answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


async def test_answers_over_a_socket() -> None:
    async with status_server() as server:
        assert b"\r\n\r\nok\n" in await ask(server, b"GET /healthz HTTP/1.1\r\n\r\n")
        assert b"503 Service Unavailable" in await ask(server, b"GET /readyz HTTP/1.1\r\n\r\n")
        assert b"ots_tunnel_" in await ask(server, b"GET /metrics HTTP/1.1\r\n\r\n")


@HAS_BOTH
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_a_probe_is_answered_at_either_address_of_the_pod(host: str) -> None:
    async with status_server(host="0.0.0.0") as server:
        assert b"\r\n\r\nok\n" in await ask(server, b"GET /healthz HTTP/1.1\r\n\r\n", host)


async def test_an_endless_request_is_cut() -> None:
    async with status_server() as server:
        try:
            answer = await ask(server, b"GET /" + b"a" * (REQUEST_LIMIT * 4))
        except ConnectionError:
            answer = b""
        assert answer == b""
        assert b"ok" in await ask(server, b"GET /healthz HTTP/1.1\r\n\r\n")


async def test_a_silent_client_does_not_block_the_server() -> None:
    async with asyncio.timeout(30):
        async with status_server() as server:
            _, writer = await asyncio.open_connection("127.0.0.1", int(server.url.rpartition(":")[2]))
            await ask(server, b"GET /healthz HTTP/1.1\r\n\r\n")
        writer.close()


async def test_a_port_that_is_taken_names_the_field() -> None:
    async with status_server() as first:
        port = int(first.url.rpartition(":")[2])
        with pytest.raises(ConfigError, match=rf"http\.port {port}"):
            async with status_server(port):
                pass
