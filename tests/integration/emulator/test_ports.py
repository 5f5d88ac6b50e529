"""The emulator's two ports and its command, over real sockets."""

from __future__ import annotations

import asyncio
import gc
import io
import json
import math
import os
import re
import signal
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from ots_emulator import Emulator
from ots_tunnel.model import Marker
from ots_tunnel.protocol import table_pb2
from ots_tunnel.protocol.http.message import HttpRequest
from ots_tunnel.protocol.plainbuffer.codec import encode_primary_key, encode_row
from tests.support.emulator.emulator_driver import IGNORE, Driver, put
from tests.support.waiting import until

DEADLINE = aiohttp.ClientTimeout(total=10)


@pytest.fixture
async def driver() -> AsyncIterator[Driver]:
    driver = Driver()
    async with driver.emulator:
        yield driver


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(timeout=DEADLINE) as session:
        yield session


async def post(
    http: aiohttp.ClientSession, driver: Driver, request: HttpRequest
) -> tuple[int, Mapping[str, str], bytes]:
    url = driver.emulator.endpoint + request.path
    async with http.post(url, data=request.body, headers=request.headers) as response:
        return response.status, response.headers, await response.read()


async def captured(driver: Driver, name: str, **fields: Any) -> HttpRequest:
    """The request the driver would send."""
    requests: list[HttpRequest] = []
    handle = driver.emulator.handle

    async def keep(request: HttpRequest) -> Any:
        requests.append(request)
        return await handle(request)

    driver.emulator.handle = keep
    try:
        await driver.call(name, **fields)
    finally:
        driver.emulator.handle = handle
    return requests[0]


async def test_a_call_over_http(driver: Driver, http: aiohttp.ClientSession) -> None:
    await driver.create_table()
    request = await captured(driver, "ListTable")

    status, headers, body = await post(http, driver, request)

    assert status == 200
    assert headers["Content-Length"] == "3"
    assert table_pb2.ListTableResponse.FromString(body).table_names == ["t"]


async def test_only_clients_close_idle_connections(driver: Driver, http: aiohttp.ClientSession) -> None:
    """A server that closes an idle connection breaks the request that is on its way to it."""
    await driver.create_table()
    await post(http, driver, await captured(driver, "ListTable"))

    runner = driver.emulator.data_listener.runner
    assert runner.server is not None
    (connection,) = runner.server.connections
    assert connection.keepalive_timeout >= 86_400
    assert connection.transport is not None
    assert connection.transport.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1


async def test_a_client_that_asks_first_may_send_its_body(driver: Driver) -> None:
    """The vendor's PHP and .NET SDKs ask before a large body: without an answer each call of theirs waits a second."""
    await driver.create_table()
    request = await captured(driver, "DescribeTable", table_name="t")
    host, _, port = driver.emulator.endpoint.removeprefix("http://").partition(":")
    lines = [f"{name}: {value}" for name, value in request.headers.items()]
    head = "\r\n".join([f"POST {request.path} HTTP/1.1", f"Host: {host}", "Expect: 100-Continue", *lines])
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        async with asyncio.timeout(60):
            for size, interim in ((len(request.body), b"HTTP/1.1 100 Continue\r\n"), (6 << 20, None)):
                writer.write(f"{head}\r\nContent-Length: {size}\r\n\r\n".encode())
                first = await reader.readline()
                if interim is None:
                    # The length alone is enough to refuse it. Without its body no other request can follow it.
                    assert first.startswith(b"HTTP/1.1 413 ")
                    assert b"\r\nConnection: close\r\n" in await reader.readuntil(b"\r\n\r\n")
                    continue
                assert (first, await reader.readline()) == (interim, b"\r\n")
                writer.write(request.body)
                answer = await reader.readuntil(b"\r\n\r\n")
                assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
                length = re.search(rb"Content-Length: (\d+)", answer)
                assert length is not None
                await reader.readexactly(int(length[1]))
    finally:
        writer.close()


async def test_only_posts_and_no_huge_bodies(driver: Driver, http: aiohttp.ClientSession) -> None:
    async with http.get(driver.emulator.endpoint + "/ListTable") as response:
        assert response.status == 405
        assert response.headers["x-ots-requestid"]
    async with http.post(driver.emulator.endpoint + "/PutRow", data=io.BytesIO(bytes(6 << 20))) as response:
        assert table_pb2.Error.FromString(await response.read()).code == "OTSRequestBodyTooLarge"
        assert response.status == 413


async def test_a_body_that_is_too_large_is_answered_when_it_has_been_sent(
    driver: Driver, http: aiohttp.ClientSession
) -> None:
    host, _, port = driver.emulator.endpoint.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        async with asyncio.timeout(60):
            writer.write(f"POST /PutRow HTTP/1.1\r\nHost: {host}\r\nContent-Length: {6 << 20}\r\n\r\n".encode())
            answer = asyncio.ensure_future(reader.readline())
            for _ in range(3):  # come after it and are answered, so that an early answer would be here
                async with http.get(driver.emulator.endpoint + "/ListTable") as response:
                    await response.read()
            assert not answer.done()
            writer.write(bytes(6 << 20))
            assert (await answer).startswith(b"HTTP/1.1 413 ")
    finally:
        writer.close()


async def test_the_data_port_offers_no_controls(driver: Driver, http: aiohttp.ClientSession) -> None:
    for path in ("/state", "/split", "/faults", "/healthz"):
        async with http.post(driver.emulator.endpoint + path, json={}) as response:
            assert table_pb2.Error.FromString(await response.read()).code == "OTSParameterInvalid"


async def test_a_lost_answer_breaks_the_connection_after_the_write(driver: Driver, http: aiohttp.ClientSession) -> None:
    await driver.create_table()
    request = await captured(driver, "DeleteTable", table_name="t")
    await driver.create_table()
    async with http.post(
        driver.emulator.admin_url + "/faults", json={"operation": "DeleteTable", "count": 1, "drop_response": True}
    ) as response:
        assert await response.json() == {"rules": 1}

    with pytest.raises(aiohttp.ClientError):
        await post(http, driver, request)
    assert (await driver.call("ListTable")).table_names == []


async def test_admin_controls(driver: Driver, http: aiohttp.ClientSession) -> None:
    async def control(path: str, **document: Any) -> tuple[int, Any]:
        async with http.post(driver.emulator.admin_url + path, json=document) as response:
            return response.status, await response.json()

    await control("/partitions", instance="demo", table="t", count=2)
    await driver.create_table()
    await driver.fill(20)
    tunnel = await driver.create_tunnel("Stream")
    client = await driver.connect(tunnel)
    channel = next(iter(await driver.heartbeat(tunnel, client)))

    status, split = await control("/split", instance="demo", table="t", partition=channel)
    async with http.get(driver.emulator.admin_url + "/state") as response:
        state = await response.json()

    assert (status, split["parent"], len(split["children"])) == (200, channel, 2)
    (instance,) = state["instances"]
    (table,) = instance["tables"]
    assert (instance["name"], table["name"], table["rows"], table["partitionCount"]) == ("demo", "t", 20, 3)
    (shown,) = instance["tunnels"]
    assert [c["status"] for c in shown["channels"]] == ["OPEN", "OPEN", "WAIT", "WAIT"]
    assert {c["owner"] for c in shown["channels"]} == {client, None}
    assert shown["channels"][0].keys() >= {"id", "type", "version", "rows", "consumePoint", "sequence"}
    assert await control("/clients/expire", instance="demo", tunnel="tunnel") == (200, {"expired": [client]})
    assert await control("/tunnels/expire", instance="demo", tunnel=tunnel) == (200, {})
    assert (await driver.describe(tunnel)).tunnel.expired


@pytest.mark.parametrize(
    ("path", "document", "message"),
    [
        ("/split", {"instance": "demo"}, "table: found None, a text is needed"),
        ("/split", {"instance": "other", "table": "t"}, "no instance 'other', there are: demo"),
        ("/split", {"instance": "demo", "table": "t"}, "Requested table does not exist."),
        ("/partitions", {"instance": "demo", "table": "t", "count": 0}, "count: found 0"),
        ("/faults", {"operatoin": "x"}, "operatoin: unknown"),
        ("/faults", {"count": "many"}, "count: "),
        ("/faults", {"count": 0}, "count: found 0, allowed is a number from 1 to "),
        ("/faults", {"latency": math.nan}, "latency: found nan, allowed is a number from 0 to "),
        ("/faults", {"status": 1000}, "status: found 1000, allowed is a number from 200 to 599"),
        ("/faults", {"until": math.nan}, "until: found nan, allowed is a number from 0 to "),
        ("/faults", {"message": "\ud800"}, r"message: found '\ud800', which is no text in UTF-8"),
        ("/faults", {"\ud800": 1}, r"\ud800: found '\ud800', which is no text in UTF-8"),
        ("/faults", {"unavailable": math.inf}, "unavailable: found inf, allowed is a number from 0 to "),
        ("/faults", {"unavailable": "yes"}, "unavailable: found 'yes', a number is needed"),
        ("/clock", {"advance": math.nan}, "advance: found nan, allowed is a number of seconds that leads from "),
        ("/clock", {"advance": math.inf}, "advance: found inf, "),
        ("/clock", {"advance": 1e12}, "advance: found 1000000000000.0, "),
        ("/clock", {"advance": -1e12}, "advance: found -1000000000000.0, "),
        ("/clock", {"advance": 10**400}, "advance: found a number of 401 digits, which is too large"),
        ("/clock", b'{"advance": ' + b"9" * 5000 + b"}", "body is no JSON: "),
        ("/clock", b'{"advance": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "body is JSON of too many levels"),
        ("/clock", b'{"advance": ' + b"[" * 900 + b"]" * 900 + b"}", "advance: found a list"),
        ("/partitions", {"instance": "demo", "table": "\ud800", "count": 2}, r"table: found '\ud800', which is "),
        ("/partitions", {"instance": "demo", "table": "no spaces", "count": 2}, "Invalid table name: 'no spaces'."),
        ("/settings", {"self": 1}, "self: unknown, the settings are "),
        ("/settings", {"page_rows": 0}, "page_rows: found 0, allowed is a number from 1 to "),
        ("/settings", {"init_delay": math.nan}, "init_delay: "),
        ("/settings", {"tunnel_retention_hours": 169}, "tunnel_retention_hours: found 169, allowed is "),
        ("/settings", {"partition_rows": 1}, "partition_rows: found 1, allowed is a number from 2 to "),
        ("/settings", {"fsync": True}, "fsync: found true, without a data directory only false is allowed"),
    ],
)
async def test_admin_mistakes_are_named(
    driver: Driver, http: aiohttp.ClientSession, path: str, document: dict[str, Any] | bytes, message: str
) -> None:
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    before, settings = driver.clock.now(), driver.emulator.settings
    async with http.post(driver.emulator.admin_url + path, data=body) as response:
        assert response.status in (400, 404)
        assert (await response.json())["message"].startswith(message)
    assert (driver.clock.now(), driver.emulator.settings) == (before, settings)


async def test_an_unknown_charset_of_a_control_is_named(driver: Driver, http: aiohttp.ClientSession) -> None:
    headers = {"Content-Type": "application/json; charset=nothing"}
    async with http.post(driver.emulator.admin_url + "/clock", data=b'{"advance": 1}', headers=headers) as response:
        assert response.status == 400
        assert (await response.json())["message"].startswith("Content-Type: found the charset 'nothing'")


async def test_a_larger_body_is_read_once_its_limit_is_raised(driver: Driver, http: aiohttp.ClientSession) -> None:
    body = b"x" * 150
    found = []
    for limit in (100, 200, 100):
        async with http.post(driver.emulator.admin_url + "/settings", json={"body_limit": limit}) as response:
            assert response.status == 200
        found.append((await post(http, driver, HttpRequest("/PutRow", {}, body)))[0])

    # The second is read, and refused because it has no headers.
    assert found == [413, 400, 413]


def test_a_thread_serves_code_without_an_event_loop() -> None:
    with Emulator({"one": {"id": "secret"}}) as emulator:
        assert emulator.endpoint.startswith("http://127.0.0.1:")
        assert emulator.call("state")["instances"][0]["name"] == "one"


async def test_a_used_port_is_an_error(driver: Driver) -> None:
    port = int(driver.emulator.endpoint.rpartition(":")[2])

    with pytest.raises(OSError):
        await Emulator(port=port).start()


async def test_the_command_serves_and_stops_on_sigterm() -> None:
    arguments = ["-m", "ots_emulator", "serve", "--port", "0", "--admin-port", "0", "--access-key", "a:b"]
    process = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    async with asyncio.timeout(60):
        greeting = b""
        while b"Java" not in greeting:
            greeting += await process.stdout.readline()
        found = re.search(r"admin +(http://\S+)", greeting.decode())
        assert found
        async with aiohttp.ClientSession() as http, http.get(found[1] + "/healthz") as response:
            assert response.status == 200
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0


async def test_a_reader_that_has_gone_is_no_failure() -> None:
    """As `ots-emulator serve | head -1` reads it."""
    arguments = ["-m", "ots_emulator", "serve", "--port", "0", "--admin-port", "0"]
    reader, writer = os.pipe()
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, stdout=writer, stderr=asyncio.subprocess.PIPE
    )
    os.close(writer)
    async with asyncio.timeout(60):
        with os.fdopen(reader) as output:
            await asyncio.to_thread(output.readline)
        process.send_signal(signal.SIGTERM)
        _, complaint = await process.communicate()

    assert (process.returncode, complaint) == (0, b"")


async def test_the_command_refuses_a_used_port(driver: Driver) -> None:
    port = driver.emulator.endpoint.rpartition(":")[2]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "ots_emulator", "serve", "--port", port, stderr=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(60):
        _, complaint = await process.communicate()

    assert process.returncode == 2
    assert f"127.0.0.1:{port}".encode() in complaint


def left(kind: type[object]) -> int:
    """Objects of a type that are in memory, also those that only wait for the collection of the garbage."""
    return sum(isinstance(found, kind) for found in gc.get_objects())


async def abandon(driver: Driver, request: HttpRequest, body: bytes) -> None:
    """Send a request, with `body` of its body, and close the connection without reading its answer."""
    host, _, port = driver.emulator.endpoint.removeprefix("http://").partition(":")
    lines = [f"{name}: {value}\r\n" for name, value in request.headers.items() if name.lower() != "content-length"]
    head = (
        f"POST {request.path} HTTP/1.1\r\nHost: {host}\r\n{''.join(lines)}Content-Length: {len(request.body)}\r\n\r\n"
    )
    calls = driver.emulator.calls
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(client, (host, int(port)))
        await loop.sock_sendall(client, head.encode() + body)
        await until(lambda: left(web.BaseRequest), what="the request arrives")
        if body == request.body:
            await until(lambda: driver.emulator.calls > calls and left(web.Response), what="it is answered")


@pytest.mark.parametrize("part", ["answer", "body"])
async def test_what_a_client_abandons_is_freed_without_a_collection_of_garbage(driver: Driver, part: str) -> None:
    driver.emulator.change_settings(range_bytes=64 << 20)
    await driver.create_table()
    for key in range(8):
        await driver.put(key, put("v", "x" * (2 << 20)))
    ends = {
        name: encode_primary_key((("k", marker),))
        for name, marker in (
            ("inclusive_start_primary_key", Marker.INF_MIN),
            ("exclusive_end_primary_key", Marker.INF_MAX),
        )
    }
    if part == "answer":
        request = await captured(driver, "GetRange", table_name="t", direction="FORWARD", max_versions=1, **ends)
        body = request.body
    else:
        row = encode_row((("k", 1),), [put("v", "x" * (2 << 20))])
        request = await captured(driver, "PutRow", table_name="t", row=row, condition=IGNORE)
        body = request.body[:-10]
    gc.collect()
    gc.disable()
    try:
        before = left(web.Response), left(web.BaseRequest)
        for _ in range(3):
            await abandon(driver, request, body)
        await until(lambda: (left(web.Response), left(web.BaseRequest)) == before, what="they are freed")
    finally:
        gc.enable()
