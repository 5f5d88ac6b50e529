"""A watch over TLS ends with its connection, whatever the API server says to that."""

from __future__ import annotations

import asyncio
import socket
import ssl
from pathlib import Path

import pytest

from ots_tunnel_operator.kube.client import Kube
from ots_tunnel_operator.kube.cluster import Selection
from ots_tunnel_operator.kube.kinds import SECRET
from tests.support.kube.kubeconfig import write_kubeconfig
from tests.support.network.certificates import self_signed

ACCEPTED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def serve_one_watch(listening: socket.socket, tls: ssl.SSLContext) -> bool:
    """Accept a watch, and say nothing in TLS from then on; whether the connection ends within ten seconds."""
    plain, _ = listening.accept()
    below = plain.dup()
    with below, tls.wrap_socket(plain, server_side=True) as connection:
        connection.recv(65536)
        connection.sendall(ACCEPTED)
        below.settimeout(10)
        try:
            while below.recv(65536):
                pass
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False
        return True


async def test_it_does_not_wait_for_the_farewell_of_the_api_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = self_signed(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"https://localhost:{listening.getsockname()[1]}"
        monkeypatch.setenv("KUBECONFIG", str(write_kubeconfig(tmp_path, url, authority=certificate)))
        monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
        serving = asyncio.create_task(asyncio.to_thread(serve_one_watch, listening, tls))
        kube = await Kube.connect()

        changes = kube.watch(Selection(SECRET, "shop"), "5", 30.0)
        await anext(changes)
        await changes.aclose()

        is_over = await serving
        await kube.close()
        assert is_over
