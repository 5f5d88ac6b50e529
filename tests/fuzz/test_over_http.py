"""Mutated requests over a real connection, and bad HTTP: heads, lengths, chunks, slow and vanished clients."""

from __future__ import annotations

import asyncio
import gzip
import random
import zlib
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from ots_emulator.server.application import Application
from ots_tunnel.protocol import table_pb2
from ots_tunnel.protocol.http.message import HttpRequest, HttpResponse
from ots_tunnel.protocol.http.operations import TABLE_OPERATIONS
from ots_tunnel.protocol.http.rpc import build_request
from tests.fuzz.answers import check_answer
from tests.fuzz.bytewise import mutate_bytes
from tests.fuzz.campaign import Campaign, Complaints
from tests.fuzz.mutate import with_body
from tests.fuzz.wire import Ended, Wire, connected, encode
from tests.support.emulator.emulator_driver import CREDENTIALS, Driver


@pytest_asyncio.fixture
async def driver() -> AsyncIterator[Driver]:
    """An emulator with one table behind a port; its log must have no traceback."""
    driver = Driver()
    await driver.create_table()
    with Complaints().listening() as complaints:
        async with driver.emulator:
            yield driver
            await good_call(driver)
    assert complaints.texts == []


def list_table(driver: Driver) -> HttpRequest:
    return build_request(
        TABLE_OPERATIONS["ListTable"],
        table_pb2.ListTableRequest(),
        instance="demo",
        credentials=CREDENTIALS,
        now=driver.clock.now(),
        trace_id="t",
    )


async def good_call(driver: Driver) -> None:
    """A call on a new connection, which must be answered whatever happened on others."""
    async with connected(driver.emulator.endpoint) as wire:
        await wire.send(encode(list_table(driver)))
        check_good(await wire.answer())


def check_good(response: HttpResponse) -> None:
    assert check_answer("/ListTable", {"x-ots-accesskeyid": "test-id", "x-ots-instancename": "demo"}, response)
    assert table_pb2.ListTableResponse.FromString(response.body).table_names == ["t"]


def check_refusal(response: HttpResponse) -> None:
    """A refusal in the service's form, whatever path it was for."""
    if response.status == 200:
        check_good(response)
    else:
        assert not check_answer("/", {}, response)


async def run_over_http(seed: int, count: int) -> int:
    driver = Driver()
    async with driver.emulator:
        wires: list[Wire] = []

        async def send(request: HttpRequest) -> HttpResponse:
            await wires[0].send(encode(request))
            return await wires[0].answer()

        async with connected(driver.emulator.endpoint) as wire:
            wires.append(wire)
            return (await Campaign(seed, driver, send).run(0, count)).sent


async def test_mutated_requests_over_one_connection_are_answered() -> None:
    assert await run_over_http(101, 1_000) == 1_000


@pytest.mark.long
@pytest.mark.lasts(150)
async def test_many_mutated_requests_over_one_connection_are_answered() -> None:
    assert await run_over_http(102, 50_000) == 50_000


HEAD = b"POST /ListTable HTTP/1.1\r\nhost: e\r\n"
HOSTILE: dict[str, bytes] = {
    "nothing": b"",
    "line ends only": b"\r\n" * 50,
    "not http": b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03" + bytes(range(256)),
    "http/0.9": b"GET /\r\n\r\n",
    "http/2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "http/3.7": b"POST / HTTP/3.7\r\n\r\n",
    "no host": b"POST /ListTable HTTP/1.1\r\n\r\n",
    "method of another protocol": b"BREW /ListTable HTTP/1.1\r\nhost: e\r\n\r\n",
    "no version": b"POST /ListTable\r\n\r\n",
    "method of odd signs": b"P\xffST /ListTable HTTP/1.1\r\nhost: e\r\n\r\n",
    "path of odd bytes": b"POST /\xff\xfe\x01 HTTP/1.1\r\nhost: e\r\n\r\n",
    "path that encodes odd bytes": b"POST /%FF%00%ED%A0%80 HTTP/1.1\r\nhost: e\r\n\r\n",
    "path with a query": b"POST /ListTable?a=b%FF#c HTTP/1.1\r\nhost: e\r\n\r\n",
    "whole address": b"POST http://e:1/ListTable HTTP/1.1\r\nhost: e\r\n\r\n",
    "broken address": b"POST http://[::1/x HTTP/1.1\r\nhost: e\r\n\r\n",
    "path of a star": b"POST * HTTP/1.1\r\nhost: e\r\n\r\n",
    "connect": b"CONNECT e:1 HTTP/1.1\r\nhost: e\r\n\r\n",
    "long path": b"POST /" + b"a" * 100_000 + b" HTTP/1.1\r\nhost: e\r\n\r\n",
    "long header": HEAD + b"x-ots-date: " + b"1" * 100_000 + b"\r\n\r\n",
    "many headers": HEAD + b"".join(b"x-ots-%d: 1\r\n" % number for number in range(5_000)) + b"\r\n",
    "header without colon": HEAD + b"nothing\r\n\r\n",
    "header of odd bytes": HEAD + b"x-ots-date: \xff\xfe\r\nx-ots-\xff: 1\r\n\r\n",
    "header with a zero": HEAD + b"x-ots-date: a\0b\r\n\r\n",
    "folded header": HEAD + b"x-ots-date: a\r\n b\r\n\r\n",
    "the same header twice": HEAD + b"x-ots-date: a\r\nX-OTS-DATE: b\r\n\r\n",
    "lengths that contradict": HEAD + b"content-length: 1\r\ncontent-length: 2\r\n\r\nab",
    "negative length": HEAD + b"content-length: -1\r\n\r\n",
    "length that is no number": HEAD + b"content-length: many\r\n\r\n",
    "length beyond numbers": HEAD + b"content-length: " + b"9" * 30 + b"\r\n\r\n",
    "length beyond the limit": HEAD + b"content-length: 6000000\r\n\r\nabc",
    "length beyond the body": HEAD + b"content-length: 100\r\n\r\nabc",
    "length and chunks": HEAD + b"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunk of no size": HEAD + b"transfer-encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n",
    "chunk of negative size": HEAD + b"transfer-encoding: chunked\r\n\r\n-1\r\n\r\n",
    "chunk that ends early": HEAD + b"transfer-encoding: chunked\r\n\r\nff\r\nabc",
    "chunk beyond memory": HEAD + b"transfer-encoding: chunked\r\n\r\n" + b"f" * 16 + b"\r\nabc",
    "chunks without end": HEAD + b"transfer-encoding: chunked\r\n\r\n" + b"1\r\na\r\n" * 1000,
    "chunks beyond the limit": HEAD
    + b"transfer-encoding: chunked\r\n\r\n"
    + b"600000\r\n"
    + bytes(0x600000)
    + b"\r\n0\r\n\r\n",
    "unknown transfer encoding": HEAD + b"transfer-encoding: zip\r\n\r\n",
    "body that is no gzip": HEAD + b"content-encoding: gzip\r\ncontent-length: 3\r\n\r\nabc",
    "body that is no deflate": HEAD + b"content-encoding: deflate\r\ncontent-length: 3\r\n\r\nabc",
    "body of unknown encoding": HEAD + b"content-encoding: br, x\r\ncontent-length: 3\r\n\r\nabc",
    "body that unpacks to more": HEAD
    + b"content-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(bomb := gzip.compress(bytes(60 << 20), 9))
    + bomb,
    "expectation": HEAD + b"expect: 100-continue\r\ncontent-length: 3\r\n\r\nabc",
    "unknown expectation": HEAD + b"expect: the-unexpected\r\ncontent-length: 3\r\n\r\nabc",
    "upgrade": HEAD + b"connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\r\n",
}


@pytest.mark.parametrize("what", HOSTILE)
async def test_hostile_http_is_refused_or_cut_off(driver: Driver, what: str) -> None:
    async with connected(driver.emulator.endpoint) as wire:
        await wire.send(HOSTILE[what])
        wire.end()

        for response in await wire.answers():
            check_refusal(response)


@pytest.mark.parametrize("method", ["GET", "PUT", "HEAD", "OPTIONS", "DELETE", "PATCH", "TRACE"])
async def test_other_methods_are_refused_in_the_services_form(driver: Driver, method: str) -> None:
    request = list_table(driver)
    async with connected(driver.emulator.endpoint) as wire:
        await wire.send(encode(request, method=method, extra=b"connection: close\r\n"))
        if method == "HEAD":
            return

        response = await wire.answer()

    assert not check_answer("/ListTable", request.headers, response)
    assert response.status == 405
    assert table_pb2.Error.FromString(response.body).code == "OTSMethodNotAllowed"


async def test_a_long_body_is_refused_in_the_services_form(driver: Driver) -> None:
    request = list_table(driver)
    async with connected(driver.emulator.endpoint) as wire:
        await wire.send(encode(HttpRequest(request.path, request.headers, bytes((5 << 20) + 1))))

        response = await wire.answer()

    assert not check_answer("/ListTable", request.headers, response)
    assert response.status == 413


async def test_damaged_heads_are_refused_or_cut_off(driver: Driver) -> None:
    rng = random.Random(7)
    good = encode(list_table(driver))
    for number in range(200):
        damaged = mutate_bytes(rng, good)
        try:
            async with connected(driver.emulator.endpoint) as wire:
                await wire.send(damaged)
                wire.end()
                for response in await wire.answers():
                    check_refusal(response)
        except BaseException as error:
            error.add_note(f"number {number}: {damaged.hex()}")
            raise


async def test_requests_behind_each_other_are_answered_in_order(driver: Driver) -> None:
    request = list_table(driver)
    unknown = HttpRequest("/Unknown", request.headers, b"")
    async with connected(driver.emulator.endpoint) as wire:
        await wire.send(encode(request) + encode(unknown) + encode(request) * 20 + encode(unknown))

        statuses = [(await wire.answer()).status for _ in range(23)]

    assert statuses == [200, 400, *[200] * 20, 400]


async def test_chunked_bodies_are_read(driver: Driver) -> None:
    headers = "".join(f"{name}: {value}\r\n" for name, value in list_table(driver).headers.items()).encode()
    async with connected(driver.emulator.endpoint) as wire:
        await wire.send(HEAD + headers + b"transfer-encoding: chunked\r\n\r\n0\r\n\r\n")

        check_good(await wire.answer())


@pytest.mark.parametrize("share", [1, 20, 150, -1])
async def test_slow_clients_delay_no_other_client(driver: Driver, share: int) -> None:
    data = encode(list_table(driver))
    wires = [connected(driver.emulator.endpoint) for _ in range(20)]
    slow = [await wire.__aenter__() for wire in wires]
    try:
        for wire in slow:
            await wire.send(data[:share])

        await good_call(driver)

        for wire in slow:
            await wire.send(data[share:])
            check_good(await wire.answer())
    finally:
        for wire in wires:
            await wire.__aexit__(None, None, None)


@pytest.mark.parametrize("share", [0, 10, 200, 400])
async def test_clients_that_vanish_leave_nothing_behind(driver: Driver, share: int) -> None:
    data = encode(HttpRequest("/ListTable", list_table(driver).headers, bytes(1000)))
    for _ in range(20):
        async with connected(driver.emulator.endpoint) as wire:
            await wire.send(data[: len(data) - share])
            wire.abort()

    await good_call(driver)


async def test_a_deflate_bomb_is_refused_before_it_unfolds(driver: Driver) -> None:
    body = zlib.compress(bytes(60 << 20), 9)
    request = list_table(driver)
    headers = {"x-ots-request-compress-type": "deflate", "x-ots-request-compress-size": "1"}
    async with connected(driver.emulator.endpoint) as wire:
        await wire.send(encode(with_body(HttpRequest(request.path, {**request.headers, **headers}, b""), body)))

        assert (await wire.answer()).status == 413


async def test_the_end_of_a_connection_is_not_taken_for_an_answer() -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(hang_up, "127.0.0.1") as server:
        host, port = server.sockets[0].getsockname()
        async with connected(f"http://{host}:{port}") as wire:
            with pytest.raises(Ended):
                await wire.answer()


async def test_a_mistake_outside_of_a_call_is_an_internal_error_in_the_services_form(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def broken(self: Application, request: HttpRequest) -> HttpResponse:
        raise KeyError("broken")

    monkeypatch.setattr(Application, "handle", broken)
    driver = Driver()
    with Complaints().listening() as complaints:
        async with driver.emulator, connected(driver.emulator.endpoint) as wire:
            await wire.send(encode(list_table(driver)))
            response = await wire.answer()

    error = table_pb2.Error.FromString(response.body)
    assert (response.status, error.code) == (500, "OTSInternalServerError")
    assert "KeyError: 'broken'" in complaints.texts[0]
