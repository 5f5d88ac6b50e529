"""The client of the Kubernetes API against a server: paths, bodies, refusals, no answer."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from ots_tunnel.errors import ConfigError
from ots_tunnel_operator.kube import client
from ots_tunnel_operator.kube.client import Kube
from ots_tunnel_operator.kube.cluster import Change, Listing, Selection
from ots_tunnel_operator.kube.errors import KindMissing, KubeError
from ots_tunnel_operator.kube.kinds import CONFIG_MAP, LEASE, POD, SECRET, SPARK_APPLICATION, TUNNEL
from ots_tunnel_operator.kube.pauses import Pauses
from tests.support.kube.kubeconfig import write_kubeconfig

MANIFEST = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "shop"}}
PATH = "/api/v1/namespaces/shop/configmaps"


@dataclass
class ApiServer:
    """Answers every request alike, and keeps each one."""

    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    pause: float = 0.0
    """Seconds before every answer."""
    refusals: int = 1_000
    """Answers with `status`; later ones have 200."""
    url: str = ""
    requests: list[tuple[str, str, dict[str, str], str, Any]] = field(default_factory=list)
    """(method, path, query, content type, document)"""

    async def answer(self, request: web.Request) -> web.Response:
        data = await request.read()
        document = json.loads(data) if data else None
        call = (request.method, request.path, dict(request.query), request.content_type, document)
        self.requests.append(call)
        await asyncio.sleep(self.pause)
        if self.status < 400 or len(self.requests) <= self.refusals:
            return web.Response(status=self.status, body=self.body, headers=self.headers)
        return web.Response(body=b"{}")

    def refuse(self, status: int, reason: str, **details: str) -> None:
        document = {"reason": reason, "message": "no", "details": details}
        self.status, self.body = status, json.dumps(document).encode()


@pytest.fixture
async def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ApiServer]:
    server, application = ApiServer(), web.Application()
    application.router.add_route("*", "/{path:.*}", server.answer)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    server.url = f"http://{host}:{port}"
    monkeypatch.setenv("KUBECONFIG", str(write_kubeconfig(tmp_path, server.url)))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    yield server
    await runner.cleanup()


@pytest.fixture
async def kube(server: ApiServer) -> AsyncIterator[Kube]:
    kube = await Kube.connect()
    yield kube
    await kube.close()


async def test_every_call_has_its_method_path_and_content_type(server: ApiServer, kube: Kube) -> None:
    manager, merge = {"fieldManager": "ots-tunnel-operator"}, "application/merge-patch+json"
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}

    await kube.create(CONFIG_MAP, MANIFEST)
    await kube.replace(CONFIG_MAP, MANIFEST)
    await kube.apply(MANIFEST)
    await kube.try_apply(MANIFEST)
    await kube.patch(CONFIG_MAP, "shop", "c", {"data": None}, "status")
    await kube.delete(CONFIG_MAP, "shop", "c")

    assert server.requests == [
        ("POST", PATH, {}, "application/json", MANIFEST),
        ("PUT", f"{PATH}/c", {}, "application/json", MANIFEST),
        ("PATCH", f"{PATH}/c", {**manager, "force": "true"}, "application/apply-patch+yaml", MANIFEST),
        (
            *("PATCH", f"{PATH}/c", {**manager, "force": "true", "dryRun": "All"}),
            *("application/apply-patch+yaml", MANIFEST),
        ),
        ("PATCH", f"{PATH}/c/status", manager, merge, {"data": None}),
        ("DELETE", f"{PATH}/c", {}, "application/json", options),
    ]


async def test_objects_are_read_and_listed(server: ApiServer, kube: Kube) -> None:
    server.body = json.dumps({"items": [MANIFEST]}).encode()

    assert await kube.list(POD, "shop", "a=b,c=d") == [MANIFEST]
    assert await kube.get(LEASE, "shop", "x") == {"items": [MANIFEST]}
    assert [(path, query) for _, path, query, _, _ in server.requests] == [
        ("/api/v1/namespaces/shop/pods", {"labelSelector": "a=b,c=d"}),
        ("/apis/coordination.k8s.io/v1/namespaces/shop/leases/x", {}),
    ]


class NoThreads(ThreadPoolExecutor):
    """The threads of an event loop, whose use is an error."""

    def submit(self, *call: Any, **arguments: Any) -> Any:
        raise AssertionError(f"{call} is to run in a thread")


async def test_a_call_needs_no_thread(server: ApiServer, kube: Kube) -> None:
    asyncio.get_running_loop().set_default_executor(NoThreads(1))

    await kube.get(POD, "shop", "p")

    assert len(server.requests) == 1


@pytest.mark.parametrize(("excluded", "is_used"), [("", True), ("127.0.0.8", True), ("127.0.0.9", False)])
async def test_the_proxy_of_the_environment_is_used_unless_it_is_excluded(
    server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, excluded: str, is_used: bool
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(write_kubeconfig(tmp_path, "http://127.0.0.9:1")))
    monkeypatch.setenv("http_proxy", server.url)
    monkeypatch.setenv("no_proxy", excluded)
    kube = await Kube.connect()

    with contextlib.suppress(KubeError):
        await kube.get(POD, "shop", "p")

    assert bool(server.requests) == is_used
    await kube.close()


async def test_a_missing_object_is_an_answer(server: ApiServer, kube: Kube) -> None:
    server.refuse(404, "NotFound", name="p", kind="pods")

    assert await kube.get(POD, "shop", "p") is None
    await kube.delete(POD, "shop", "p")
    with pytest.raises(KubeError, match="NotFound: no") as refused:
        await kube.apply(MANIFEST)
    assert not isinstance(refused.value, KindMissing)


@pytest.mark.parametrize("body", [b"404 page not found\n", b'{"reason": "NotFound", "details": {}}', b"[]"])
async def test_a_kind_that_is_not_served_is_no_answer_about_its_objects(
    server: ApiServer, kube: Kube, body: bytes
) -> None:
    server.status, server.body = 404, body
    calls = (
        lambda kind: kube.get(kind, "shop", "p"),
        lambda kind: kube.list(kind, "shop", "a=b"),
        lambda kind: kube.delete(kind, "shop", "p"),
    )

    for call in calls:
        with pytest.raises(KindMissing):
            await call(TUNNEL)
        assert not await call(SPARK_APPLICATION)
    with pytest.raises(KindMissing):
        await kube.listing(Selection(SPARK_APPLICATION))


async def test_a_refusal_has_status_reason_and_message(server: ApiServer, kube: Kube) -> None:
    server.refuse(403, "Forbidden")

    for call in (kube.get(POD, "shop", "p"), kube.list(POD, "shop", ""), kube.delete(POD, "shop", "p")):
        with pytest.raises(KubeError, match=r"^Forbidden: no$") as refused:
            await call
        assert refused.value.status == 403


async def test_a_refusal_in_another_format_shows_its_text(server: ApiServer, kube: Kube) -> None:
    server.status, server.body = 502, b"<html>bad gateway"

    with pytest.raises(KubeError, match="502: <html>bad gateway"):
        await kube.get(POD, "shop", "p")


async def test_no_answer_has_status_0(
    server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unused_tcp_port: int
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(write_kubeconfig(tmp_path, f"http://127.0.0.1:{unused_tcp_port}")))
    kube = await Kube.connect()

    with pytest.raises(KubeError, match=r"ClientConnectorError: GET /api/v1/namespaces/shop/pods/p") as refused:
        await kube.get(POD, "shop", "p")

    assert refused.value.status == 0
    await kube.close()


async def test_without_a_cluster_it_says_so(server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "missing"))

    with pytest.raises(ConfigError, match="neither a pod's account nor a kubeconfig"):
        await Kube.connect()


async def test_a_selection_is_listed_in_pages(server: ApiServer, kube: Kube) -> None:
    server.body = json.dumps({"items": [MANIFEST], "metadata": {"resourceVersion": "7"}}).encode()

    listing = await kube.listing(Selection(POD, labels="role=worker"))

    assert listing == Listing((MANIFEST,), "7")
    assert [(path, query) for _, path, query, _, _ in server.requests] == [
        ("/api/v1/pods", {"labelSelector": "role=worker", "limit": "100"})
    ]


async def test_a_page_of_a_list_tells_of_the_next_one(server: ApiServer, kube: Kube) -> None:
    server.body = json.dumps({"items": [MANIFEST], "metadata": {"resourceVersion": "7", "continue": "next"}}).encode()

    first = await kube.listing(Selection(POD))
    await kube.listing(Selection(POD), first.rest)

    assert first == Listing((MANIFEST,), "7", "next")
    assert [query for _, _, query, _, _ in server.requests] == [{"limit": "100"}, {"limit": "100", "continue": "next"}]


async def test_a_watch_gives_an_opening_bookmark_and_every_line(server: ApiServer, kube: Kube) -> None:
    events = [{"type": "ADDED", "object": MANIFEST}, {"type": "BOOKMARK", "object": {"metadata": {}}}]
    server.body = b"".join(json.dumps(event).encode() + b"\n" for event in events)

    seen = [change async for change in kube.watch(Selection(SECRET, "shop", name="keys"), "5", 30.0)]

    assert seen == [
        Change("BOOKMARK", {"metadata": {"resourceVersion": "5"}}),
        Change("ADDED", MANIFEST),
        Change("BOOKMARK", {"metadata": {}}),
    ]
    ((_, path, query, _, _),) = server.requests
    assert path == "/api/v1/namespaces/shop/secrets"
    assert query == {
        "fieldSelector": "metadata.name=keys",
        "watch": "true",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "30",
        "resourceVersion": "5",
    }


async def test_an_error_within_a_watch_is_raised(server: ApiServer, kube: Kube) -> None:
    status = {"code": 410, "reason": "Expired", "message": "too old"}
    server.body = json.dumps({"type": "ERROR", "object": status}).encode() + b"\n"

    with pytest.raises(KubeError, match="Expired: too old") as refused:
        [change async for change in kube.watch(Selection(POD), "1", 30.0)]
    assert refused.value.status == 410


async def test_a_refused_watch_and_one_without_an_answer_are_raised(
    server: ApiServer, kube: Kube, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unused_tcp_port: int
) -> None:
    server.refuse(403, "Forbidden")
    with pytest.raises(KubeError, match="Forbidden: no"):
        [change async for change in kube.watch(Selection(POD), "", 30.0)]
    monkeypatch.setenv("KUBECONFIG", str(write_kubeconfig(tmp_path, f"http://127.0.0.1:{unused_tcp_port}")))
    away = await Kube.connect()

    with pytest.raises(KubeError, match="watch of /api/v1/pods") as refused:
        [change async for change in away.watch(Selection(POD), "", 30.0)]

    assert refused.value.status == 0
    await away.close()


@pytest.mark.parametrize(
    ("status", "seconds", "calls"),
    [(429, "0", 2), (503, "0", 1), (429, "21", 1), (429, "soon", 1)],
)
async def test_a_pause_that_the_server_asks_for_is_made(
    server: ApiServer, kube: Kube, status: int, seconds: str, calls: int
) -> None:
    server.refuse(status, "Busy")
    server.headers, server.refusals = {"Retry-After": seconds}, 1

    with contextlib.suppress(KubeError):
        await kube.create(CONFIG_MAP, MANIFEST)

    assert len(server.requests) == calls


async def test_a_get_is_repeated_after_any_error_with_a_pause(server: ApiServer, kube: Kube) -> None:
    server.refuse(503, "Busy")
    server.headers, server.refusals = {"Retry-After": "0"}, 2

    assert await kube.get(POD, "shop", "p") == {}
    assert len(server.requests) == 3


async def test_a_watch_is_not_opened_again_before_the_pause_that_the_server_asked_for_is_over(
    server: ApiServer, kube: Kube
) -> None:
    server.refuse(429, "Busy")
    server.headers, server.refusals = {"Retry-After": "1"}, 1
    began = time.monotonic()  # the pause counts from the refusal, which this test may see late
    with pytest.raises(KubeError, match="Busy"):
        await anext(kube.watch(Selection(POD), "5", 30.0))

    accepted = await anext(kube.watch(Selection(POD), "5", 30.0))

    assert time.monotonic() - began > 0.9
    assert accepted.type == "BOOKMARK"
    assert len(server.requests) == 2


class GrowingPauses(Pauses):
    """What is left of a pause, as one look after the other finds it."""

    def __init__(self, *left: float) -> None:
        super().__init__()
        self._left = list(left)

    def left(self, call: str) -> float:
        return self._left.pop(0)


async def test_a_pause_that_grows_while_a_watch_waits_for_it_is_waited_for_as_a_whole(
    server: ApiServer, kube: Kube, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kube, "_pauses", GrowingPauses(0.3, 0.2, 0.0))
    began = time.monotonic()

    await anext(kube.watch(Selection(POD), "5", 30.0))

    assert time.monotonic() - began > 0.45


async def test_a_pause_that_grows_while_a_call_waits_for_it_is_waited_for_as_a_whole(
    server: ApiServer, kube: Kube, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kube, "_pauses", GrowingPauses(0.01, 0.01, 20.0))

    with pytest.raises(KubeError, match="has asked for a pause, 20 s of it are left"):
        await kube.get(POD, "shop", "p")

    assert server.requests == []


@pytest.mark.parametrize("status", [429, 503])
async def test_a_call_is_not_sent_while_the_server_wants_a_longer_pause_than_a_call_may_take(
    server: ApiServer, kube: Kube, status: int
) -> None:
    server.refuse(status, "Busy")
    server.headers, server.refusals = {"Retry-After": "60"}, 1
    with pytest.raises(KubeError, match="Busy"):
        await kube.apply(MANIFEST)

    with pytest.raises(KubeError, match=r"has asked for a pause, (60|5\d|4\d) s of it are left") as refused:
        await kube.apply(MANIFEST)

    assert refused.value.status == 429
    assert len(server.requests) == 1
    assert await kube.get(CONFIG_MAP, "shop", "other") == {}


async def test_a_refused_write_waits_the_next_time_for_what_is_left_of_the_pause(server: ApiServer, kube: Kube) -> None:
    server.refuse(503, "Busy")
    server.headers, server.refusals = {"Retry-After": "1"}, 1
    began = time.monotonic()
    with pytest.raises(KubeError, match="Busy"):
        await kube.create(CONFIG_MAP, MANIFEST)

    await kube.create(CONFIG_MAP, MANIFEST)

    assert time.monotonic() - began > 0.9


async def test_waiting_for_a_turn_does_not_count_against_a_call(
    server: ApiServer, kube: Kube, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "CALL_SECONDS", 3.0)
    monkeypatch.setattr(kube, "_turns", asyncio.Semaphore(1))
    server.pause = 0.7  # five of them last longer than a call may

    answers = await asyncio.gather(*(kube.get(POD, "shop", "p") for _ in range(5)))

    assert answers == [{}] * 5


async def test_a_process_without_the_lease_reads_and_sends_no_write(server: ApiServer) -> None:
    held = True
    kube = await Kube.connect(lambda: held)
    try:
        await kube.apply(MANIFEST)
        held = False
        for write in (
            kube.apply(MANIFEST),
            kube.create(CONFIG_MAP, MANIFEST),
            kube.patch(CONFIG_MAP, "shop", "c", {}),
            kube.delete(CONFIG_MAP, "shop", "c"),
        ):
            with pytest.raises(KubeError, match="NotLeading"):
                await write
        await kube.get(CONFIG_MAP, "shop", "c")
    finally:
        await kube.close()

    assert [method for method, *_ in server.requests] == ["PATCH", "GET"]


async def test_refused_calls_and_watches_are_counted_by_their_code(
    server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[tuple[str, str]] = []
    kube = await Kube.connect(None, lambda method, code: counted.append((method, code)))
    server.refuse(403, "Forbidden")

    with pytest.raises(KubeError):
        await kube.apply(MANIFEST)
    with pytest.raises(KubeError):
        await anext(kube.watch(Selection(TUNNEL), "", 1))
    server.status, server.body, server.pause = 200, b"{}", 1.0
    monkeypatch.setattr(client, "CALL_SECONDS", 0.05)
    with pytest.raises(KubeError):
        await kube.get(CONFIG_MAP, "shop", "c")
    await kube.close()

    (_, silence) = counted.pop()
    assert counted == [("PATCH", "403"), ("WATCH", "403")]
    assert not silence.isdigit()


async def test_an_answered_call_is_not_counted(server: ApiServer) -> None:
    counted: list[tuple[str, str]] = []
    kube = await Kube.connect(None, lambda method, code: counted.append((method, code)))
    await kube.get(CONFIG_MAP, "shop", "c")
    await kube.close()

    assert counted == []
