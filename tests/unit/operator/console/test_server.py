"""The console's server: four files, nothing that changes anything, and nothing for pages of elsewhere."""

from __future__ import annotations

import gzip
import http.client
import json
import re
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import pytest

from ots_tunnel_operator.console import server as server_module
from ots_tunnel_operator.console.console import Console, StandsStill
from ots_tunnel_operator.console.server import ConsoleServer, is_loopback
from ots_tunnel_operator.metrics import OperatorMetrics
from ots_tunnel_operator.server import Health
from tests.support.waiting import wait_until


@dataclass
class Reader:
    """Asks a server; other names than its address are given by the Host header."""

    port: int

    def get(self, path: str, *, method: str = "GET", **headers: str) -> tuple[int, http.client.HTTPMessage, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()


@pytest.fixture
def console() -> Console:
    return Console(Health(OperatorMetrics()), "lake/operator")


@pytest.fixture
def reader(console: Console) -> Iterator[Reader]:
    with ConsoleServer(console, "127.0.0.1", 0) as server:
        assert console.port == server.port
        yield Reader(server.port)


@pytest.mark.parametrize(
    ("path", "kind"), [("/", "text/html"), ("/console.js", "text/javascript"), ("/console.css", "text/css")]
)
def test_the_page_and_its_files(reader: Reader, path: str, kind: str) -> None:
    status, headers, found = reader.get(path)

    assert status == 200
    assert headers["Content-Type"] == f"{kind}; charset=utf-8"
    assert found


@pytest.mark.parametrize("path", ["/", "/console.js", "/state", "/nothing"])
def test_only_the_pages_own_files_run_and_are_loaded(reader: Reader, path: str) -> None:
    _, headers, _ = reader.get(path)

    policy = dict(part.strip().split(" ", 1) for part in headers["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert (policy["script-src"], policy["style-src"], policy["connect-src"]) == ("'self'", "'self'", "'self'")
    assert (policy["require-trusted-types-for"], policy["frame-ancestors"]) == ("'script'", "'none'")
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"
    assert "Access-Control-Allow-Origin" not in headers


def test_the_files_name_nothing_of_elsewhere() -> None:
    for name in ("page.html", "console.js", "console.css"):
        text = (files("ots_tunnel_operator.console") / name).read_text().replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?:|//\w+\.\w|@import|url\(", text), name
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text), name
        assert "style=" not in text
        assert " onclick" not in text


def test_the_state_of_a_process_that_follows_nothing(reader: Reader) -> None:
    status, headers, found = reader.get("/state")

    assert (status, headers["Content-Type"]) == (200, "application/json")
    assert json.loads(found) | {"leads": False, "objects": None} == json.loads(found)
    assert json.loads(reader.get("/state?object=shop%2Forders-copy")[2])["object"] is None


def test_the_object_is_asked_for_by_namespace_and_name(
    reader: Reader, console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "object_json", lambda place: json.dumps(place).encode())

    assert json.loads(reader.get("/state?object=shop%2Forders")[2]) == ["shop", "orders"]
    assert json.loads(reader.get("/state?object=orders")[2]) == ["orders", ""]
    assert json.loads(reader.get("/state?object=a%2Fb%2Fc&object=d")[2]) == ["a", "b/c"]


def test_a_loop_that_stands_still_is_no_good_answer(
    reader: Reader, console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> Any:
        raise StandsStill('the "loop" has not run')

    monkeypatch.setattr(console, "fleet_json", fail)

    status, _, found = reader.get("/state")

    assert (status, json.loads(found)) == (503, {"failure": 'the "loop" has not run'})


def test_large_answers_are_compressed_where_the_reader_takes_it(
    reader: Reader, console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = json.dumps(["x" * 100_000]).encode()
    monkeypatch.setattr(console, "fleet_json", lambda: document)

    _, headers, found = reader.get("/state", **{"Accept-Encoding": "gzip, br"})

    assert headers["Content-Encoding"] == "gzip"
    assert len(found) < 1000
    assert gzip.decompress(found) == document
    assert reader.get("/state")[2] == document


@pytest.mark.parametrize("host", ["localhost", "localhost:9000", "127.0.0.1:1", "[::1]:8081", "LOCALHOST:1"])
def test_a_forwarded_port_is_answered_by_whichever_local_name(reader: Reader, host: str) -> None:
    assert reader.get("/state", Host=host)[0] == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8081", "localhost.evil.example", "10.0.0.1:8081"])
def test_a_page_of_elsewhere_cannot_read_it_through_the_readers_browser(reader: Reader, host: str) -> None:
    status, _, found = reader.get("/state", Host=host)

    assert status == 421
    assert b"localhost" in found
    assert reader.get("/", Host=host)[0] == 421


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("console.example", 200),
        ("Console.Example:443", 200),
        ("10.0.0.1:8081", 200),
        ("[fd00::1]:8081", 200),
        ("operator-metrics", 200),
        ("operator-metrics.system.svc:8081", 200),
        ("operator-metrics.system.svc.cluster.local", 200),
        ("localhost:8081", 200),
        ("evil.example", 421),
        ("console.example.evil.example", 421),
        ("svc.evil.example", 421),
        ("", 421),
    ],
)
def test_an_exposed_page_is_answered_by_its_own_names_alone(console: Console, host: str, status: int) -> None:
    """A page of elsewhere leads a name of its own to the address of this one, and has the reader's browser ask."""
    with ConsoleServer(console, "0.0.0.0", 0, ["Console.example"]) as server:
        found, _, said = Reader(server.port).get("/state", Host=host)

    assert found == status
    assert (b"--console-name" in said) == (status == 421)


@pytest.mark.parametrize(
    ("host", "is_local"),
    [("localhost", True), ("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("0.0.0.0", False), ("pod", False)],
)
def test_which_addresses_are_loopback_ones(host: str, is_local: bool) -> None:
    assert is_loopback(host) is is_local


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_nothing_can_be_changed(reader: Reader, method: str) -> None:
    assert reader.get("/state", method=method)[0] == 501


def test_there_is_nothing_else(reader: Reader) -> None:
    for path in ("/metrics", "/console.py", "/../server.py", "/%2e%2e/server.py", "/state/"):
        assert reader.get(path)[0] == 404


def test_readers_cannot_use_up_the_process(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "MOST_REQUESTS", 2)
    with ConsoleServer(console, "127.0.0.1", 0) as server:
        silent = [socket.create_connection(("127.0.0.1", server.port), timeout=10) for _ in range(2)]
        with pytest.raises(ConnectionError):
            Reader(server.port).get("/state")
        for each in silent:
            each.sendall(b"GET /state HTTP/1.0\r\nHost: localhost\r\n\r\n")
            assert each.recv(12) == b"HTTP/1.0 200"
            each.close()


def test_a_reader_that_goes_away_is_no_error_of_ours_and_a_defect_is(
    reader: Reader, console: Console, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = socket.create_connection(("127.0.0.1", reader.port), timeout=10)
    gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    gone.sendall(b"GET /st")
    gone.close()  # a reset
    assert reader.get("/state")[0] == 200
    assert capsys.readouterr().err == ""

    def fail() -> Any:
        raise ValueError("a defect")

    monkeypatch.setattr(console, "fleet_json", fail)
    with pytest.raises(ConnectionError):
        reader.get("/state")
    said = ""

    def printed() -> bool:
        nonlocal said
        said += capsys.readouterr().err
        return "ValueError: a defect" in said

    wait_until(printed)
