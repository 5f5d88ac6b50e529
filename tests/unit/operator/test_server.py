"""Probes and metrics over HTTP."""

from __future__ import annotations

import asyncio
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator

import pytest

from ots_tunnel_operator import server as server_module
from ots_tunnel_operator.metrics import OperatorMetrics
from ots_tunnel_operator.server import Health, HealthServer
from tests.support.network.ip_versions import HAS_BOTH

Get = Callable[[str], tuple[int, str]]


@pytest.fixture
def health() -> Health:
    return Health(OperatorMetrics())


@pytest.fixture
def get(health: Health) -> Iterator[Get]:
    with HealthServer(health, "127.0.0.1", 0) as server:

        def get(path: str) -> tuple[int, str]:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{server.port}{path}", timeout=10) as answer:
                    return answer.status, answer.read().decode()
            except urllib.error.HTTPError as error:
                with error:
                    return error.code, error.read().decode()

        yield get


def test_a_new_process_lives_and_is_not_ready(get: Get) -> None:
    assert get("/livez") == (200, "ok")
    assert get("/readyz?verbose") == (503, "starting")


def test_a_follower_names_the_leader(get: Get, health: Health) -> None:
    health.ready, health.waits_for = True, "first, which serves shop, not lake"

    assert get("/readyz") == (200, "standing by for first, which serves shop, not lake")


@pytest.mark.parametrize(("leading", "state"), [(False, "standing by"), (True, "leading")])
def test_a_follower_is_ready_like_the_leader(get: Get, health: Health, leading: bool, state: str) -> None:
    health.ready, health.leading = True, leading

    assert get("/readyz") == (200, state)


def test_an_event_loop_that_stands_still_is_no_life(get: Get, health: Health, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "LOOP_SECONDS", 0.01)
    time.sleep(0.02)

    status, text = get("/livez")

    assert status == 503
    assert text.startswith("the event loop has not run for ")


def test_a_connection_that_asks_nothing_is_closed(health: Health, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "IDLE_SECONDS", 0.05)
    with (
        HealthServer(health, "127.0.0.1", 0) as server,
        socket.create_connection(("127.0.0.1", server.port), timeout=10) as silent,
    ):
        assert silent.recv(1) == b""


async def test_a_running_event_loop_ticks(health: Health, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "LOOP_SECONDS", 0.2)
    monkeypatch.setattr(server_module, "TICK_SECONDS", 0.01)
    ticking = asyncio.create_task(health.keep_ticking())
    await asyncio.sleep(0.5)

    assert health.live() == ""
    ticking.cancel()


def test_an_object_without_a_pass_is_no_life(get: Get, health: Health, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health.metrics, "oldest_pass", lambda: 901.0)

    assert get("/livez") == (503, "an object has had no pass for 901 s")


def test_a_process_that_observes_no_object_is_no_life(health: Health, monkeypatch: pytest.MonkeyPatch) -> None:
    health.metrics.tried("shop", "a", 0.1)
    monkeypatch.setattr(server_module, "PASS_SECONDS", -1.0)
    monkeypatch.setattr(health.metrics, "oldest_pass", lambda: -2.0)

    assert health.live().startswith("no pass has observed its object for ")
    health.metrics.passed("shop", "b", 0.1)
    health.metrics.tried("shop", "a", 0.1)
    assert health.metrics.failing_seconds() < 60
    health.metrics.forget("shop", "a")
    health.metrics.forget("shop", "b")
    assert health.metrics.failing_seconds() == 0.0


def test_metrics_and_nothing_else(get: Get) -> None:
    status, text = get("/metrics")

    assert status == 200
    assert "# HELP" in text
    assert get("/") == (404, "not found")


@HAS_BOTH
@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
def test_a_probe_is_answered_at_either_address_of_the_pod(health: Health, host: str) -> None:
    with (
        HealthServer(health, "0.0.0.0", 0) as server,
        urllib.request.urlopen(f"http://{host}:{server.port}/livez", timeout=10) as answer,
    ):
        assert answer.status == 200
