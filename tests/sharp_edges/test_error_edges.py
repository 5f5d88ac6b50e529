"""Errors: temporary ones are survived, permanent ones are raised, and all of them are visible."""

from __future__ import annotations

import asyncio
import errno
import socket
import struct
from collections.abc import Callable

import aiohttp
import pytest

from ots_emulator.server.faults import FaultRule
from ots_tunnel.client.retry import is_repeatable
from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.daemon import TunnelDaemon, TunnelWorkerConfig
from ots_tunnel.errors import AuthFailed, ConnectionLost, ParameterInvalid, ServiceError, TunnelExpired
from ots_tunnel.model import TunnelType
from ots_tunnel.processor import SimpleProcessorFactory
from ots_tunnel.protocol.http.message import HttpResponse
from ots_tunnel.transport.aio import translate
from tests.support.emulator.emulator_scene import CREDENTIALS, TABLE
from tests.support.emulator.virtual_scene import VirtualScene
from tests.support.sinks.sinks import RecordingSink
from tests.support.waiting import until

KEYS = [f"k{number:03}" for number in range(100)]


async def streaming() -> VirtualScene:
    scene = VirtualScene()
    await scene.create_table()
    await scene.create_tunnel(TunnelType.Stream)
    return scene


def daemon(scene: VirtualScene, monkeypatch: pytest.MonkeyPatch) -> TunnelDaemon:
    """The vendor's shape of a worker, calling the scene."""
    monkeypatch.setattr("ots_tunnel.daemon.TunnelClient", lambda *arguments: scene.calling_client())
    config = TunnelWorkerConfig(SimpleProcessorFactory(lambda context, records: None), heartbeat_interval=5)
    return TunnelDaemon(scene.client, scene.tunnel_id, config)


FINAL = {
    "expired": (lambda scene: scene.emulator.expire_tunnel("demo", scene.tunnel_id), TunnelExpired),
    "deleted": (lambda scene: scene.emulator.instances["demo"].tunnels.clear(), ParameterInvalid),
    "keys revoked": (lambda scene: scene.emulator.faults.add(FaultRule(code="OTSAuthFailed")), AuthFailed),
}


@pytest.mark.looptime
@pytest.mark.parametrize(("fault", "error"), FINAL.values(), ids=FINAL)
async def test_g17_the_error_that_ends_the_worker_is_raised(
    fault: Callable[[VirtualScene], None], error: type[Exception]
) -> None:
    """Go's Run returns errors of three codes only and repeats revoked keys without end; ours raises the error."""
    scene = await streaming()
    running = asyncio.create_task(scene.worker(RecordingSink()).run())
    await until(lambda: len(scene.times("heartbeat")) == 2)

    fault(scene)

    with pytest.raises(error):
        await asyncio.wait_for(running, 100)


@pytest.mark.looptime
async def test_g17_the_daemon_raises_what_its_worker_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    """Go's daemon tries refused keys without end; ours ends with the error."""
    scene = await streaming()
    scene.emulator.faults.add(FaultRule("Connect", code="OTSAuthFailed", message="no such key"))

    with pytest.raises(AuthFailed, match="no such key"):
        await daemon(scene, monkeypatch).run_async()

    assert len(scene.times("connect")) == 1


@pytest.mark.looptime
async def test_g17_an_error_that_is_tried_again_can_be_seen_meanwhile() -> None:
    """Java's and Go's connect loops hide their errors; ours shows the last one until a client is connected."""
    scene = await streaming()
    scene.emulator.faults.add(FaultRule("Connect", code="OTSQuotaExhausted", message="too many clients"))
    worker = scene.worker(RecordingSink())

    async with scene.running(worker):
        await until(lambda: len(scene.times("connect")) == 3)
        assert "OTSQuotaExhausted: too many clients" in str(worker.status.document()["error"])
        scene.emulator.clear_faults()
        await until(lambda: worker.status.is_ready)
        assert worker.status.error is None


@pytest.mark.looptime
async def test_g19_trimmed_data_is_read_from_a_new_cursor_or_ends_the_worker() -> None:
    """Go and Java repeat a read of trimmed data because of its code; ours sees from the text that it is permanent.

    Only the cursor of a channel that is opened again may be another one, and so it is opened once more.
    """
    scene = await streaming()
    trimmed = "OTSTrimmedDataAccess: Requested stream data is already trimmed or does not exist."
    worker = scene.worker(RecordingSink())
    running = asyncio.create_task(worker.run())
    await until(lambda: len(scene.times("readrecords")) > 3)
    reads, opened = len(scene.times("readrecords")), len(scene.times("getcheckpoint"))
    scene.emulator.faults.add(FaultRule("ReadRecords", code="OTSTunnelServerUnavailable", message=trimmed, status=400))

    with pytest.raises(TunnelExpired, match="already trimmed"):
        await running

    assert len(scene.times("readrecords")) == reads + 2
    assert len(scene.times("getcheckpoint")) == opened + 1
    assert "TunnelExpired" in (worker.status.error or "")


@pytest.mark.looptime
@pytest.mark.parametrize("call", ["connect", "getcheckpoint", "readrecords", "checkpoint", "heartbeat", "shutdown"])
async def test_g20_an_empty_answer_to_any_call_is_survived(call: str) -> None:
    """Go's process ends on an empty answer to several calls; ours repeats the call and loses nothing."""
    scene = await streaming()
    await scene.put(KEYS)
    spoiled = [b"", b"", b""]

    def spoil(name: str, answer: HttpResponse) -> HttpResponse:
        return HttpResponse(200, answer.headers, spoiled.pop()) if name == call and spoiled else answer

    scene.deliver = spoil
    sink = RecordingSink()
    worker = scene.worker(sink, checkpoint_interval=5)
    async with scene.running(worker):
        await until(lambda: set(sink.written) >= set(scene.everything()))
        await asyncio.sleep(60)

    assert len(spoiled) == (2 if call == "shutdown" else 0)
    assert set(sink.written) == set(scene.everything())


@pytest.mark.parametrize(
    "error",
    [
        ConnectionResetError(errno.ECONNRESET, "connection reset by peer"),
        ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"),
        ConnectionResetError(errno.ECONNRESET, "Die Verbindung wurde zurückgesetzt"),
        BrokenPipeError(errno.EPIPE, "broken pipe"),
        ConnectionAbortedError(),
        aiohttp.ServerDisconnectedError(),
        aiohttp.ClientPayloadError(),
        aiohttp.ClientOSError(errno.ECONNRESET, ""),
        TimeoutError(),
    ],
    ids=repr,
)
def test_g24_a_broken_connection_is_known_by_its_type(error: Exception) -> None:
    """Go looks for a text in the wrong case and does not repeat resets; ours looks at the type of the error."""
    lost = translate(error, "http://service", started=True)

    assert is_repeatable(lost, idempotent=True)
    assert not is_repeatable(lost, idempotent=False)


async def test_g24_a_connection_that_is_reset_is_opened_anew() -> None:
    """The same with a socket that is reset: the call is repeated and answered."""
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await reader.readuntil(b"\r\n\r\n")
        if connections == 1:
            reset = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
            writer.transport.abort()
            return
        writer.write(b"HTTP/1.1 200 OK\r\nx-ots-requestid: r\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    retries: list[str] = []
    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        client = TunnelClient(
            f"http://127.0.0.1:{port}",
            "demo",
            CREDENTIALS,
            on_retry=lambda name, error: retries.append(type(error).__name__),
        )
        try:
            assert await client.list_tunnels(TABLE) == ()
        finally:
            await client.close()

    assert (retries, connections) == ([ConnectionLost.__name__], 2)


@pytest.mark.looptime
async def test_j17_the_end_of_a_worker_is_raised_and_shown() -> None:
    """Java's worker halts silently; ours raises the error, and its status shows it."""
    scene = await streaming()
    worker = scene.worker(RecordingSink())
    running = asyncio.create_task(worker.run())
    await until(lambda: worker.status.is_ready)
    scene.emulator.faults.add(FaultRule("Heartbeat", code="OTSTunnelExpired", message="gone for good"))

    with pytest.raises(ServiceError, match="gone for good"):
        await running

    assert str(worker.status.document()["error"]).startswith("TunnelExpired: OTSTunnelExpired: gone for good")
    assert not worker.status.is_ready
