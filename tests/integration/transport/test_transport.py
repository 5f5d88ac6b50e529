"""The transports against a real socket: guard, deadlines, errors, connections kept."""

from __future__ import annotations

import asyncio
import gc
import socket
import time
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass, field

import pytest

from ots_tunnel.errors import CodecError, ConnectError, ConnectionLost, OwnershipLost, ReadTimeout
from ots_tunnel.protocol.http.message import HttpRequest, HttpResponse
from ots_tunnel.transport import AT_ONCE
from ots_tunnel.transport.aio import AioTransport
from ots_tunnel.transport.guarded_body import GuardedBody
from ots_tunnel.transport.inprocess import InProcessTransport
from ots_tunnel.transport.sync import SyncTransport
from tests.support.waiting import until

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Ots-RequestId: r\r\n\r\nok"


@dataclass
class RawServer:
    """Answers every request with `answer` when `release` is set, and keeps every received byte.

    An answer that says so is the last one on its connection.
    """

    answer: bytes | None = OK
    received: bytearray = field(default_factory=bytearray)
    requests: int = 0
    connections: int = 0
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    release: asyncio.Event = field(default_factory=asyncio.Event)
    endpoint: str = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.last = writer
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                self.received += head
                length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
                self.received += await reader.readexactly(length)
                self.requests += 1
                self.arrived.set()
                await self.release.wait()
                if self.answer is None:
                    return
                writer.write(self.answer)
                await writer.drain()
                if b"Connection: close" in self.answer:
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@pytest.fixture
async def server() -> AsyncIterator[RawServer]:
    raw = RawServer()
    listening = await asyncio.start_server(raw.serve, "127.0.0.1", 0)
    raw.endpoint = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    raw.release.set()
    async with listening:
        yield raw


def request(body: bytes = b"body") -> HttpRequest:
    return HttpRequest("/Path", {"x-ots-date": "now"}, body)


Send = Callable[..., "asyncio.Future[HttpResponse]"]


@pytest.fixture(params=["aio", "sync"])
async def send(request: pytest.FixtureRequest, server: RawServer) -> AsyncIterator[Send]:
    """`send(request, timeout=..., before_send=...)` of either transport."""
    if request.param == "aio":
        aio = AioTransport(server.endpoint)
        yield lambda message, **options: asyncio.ensure_future(aio.send(message, **options))
        await aio.close()
    else:
        sync = SyncTransport(server.endpoint)
        loop = asyncio.get_running_loop()
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(1) as threads:
            yield lambda message, **options: loop.run_in_executor(threads, lambda: sync.send(message, **options))
        sync.close()


async def test_answers_and_keeps_the_connection(server: RawServer, send: Send) -> None:
    first = await send(request(), timeout=5)
    second = await send(request(), timeout=5)

    assert (first.status, first.body, first.headers["x-ots-requestid"]) == (200, b"ok", "r")
    assert second.body == b"ok"
    assert (server.requests, server.connections) == (2, 1)
    assert server.received.startswith(b"POST /Path HTTP/1.1\r\n")
    assert b"x-ots-date: now" in server.received


async def test_sends_bodies_beyond_a_mebibyte(server: RawServer, send: Send) -> None:
    await send(request(b"x" * 4_000_000), timeout=20)

    assert server.received.endswith(b"x" * 1000)
    assert len(server.received) > 4_000_000


async def test_nothing_is_sent_when_the_guard_refuses(server: RawServer, send: Send) -> None:
    def refuse() -> None:
        raise OwnershipLost("too late")

    with pytest.raises(OwnershipLost, match="too late"):
        await send(request(), timeout=5, before_send=refuse)
    await send(request(b"after"), timeout=5)

    assert server.requests == 1
    assert server.received.count(b"POST") == 1


async def test_a_late_answer_is_a_read_timeout(server: RawServer, send: Send) -> None:
    await send(request(), timeout=5)  # so that the short time is spent on the answer alone, not on connecting
    server.release.clear()

    with pytest.raises(ReadTimeout):
        await send(request(), timeout=0.2)

    server.release.set()


async def test_a_broken_connection_is_lost(server: RawServer, send: Send) -> None:
    server.answer = None

    with pytest.raises(ConnectionLost):
        await send(request(), timeout=5)


async def test_a_cut_answer_is_lost(server: RawServer, send: Send) -> None:
    server.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 200\r\nConnection: close\r\n\r\nshort"

    with pytest.raises(ConnectionLost):
        await send(request(), timeout=60)


async def test_a_closed_port_is_a_connect_error() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{unused.getsockname()[1]}"
    aio, sync = AioTransport(endpoint), SyncTransport(endpoint)

    with pytest.raises(ConnectError):
        await aio.send(request(), timeout=5)
    with pytest.raises(ConnectError):
        await asyncio.to_thread(sync.send, request(), timeout=5)

    await aio.close()


async def test_compressed_answers_stay_as_they_are_and_cookies_are_dropped(server: RawServer) -> None:
    server.answer = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nSet-Cookie: a=b\r\nContent-Length: 3\r\n\r\nraw"
    transport = AioTransport(server.endpoint)

    first = await transport.send(request(), timeout=5)
    await transport.send(request(), timeout=5)

    assert first.body == b"raw"
    assert b"cookie" not in server.received.lower()
    await transport.close()


async def test_a_request_that_waits_for_a_connection_is_guarded_when_it_gets_one(server: RawServer) -> None:
    transport = AioTransport(server.endpoint, max_connections=1)
    server.release.clear()
    asked = asyncio.Event()

    def refuse() -> None:
        asked.set()
        raise OwnershipLost("the fence closed while waiting")

    first = asyncio.create_task(transport.send(request(b"first"), timeout=5))
    await server.arrived.wait()
    second = asyncio.create_task(transport.send(request(b"second"), timeout=5, before_send=refuse))
    for _ in range(20):
        await asyncio.sleep(0)
    asked_while_waiting = asked.is_set()
    server.release.set()

    await first
    with pytest.raises(OwnershipLost, match="while waiting"):
        await second
    assert not asked_while_waiting
    assert asked.is_set()
    assert server.requests == 1
    assert b"second" not in server.received
    await transport.close()


async def test_waiting_for_a_connection_counts_as_not_executed(server: RawServer) -> None:
    transport = AioTransport(server.endpoint, max_connections=1)
    server.release.clear()
    first = asyncio.create_task(transport.send(request(), timeout=5))
    await server.arrived.wait()

    with pytest.raises(ConnectError):
        await transport.send(request(), timeout=0.1)

    server.release.set()
    await first
    await transport.close()


async def test_an_answer_that_is_not_http_is_a_lost_connection(server: RawServer, send: Send) -> None:
    server.answer = b"220 mail.example.com ESMTP\r\n\r\n"

    with pytest.raises(ConnectionLost):
        await send(request(), timeout=5)


async def test_an_answer_in_chunks(server: RawServer, send: Send) -> None:
    server.answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1;x=y\r\nc\r\n0\r\n\r\n"

    assert [(await send(request(), timeout=5)).body for _ in range(2)] == [b"abc", b"abc"]
    assert server.connections == 1


async def test_a_connection_that_the_answer_ends_is_not_used_again(server: RawServer, send: Send) -> None:
    server.answer = OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")

    for _ in range(2):
        assert (await send(request(), timeout=5)).body == b"ok"
    assert server.connections == 2


async def test_a_connection_that_was_closed_while_idle_is_not_used_again(server: RawServer) -> None:
    transport = AioTransport(server.endpoint)
    await transport.send(request(), timeout=5)
    server.last.close()
    await until(lambda: transport.reusable_connections == 0, what="the end is noticed")

    assert (await transport.send(request(), timeout=5)).body == b"ok"
    assert server.connections == 2
    await transport.close()


async def test_bytes_without_a_request_end_a_connection(server: RawServer) -> None:
    transport = AioTransport(server.endpoint)
    await transport.send(request(), timeout=5)
    server.last.write(OK)
    await until(lambda: transport.reusable_connections == 0, what="the bytes have come")
    server.answer = OK.replace(b"ok", b"no")

    assert (await transport.send(request(), timeout=5)).body == b"no"
    assert server.connections == 2
    await transport.close()


async def test_an_answer_may_be_late_by_less_than_the_deadline_and_the_next_is_its_own(server: RawServer) -> None:
    transport = AioTransport(server.endpoint)
    await transport.send(request(), timeout=5)
    server.release.clear()
    with pytest.raises(ReadTimeout):
        await transport.send(request(b"first"), timeout=0.1)
    server.answer = OK.replace(b"ok", b"2d")
    server.release.set()

    assert (await transport.send(request(b"second"), timeout=5)).body == b"2d"
    assert server.connections == 2
    await transport.close()


async def test_a_cancelled_call_gives_its_connection_up(server: RawServer) -> None:
    transport = AioTransport(server.endpoint, max_connections=1)
    server.release.clear()
    call = asyncio.create_task(transport.send(request(), timeout=5))
    await server.arrived.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    server.release.set()

    assert (await transport.send(request(), timeout=5)).body == b"ok"
    assert server.connections == 2
    await transport.close()


@pytest.mark.parametrize("steps", range(12))
async def test_a_call_may_be_cancelled_at_any_step_without_losing_a_socket(server: RawServer, steps: int) -> None:
    transport = AioTransport(server.endpoint)
    call = asyncio.create_task(transport.send(request(), timeout=5))
    for _ in range(steps):
        await asyncio.sleep(0)
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    await transport.close()

    del call
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", ResourceWarning)
        gc.collect()
    assert [str(each.message) for each in warned] == []


async def test_calls_under_way_fail_when_the_transport_is_closed(server: RawServer) -> None:
    transport = AioTransport(server.endpoint)
    server.release.clear()
    call = asyncio.create_task(transport.send(request(), timeout=5))
    await server.arrived.wait()
    await transport.close()

    with pytest.raises(ConnectionLost):
        await call
    with pytest.raises(ConnectError, match="closed"):
        await transport.send(request(), timeout=5)
    server.release.set()


async def test_any_exception_of_the_guard_is_passed_on(server: RawServer) -> None:
    def refuse() -> None:
        raise OSError("the guard's own")

    transport = AioTransport(server.endpoint)
    with pytest.raises(OSError, match="the guard's own"):
        await transport.send(request(), timeout=5, before_send=refuse)
    await transport.close()

    assert not server.received


async def test_a_header_cannot_begin_another_one(server: RawServer) -> None:
    transport = AioTransport(server.endpoint)
    with pytest.raises(CodecError, match="line break"):
        await transport.send(HttpRequest("/Path", {"x-ots-instancename": "a\r\nx-ots-other: b"}, b""), timeout=5)
    await transport.close()

    assert not server.connections


async def test_several_connections_at_once(server: RawServer) -> None:
    transport = AioTransport(server.endpoint)
    server.release.clear()
    calls = [asyncio.create_task(transport.send(request(), timeout=5)) for _ in range(5)]
    await until(lambda: server.connections == 5, what="five connections")
    server.release.set()

    assert {(await call).body for call in calls} == {b"ok"}
    await transport.close()


async def test_an_answer_waits_for_room_in_the_kernel_and_its_time_does_not_count(server: RawServer) -> None:
    body = bytes(16 << 20)
    server.answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    server.release.set()
    transport, begun, room = AioTransport(server.endpoint), asyncio.Event(), asyncio.Event()

    async def before_answer() -> None:
        begun.set()
        await room.wait()

    call = asyncio.create_task(transport.send(request(), timeout=5, before_answer=before_answer))
    await asyncio.wait_for(begun.wait(), 30)
    await asyncio.sleep(5.2)
    assert server.last.transport.get_write_buffer_size() > 0
    assert not call.done()
    room.set()

    assert (await asyncio.wait_for(call, 60)).body == body
    assert (await transport.send(request(), timeout=60, before_answer=before_answer)).body == body
    assert server.connections == 1
    await transport.close()


async def test_an_answer_that_has_room_is_not_held_back(server: RawServer) -> None:
    body = bytes(4 << 20)
    server.answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    transport, asked = AioTransport(server.endpoint), []

    def before_answer() -> Awaitable[None]:
        asked.append(True)
        return AT_ONCE

    assert (await transport.send(request(), timeout=10, before_answer=before_answer)).body == body
    assert asked == [True]
    assert transport.reusable_connections == 1
    await transport.close()


async def test_a_call_that_ends_while_its_answer_waits_for_room_waits_no_more(server: RawServer) -> None:
    server.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nbegin"
    transport, waiting, ended = AioTransport(server.endpoint), asyncio.Event(), []

    async def before_answer() -> None:
        try:
            waiting.set()
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    call = asyncio.create_task(transport.send(request(), timeout=5, before_answer=before_answer))
    await asyncio.wait_for(waiting.wait(), 5)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call

    assert ended == [True]
    assert transport.reusable_connections == 0
    await transport.close()


async def test_a_closed_transport_ends_a_call_whose_answer_waits_for_room(server: RawServer) -> None:
    server.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nbegin"
    transport, waiting = AioTransport(server.endpoint), asyncio.Event()

    async def before_answer() -> None:
        waiting.set()
        await asyncio.Event().wait()

    call = asyncio.create_task(transport.send(request(), timeout=5, before_answer=before_answer))
    await asyncio.wait_for(waiting.wait(), 5)
    await transport.close()

    with pytest.raises(ConnectionLost):
        await asyncio.wait_for(call, 5)


async def test_a_request_without_a_body_leaves_nothing_for_the_loop_to_write(
    server: RawServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From Python 3.12 on an empty piece stays with the transport, which tries to write it in every round."""
    written: list[bytes] = []
    writelines = asyncio.WriteTransport.writelines

    def note(transport: asyncio.WriteTransport, pieces: list[bytes]) -> None:
        written.extend(pieces)
        writelines(transport, pieces)

    monkeypatch.setattr("asyncio.selector_events._SelectorSocketTransport.writelines", note, raising=False)
    transport = AioTransport(server.endpoint)
    assert (await transport.send(request(b""), timeout=5)).body == b"ok"

    assert written
    assert all(written)
    await transport.close()


async def test_an_answer_that_comes_at_once_needs_no_room_and_a_broken_one_neither(server: RawServer) -> None:
    transport = AioTransport(server.endpoint)
    server.release.set()

    async def before_answer() -> None:
        raise AssertionError("there is nothing to wait for")

    assert (await transport.send(request(), timeout=5, before_answer=before_answer)).body == b"ok"
    server.answer = None
    with pytest.raises(ConnectionLost):
        await transport.send(request(), timeout=5, before_answer=before_answer)
    await transport.close()


async def test_in_process_keeps_the_same_rules() -> None:
    async def handle(message: HttpRequest) -> HttpResponse:
        if message.body == b"slow":
            await asyncio.sleep(60)
        return HttpResponse(200, {}, message.body)

    transport = InProcessTransport(handle)

    assert (await transport.send(request(), timeout=1)).body == b"body"
    with pytest.raises(ReadTimeout):
        await transport.send(request(b"slow"), timeout=0.01)
    with pytest.raises(OwnershipLost):
        await transport.send(request(), timeout=1, before_send=_refuse)
    await transport.close()
    with pytest.raises(ConnectionLost):
        await transport.send(request(), timeout=1)


def _refuse() -> None:
    raise OwnershipLost("no")


async def test_an_answer_shorter_than_announced_is_lost(server: RawServer, send: Send) -> None:
    server.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 200\r\n\r\nshort"
    pending = send(request(), timeout=5)
    await until(lambda: server.requests == 1, what="the request has come")
    await asyncio.sleep(0.05)
    server.last.close()

    with pytest.raises(ConnectionLost):
        await pending


async def test_a_call_without_time_left_is_a_read_timeout(server: RawServer) -> None:
    def send_twice() -> None:
        # in one thread, each of which has a connection of its own
        with closing(SyncTransport(server.endpoint)) as transport:
            transport.send(request(), timeout=5)
            transport.send(request(), timeout=0)

    with pytest.raises(ReadTimeout):
        await asyncio.to_thread(send_twice)


async def test_no_write_leaves_once_its_deadline_is_over_although_the_loop_has_not_noticed(server: RawServer) -> None:
    transport = AioTransport(server.endpoint)
    await transport.send(request(b"first"), timeout=5)
    with pytest.raises(ReadTimeout):
        await transport.send(request(b"late"), timeout=0.5, before_send=lambda: time.sleep(0.6))

    assert (await transport.send(request(b"next"), timeout=5, before_send=lambda: None)).body == b"ok"
    assert server.requests == 2
    assert b"late" not in server.received
    await transport.close()


async def test_a_call_that_is_interrupted_gives_its_connection_up(server: RawServer, send: Send) -> None:
    asked: list[None] = []

    def refuse_the_rest() -> None:
        asked.append(None)
        if len(asked) == 2:
            raise OwnershipLost("the fence closed while the body was on its way")

    await send(request(), timeout=5)
    with pytest.raises(OwnershipLost, match="on its way"):
        await send(request(b"x" * 1_000_000), timeout=5, before_send=refuse_the_rest)
    await send(request(b"after"), timeout=5)

    assert (server.requests, server.connections) == (2, 2)


async def test_an_old_connection_is_replaced(server: RawServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ots_tunnel.transport.sync.KEEP_ALIVE", 0.0)
    transport = SyncTransport(server.endpoint)

    def two_calls() -> None:
        transport.send(request(), timeout=5)
        transport.send(request(), timeout=5)

    await asyncio.to_thread(two_calls)

    assert (server.requests, server.connections) == (2, 2)
    transport.close()


async def test_the_text_of_a_transport_names_its_endpoint(server: RawServer) -> None:
    aio, sync = AioTransport(f"{server.endpoint}/"), SyncTransport(f"{server.endpoint}/")

    assert repr(aio) == f"AioTransport({server.endpoint})"
    assert repr(sync) == f"SyncTransport({server.endpoint})"
    await aio.close()


async def test_a_guarded_body_can_be_read_without_being_sent() -> None:
    body = GuardedBody("caf\u00e9".encode(), before_send=_refuse, seconds=1)

    assert (body.decode(), await body.as_bytes()) == ("caf\u00e9", "caf\u00e9".encode())
    assert not body.started


async def test_each_path_has_its_longest_answer(server: RawServer) -> None:
    transport = AioTransport(server.endpoint, answer_limit=lambda path: 1 if path == "/Path" else 2)

    with pytest.raises(ConnectionLost, match="allowed are 1"):
        await transport.send(request(), timeout=5)
    answer = await transport.send(HttpRequest("/Other", {}, b""), timeout=5)

    assert answer.body == b"ok"
    await transport.close()
