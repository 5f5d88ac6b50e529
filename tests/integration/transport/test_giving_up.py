"""A write that was given up does not arrive, whichever buffer holds it: the process's, TLS's or the kernel's.

The server begins to read in the moment in which the error is raised, in the thread of the loop: what could still leave
then would arrive.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from ots_tunnel.config import FileStoreConfig
from ots_tunnel.errors import ConnectError, OwnershipLost, ReadTimeout, SinkError
from ots_tunnel.protocol.http.message import HttpRequest, HttpResponse
from ots_tunnel.sinks.files.bucket import BucketStore
from ots_tunnel.sinks.kafka.producer import ReportingProducer
from ots_tunnel.sinks.kafka.reports import Reports
from ots_tunnel.transport.aio import AioTransport
from ots_tunnel.transport.foreign_sockets import limit_sockets
from ots_tunnel.transport.guarded_body import GuardedBody
from ots_tunnel.transport.sync import SyncTransport
from tests.support.network.certificates import self_signed
from tests.support.waiting import until, wait_until

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
#: Bytes: less than one part and more than the receiver's buffer; as many as the sender's buffer holds; more than both.
SMALL = 20_000
KERNEL_SIZED = 100_000
LARGE = 4_500_000
#: Seconds that a write may take, and then more where a busy machine has used them up for connecting.
TIMEOUT = 1.0
TIMEOUTS = (TIMEOUT, 8.0, 40.0)

Send = Callable[..., Coroutine[None, None, HttpResponse]]


class StalledServer:
    """Accepts connections and reads none of their bytes until `drain`."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self._listening = socket.socket()
        self._listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self._listening.bind(("127.0.0.1", 0))
        self._listening.listen()
        self._listening.settimeout(60)
        self.port = self._listening.getsockname()[1]
        self.endpoint = f"{'https' if tls else 'http'}://localhost:{self.port}"
        self._accepted: list[socket.socket] = []
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            connection.settimeout(10)
            # a client may have given up before the handshake was over
            with contextlib.suppress(OSError):
                if self._tls is not None:
                    connection = self._tls.wrap_socket(connection, server_side=True)
                self._accepted.append(connection)

    def forget(self) -> None:
        """Take the next connection for the first one."""
        while self._accepted:
            self._accepted.pop().close()

    def answer_early(self, answer: bytes) -> None:
        """Answer on the first connection, and read nothing."""
        wait_until(lambda: self._accepted, what="a connection")[0].sendall(answer)

    def drain(self, answer: bytes = b"") -> int:
        """Read the first connection until its body is complete, or until its end; return the body's bytes."""
        connection = wait_until(lambda: self._accepted, what="a connection")[0]
        received = bytearray()
        try:
            while data := connection.recv(1 << 20):
                received += data
                head, end, body = received.partition(b"\r\n\r\n")
                if end and len(body) == int(head.lower().split(b"content-length:")[1].split()[0]):
                    if not answer:
                        return len(body)
                    connection.sendall(answer)
                    answer = b""
        except OSError:
            pass
        return len(received.partition(b"\r\n\r\n")[2])

    def read_slowly(self) -> int:
        """Read a little of the first connection at a time, until no more comes; return the body's bytes."""
        connection = wait_until(lambda: self._accepted, what="a connection")[0]
        connection.settimeout(1)
        received = bytearray()
        with contextlib.suppress(OSError):
            while data := connection.recv(2048):
                received += data
                time.sleep(0.08)
        return len(received.partition(b"\r\n\r\n")[2])

    def close(self) -> None:
        for each in (self._listening, *self._accepted):
            each.close()


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and a certificate for localhost that signs itself, in one file."""
    return self_signed(tmp_path_factory.mktemp("tls"))


@pytest.fixture(params=["plain", "tls"])
def server(
    request: pytest.FixtureRequest, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[StalledServer]:
    tls = None
    if request.param == "tls":
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate)
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    stalled = StalledServer(tls)
    yield stalled
    stalled.close()


@pytest.fixture(params=["aio", "sync"])
async def send(request: pytest.FixtureRequest, server: StalledServer) -> AsyncIterator[Send]:
    """`send(body, timeout=..., before_send=...)` of either transport."""
    if request.param == "aio":
        aio = AioTransport(server.endpoint)
        yield lambda body, **options: aio.send(HttpRequest("/Write", {}, body), **options)
        await aio.close()
        return
    sync, loop = SyncTransport(server.endpoint), asyncio.get_running_loop()
    with ThreadPoolExecutor(1) as threads:

        async def in_a_thread(body: bytes, **options: Any) -> HttpResponse:
            return await loop.run_in_executor(threads, lambda: sync.send(HttpRequest("/Write", {}, body), **options))

        yield in_a_thread
    sync.close()


def allow() -> None:
    """A fence that is open."""


class ClosingFence:
    """A fence that a test closes."""

    def __init__(self) -> None:
        self.asked = 0
        self.closed = False

    def ask(self) -> None:
        self.asked += 1
        if self.closed:
            raise OwnershipLost("closed meanwhile")


def is_written(port: int) -> bool:
    """Whether the kernel holds a part of a body for the peer at a port of this machine; a TLS handshake is shorter."""
    held = 0
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, _, peer, _, queues, *_ = line.split()
        if int(peer.partition(":")[2], 16) == port:
            held += int(queues.partition(":")[0], 16)
    return held > SMALL // 4


async def time_out(server: StalledServer, send: Send, size: int, **options: Any) -> None:
    """Send a request whose time is over while nobody reads it."""
    for seconds in TIMEOUTS:
        try:
            await send(bytes(size), timeout=seconds, **options)
        except ReadTimeout:
            return
        except ConnectError:
            server.forget()
    pytest.fail("connecting takes all the time")


@pytest.mark.parametrize("size", [SMALL, KERNEL_SIZED, LARGE])
async def test_a_write_that_timed_out_does_not_arrive(server: StalledServer, send: Send, size: int) -> None:
    await time_out(server, send, size, before_send=allow)

    assert server.drain() < size


async def test_a_read_that_timed_out_does_not_arrive_either(server: StalledServer, send: Send) -> None:
    await time_out(server, send, KERNEL_SIZED)

    assert server.drain() < KERNEL_SIZED


async def test_a_write_that_was_cancelled_does_not_arrive(server: StalledServer) -> None:
    transport = AioTransport(server.endpoint)
    call = asyncio.create_task(
        transport.send(HttpRequest("/Write", {}, bytes(KERNEL_SIZED)), timeout=50, before_send=allow)
    )
    await until(lambda: is_written(server.port), what="the kernel holds a part")
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call

    assert server.drain() < KERNEL_SIZED
    await transport.close()


@pytest.mark.parametrize("size", [KERNEL_SIZED, LARGE])
async def test_the_fence_is_asked_again_before_the_rest_of_a_body(server: StalledServer, send: Send, size: int) -> None:
    fence = ClosingFence()
    call = asyncio.create_task(send(bytes(size), timeout=50, before_send=fence.ask))
    await until(lambda: is_written(server.port), what="the kernel holds a part")
    fence.closed = True
    arrived = asyncio.create_task(asyncio.to_thread(server.drain))

    with pytest.raises(OwnershipLost, match="closed meanwhile"):
        await call
    assert await arrived < size


@pytest.mark.lasts(10)
async def test_the_last_byte_waits_until_the_peer_has_room_for_all_others(server: StalledServer, send: Send) -> None:
    fence = ClosingFence()
    call = asyncio.create_task(send(bytes(KERNEL_SIZED), timeout=50, before_send=fence.ask))
    await until(lambda: is_written(server.port), what="the kernel holds a part")
    await asyncio.sleep(0.2)

    assert fence.asked == 1
    arrived = asyncio.create_task(asyncio.to_thread(server.drain, OK))
    assert (await call).body == b"ok"
    assert await arrived == KERNEL_SIZED
    assert fence.asked == 2


async def test_a_slow_reader_gets_the_whole_body(server: StalledServer, send: Send) -> None:
    call = asyncio.create_task(send(bytes(LARGE), timeout=50, before_send=allow))
    await until(lambda: is_written(server.port), what="the kernel holds a part")
    arrived = asyncio.create_task(asyncio.to_thread(server.drain, OK))

    assert (await call).body == b"ok"
    arrived.cancel()


async def test_an_early_answer_ends_the_rest_of_the_body(server: StalledServer) -> None:
    transport = AioTransport(server.endpoint)
    call = asyncio.create_task(transport.send(HttpRequest("/Write", {}, bytes(LARGE)), timeout=10, before_send=allow))
    await asyncio.to_thread(server.answer_early, OK.replace(b"200 OK", b"413 Too Large"))

    assert (await call).status == 413
    assert transport.reusable_connections == 0
    await transport.close()


@pytest.mark.parametrize("connection", ["close", "keep-alive"])
async def test_what_an_early_answer_leaves_of_a_small_write_does_not_arrive(
    server: StalledServer, connection: str
) -> None:
    transport = AioTransport(server.endpoint)
    call = asyncio.create_task(transport.send(HttpRequest("/Write", {}, bytes(SMALL)), timeout=10, before_send=allow))
    await until(lambda: is_written(server.port), what="the kernel holds a part")
    busy = f"503 Busy\r\nConnection: {connection}".encode()
    await asyncio.to_thread(server.answer_early, OK.replace(b"200 OK", busy))

    assert (await call).status == 503
    assert transport.reusable_connections == 0
    assert server.drain() < SMALL
    await transport.close()


async def test_a_batch_of_the_http_sink_that_timed_out_does_not_arrive(server: StalledServer) -> None:
    async with aiohttp.ClientSession() as session:
        for size in (SMALL, KERNEL_SIZED, LARGE):
            for seconds in TIMEOUTS:
                body, trust = GuardedBody(bytes(size), allow, seconds), ssl.create_default_context()
                limit = aiohttp.ClientTimeout(total=seconds)
                with pytest.raises((TimeoutError, aiohttp.ClientError)):  # the second: the kernel was first
                    await session.post(server.endpoint, data=body, ssl=trust, timeout=limit)
                await body.give_up()
                if body.started:
                    break
                server.forget()

            assert body.started
            assert server.drain() < size
            server.forget()


@pytest.mark.parametrize("size", [KERNEL_SIZED, LARGE])
async def test_the_fence_of_the_http_sink_is_asked_again(server: StalledServer, size: int) -> None:
    fence = ClosingFence()
    async with aiohttp.ClientSession() as session:
        body, trust = GuardedBody(bytes(size), fence.ask, 50), ssl.create_default_context()
        limit = aiohttp.ClientTimeout(total=50)
        call = asyncio.create_task(session.post(server.endpoint, data=body, ssl=trust, timeout=limit))
        await until(lambda: is_written(server.port), what="the kernel holds a part")
        await asyncio.sleep(0.2)
        fence.closed = True
        arrived = asyncio.create_task(asyncio.to_thread(server.drain))
        with pytest.raises((OwnershipLost, aiohttp.ClientError)):
            await call
        assert isinstance(body.refusal, OwnershipLost)
        await body.give_up()
        assert await arrived < size


async def test_a_batch_of_the_http_sink_arrives_whole_at_a_slow_reader(server: StalledServer) -> None:
    async with aiohttp.ClientSession() as session:
        body = GuardedBody(bytes(LARGE), allow, 50)
        call = asyncio.create_task(session.post(server.endpoint, data=body, ssl=ssl.create_default_context()))
        await until(lambda: is_written(server.port), what="the kernel holds a part")
        arrived = asyncio.create_task(asyncio.to_thread(server.drain, OK))
        async with await call as answer:
            body.answered()
            assert await answer.text() == "ok"
    assert await arrived == LARGE


@pytest.mark.parametrize("server", ["plain"], indirect=True)
async def test_an_object_whose_upload_was_given_up_does_not_appear(server: StalledServer, tmp_path: Path) -> None:
    config = FileStoreConfig.model_validate(
        {
            "url": "s3://bucket/place",
            "endpoint": server.endpoint,
            "credentials": {"directory": str(tmp_path)},
        }
    )
    (tmp_path / "accessKeyId").write_text("id")
    (tmp_path / "accessKeySecret").write_text("secret")
    spooled = tmp_path / "spooled"
    spooled.write_bytes(bytes(KERNEL_SIZED))
    store = BucketStore(config, path="sink.files", deadline=3 * TIMEOUT)

    with pytest.raises(SinkError):
        await store.publish(spooled, "folder", "name", allow)
    # The library closes its connection in a thread of its own, for which the deadline leaves time.
    await until(lambda: not limit_sockets((server.port,), 3 * TIMEOUT), what="the connection is closed")

    assert server.drain() < KERNEL_SIZED


@pytest.mark.parametrize("server", ["plain"], indirect=True)
async def test_connections_of_the_kafka_client_are_limited(server: StalledServer) -> None:
    producer = ReportingProducer(
        {"bootstrap.servers": f"127.0.0.1:{server.port}", "message.timeout.ms": 5000}, "topic", lambda failure: None
    )
    reports: Reports[object] = Reports()
    producer.produce([(b"key", b"value", [])], [lambda *report: reports.kept.append(report)], reports)

    await until(lambda: limit_sockets((server.port,), 5), what="it connects")
    await until(lambda: producer.limited > 0, what="the producer has found its connection")
    await producer.close()


PROGRAM = """
import asyncio, sys
from ots_tunnel.protocol.http.message import HttpRequest
from ots_tunnel.transport.aio import AioTransport
from ots_tunnel.transport.sync import SyncTransport

request = HttpRequest("/Write", {}, bytes(int(sys.argv[3])))
options = {"timeout": float(sys.argv[4]), "before_send": lambda: None}
if sys.argv[1] == "sync":
    SyncTransport(sys.argv[2]).send(request, **options)
else:
    asyncio.run(AioTransport(sys.argv[2]).send(request, **options))
"""


@pytest.fixture(params=["aio", "sync"])
def writer(request: pytest.FixtureRequest, server: StalledServer) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts a process with a write under way that the server does not read."""
    started: list[subprocess.Popen[bytes]] = []

    def start(timeout: float, size: int = SMALL) -> subprocess.Popen[bytes]:
        command = (sys.executable, "-c", PROGRAM, request.param, server.endpoint, str(size), str(timeout))
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=os.environ)
        started.append(process)
        wait_until(lambda: is_written(server.port), what="the kernel holds a part")
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_a_write_of_a_killed_process_does_not_arrive(
    server: StalledServer, writer: Callable[..., subprocess.Popen[bytes]]
) -> None:
    process = writer(60)
    process.kill()
    process.wait()

    assert server.drain() < SMALL


def test_a_write_of_a_stopped_process_does_not_arrive_after_its_deadline(
    server: StalledServer, writer: Callable[..., subprocess.Popen[bytes]]
) -> None:
    process = writer(5)
    process.send_signal(signal.SIGSTOP)
    wait_until(lambda: not is_written(server.port), what="the kernel has given the write up")

    assert server.drain() < SMALL
    assert process.poll() is None


@pytest.mark.parametrize("server", ["plain"], indirect=True)
def test_a_peer_that_reads_slowly_does_not_get_the_last_byte_from_a_stopped_process(
    server: StalledServer, writer: Callable[..., subprocess.Popen[bytes]]
) -> None:
    """Each acknowledgement begins the kernel's limit anew: what it holds leaves, also after the deadline."""
    process = writer(5, KERNEL_SIZED)
    process.send_signal(signal.SIGSTOP)

    assert server.read_slowly() < KERNEL_SIZED
    assert process.poll() is None
