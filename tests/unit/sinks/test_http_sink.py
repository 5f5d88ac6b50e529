"""The web service sink against a real server on loopback."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import nullcontext
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from ots_tunnel.config import DeliveryConfig, HttpSinkConfig
from ots_tunnel.errors import ConfigError, OwnershipLost, SinkRejected
from ots_tunnel.model import Action, ChannelId, ChannelType, SequenceInfo
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks import Batch, Contact, Guard, http_sink
from ots_tunnel.sinks.cloud_events import signature_headers
from ots_tunnel.sinks.http_sink import HttpSink
from tests.support.guards import ClosedGuard, OpenGuard
from tests.support.records import numbered_record, record
from tests.support.waiting import until

NOW = 1_700_000_000.0


class Service:
    """Accepts batches; `answer` decides status and headers by the events."""

    def __init__(self) -> None:
        self.requests: list[tuple[dict[str, str], bytes]] = []
        self.stored: list[dict[str, Any]] = []
        self.answer: Callable[[list[dict[str, Any]]], tuple[int, dict[str, str]]] = lambda events: (204, {})
        self.under_way = 0
        self.most_under_way = 0
        self.url = ""
        #: Statuses of the next answers, whose batches are stored `late` seconds later; 0 closes the connection.
        self.lose_answers: list[int] = []
        self.late = 0.3
        #: Headers by which a proxy that loses an answer tells its name.
        self.proxy: dict[str, str] = {}
        #: Body of every refusal.
        self.words = b""
        #: Answers every batch, where there is one.
        self.streamed: Callable[[web.Request], Awaitable[web.StreamResponse]] | None = None

    async def take(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        if self.streamed is not None:
            return await self.streamed(request)
        if self.lose_answers:
            return self._lose_answer(request, json.loads(body))
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        await asyncio.sleep(0.01)
        self.under_way -= 1
        events = json.loads(body)
        self.requests.append((dict(request.headers), body))
        status, headers = self.answer(events)
        if status < 300:
            self.stored += events
        return web.Response(status=status, headers=headers, body=self.words if status >= 300 else None)

    def _lose_answer(self, request: web.Request, events: list[dict[str, Any]]) -> web.Response:
        """What a proxy does that has passed a batch on and does not wait for the answer."""
        asyncio.get_running_loop().call_later(self.late, self.stored.extend, events)
        status = self.lose_answers.pop()
        if not status and request.transport is not None:
            request.transport.abort()
        return web.Response(status=status or 500, headers=self.proxy)


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    made = Service()
    application = web.Application(client_max_size=1 << 24)
    application.router.add_post("/in", made.take)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}/in"
    yield made
    await runner.cleanup()


def sink(service: Service, secret: Path | None = None, rows: int = 10, **options: Any) -> HttpSink:
    delivery = DeliveryConfig.model_validate(
        {"batchMaxRows": rows, "retry": {"backoffSeconds": 0.001, "backoffMaxSeconds": 0.01}}
    )
    config = HttpSinkConfig(url=service.url, hmac_secret_file=secret)
    settings: dict[str, Any] = {"lanes": 4, "deadline": 5, "clock": lambda: NOW, **options}
    return HttpSink(config, "ots://shop/orders", "t-1", delivery=delivery, **settings)


def batch(*records: Record) -> Batch:
    return Batch(ChannelId("c1"), ChannelType.STREAM, records)


async def write(service: Service, *records: Record, guard: Guard | None = None, **options: Any) -> HttpSink:
    made = sink(service, **options)
    await made.open()
    try:
        await made.write(batch(*records), guard or OpenGuard())
    finally:
        await made.close()
    return made


async def test_an_event_has_every_field(service: Service) -> None:
    await write(service, numbered_record(7, 1))

    assert service.stored == [
        {
            "specversion": "1.0",
            "id": "t-1:c1:0.1700000000123456.1",
            "source": "ots://shop/orders",
            "type": "dev.ots-tunnel.row.put",
            "subject": '{"id":7}',
            "datacontenttype": "application/json",
            "time": "2023-11-14T22:13:20.123456Z",
            "data": {
                "action": "PUT",
                "channel": "c1",
                "sequence": [0, 1_700_000_000_123_456, 1],
                "key": {"id": 7},
                "columns": [{"name": "n", "op": "PUT", "value": 1, "version": 5}],
            },
        }
    ]
    assert service.requests[0][0]["Content-Type"] == "application/cloudevents-batch+json; charset=UTF-8"


@pytest.mark.parametrize("timestamp_us", [2**63 - 1, 253_402_300_800_000_000, -(2**63)])
async def test_an_event_whose_commit_time_no_date_has_is_stored_without_it(service: Service, timestamp_us: int) -> None:
    await write(service, Record(Action.DELETE, encode_row((("id", 7),), sequence=SequenceInfo(0, timestamp_us, 1))))

    (event,) = service.stored
    assert "time" not in event
    assert event["data"]["sequence"] == [0, timestamp_us, 1]


async def test_the_signature_is_that_of_standard_webhooks(service: Service, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("hush\n")
    await write(service, numbered_record(7, 1), secret=tmp_path / "secret")

    headers, body = service.requests[0]
    assert signed_with(headers, body, b"hush")
    assert headers["webhook-timestamp"] == str(int(NOW))


def signed_with(headers: dict[str, str], body: bytes, secret: bytes) -> bool:
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = base64.b64encode(hmac.new(secret, signed, hashlib.sha256).digest()).decode()
    return headers["webhook-signature"] == f"v1,{expected}"


async def test_a_secret_in_the_form_of_standard_webhooks_is_decoded(service: Service, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n")
    await write(service, numbered_record(7, 1), secret=tmp_path / "secret")

    assert signed_with(*service.requests[0], base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"))


def test_a_signature_is_the_specifications_example() -> None:
    key = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    headers = signature_headers(b'{"test": 2432232314}', "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, key)

    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize("text", ["whsec_", "whsec_h?sh"])
async def test_a_secret_that_only_looks_like_one_is_refused(service: Service, tmp_path: Path, text: str) -> None:
    (tmp_path / "secret").write_text(text)

    with pytest.raises(ConfigError, match=r"hmacSecretFile: .*secret: allowed behind whsec_ is base64") as refused:
        sink(service, secret=tmp_path / "secret")
    assert "h?sh" not in str(refused.value)


async def test_a_secret_that_is_replaced_signs_the_next_batch(service: Service, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("hush")
    made = sink(service, secret=tmp_path / "secret")
    await made.open()
    try:
        await made.write(batch(numbered_record(7, 1)), OpenGuard())
        (tmp_path / "secret").write_text("hushhush")
        await made.write(batch(numbered_record(7, 2)), OpenGuard())
    finally:
        await made.close()

    assert signed_with(*service.requests[0], b"hush")
    assert signed_with(*service.requests[1], b"hushhush")


async def test_order_per_key_is_kept_and_requests_overlap(service: Service) -> None:
    records = [numbered_record(number % 40, number) for number in range(200)]
    await write(service, *records)

    by_key: dict[int, list[int]] = defaultdict(list)
    for event in service.stored:
        by_key[event["data"]["key"]["id"]].append(event["data"]["columns"][0]["value"])
    assert by_key == {key: list(range(key, 200, 40)) for key in range(40)}
    assert 1 < service.most_under_way <= 4
    assert all(len(json.loads(body)) <= 10 for _, body in service.requests)


@pytest.mark.parametrize("status", [429, 425, 500, 503, 408])
async def test_transient_failures_are_retried_under_the_same_id(service: Service, status: int) -> None:
    statuses = [status, status]
    service.answer = lambda events: (statuses.pop(), {}) if statuses else (200, {})
    # a try that lasts longer than the deadline, on a busy machine, would be one more
    made = await write(service, numbered_record(1, 1), deadline=2)

    assert len(service.stored) == 1
    assert len({headers["webhook-id"] for headers, _ in service.requests}) == 1
    assert made.retries == 2
    assert made.contact() == Contact(confirmed=NOW)


async def test_a_service_that_is_not_called_yet_is_not_known() -> None:
    made = HttpSink(
        HttpSinkConfig(url="http://127.0.0.1:9/nowhere"),
        "ots://i/t",
        "t-1",
        delivery=DeliveryConfig(),
        lanes=1,
        deadline=30,
    )
    await made.open()
    try:
        assert made.contact() == Contact()
        writing = asyncio.create_task(made.write(batch(numbered_record(1, 1)), OpenGuard()))
        await until(lambda: made.contact().failing is not None, 10, "the refused connection")
        failing = made.contact().failing
        assert failing is not None
        assert failing.error.startswith("no answer (Cannot connect to host 127.0.0.1:9 ")
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
        assert made.contact() == Contact()
    finally:
        await made.close()


#: Varnish, and Fastly with it, adds a Retry-After to its 503; Azure Front Door names itself nowhere else.
PROXIES = {
    "envoy": {"server": "istio-envoy"},
    "varnish": {"server": "Varnish", "via": "1.1 varnish (Varnish/7.4)", "retry-after": "0"},
    "azure": {"x-azure-ref": "0abc", "x-cache": "CONFIG_NOCACHE"},
    "nameless": {},
}


@pytest.mark.parametrize(
    ("status", "proxy"),
    [*((503, proxy) for proxy in PROXIES), *((status, "nameless") for status in (0, 408, 500, 502, 504, 524, 599))],
)
async def test_a_batch_whose_answer_is_lost_is_not_overtaken(service: Service, status: int, proxy: str) -> None:
    service.lose_answers, service.proxy = [status], PROXIES[proxy]
    await write(service, numbered_record(1, 1), numbered_record(1, 2), deadline=2)

    assert [event["data"]["columns"][0]["value"] for event in service.stored] == [1, 1, 2]


@pytest.mark.parametrize("value", ["1", formatdate(NOW + 1, usegmt=True)])
async def test_retry_after_is_respected(service: Service, value: str) -> None:
    answers = [(429, {"Retry-After": value})]
    service.answer = lambda events: answers.pop() if answers else (200, {})
    began = asyncio.get_running_loop().time()
    await write(service, numbered_record(1, 1))

    assert asyncio.get_running_loop().time() - began >= 1


@pytest.mark.parametrize("status", [425, 429])
async def test_a_service_that_refuses_before_it_acts_is_asked_again_soon(service: Service, status: int) -> None:
    answers = [(status, {})]
    service.answer = lambda events: answers.pop() if answers else (200, {})
    began = asyncio.get_running_loop().time()
    await write(service, numbered_record(1, 1), deadline=30)

    assert asyncio.get_running_loop().time() - began < 10


async def test_a_success_before_the_last_byte_has_left_is_none() -> None:
    """What has not been read cannot be stored."""
    bodies: list[bytes] = []
    connections: list[asyncio.StreamWriter] = []

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        head = await reader.readuntil(b"\r\n\r\n")
        (size,) = map(int, re.findall(rb"(?i)content-length: (\d+)", head))
        bodies.append(await reader.readexactly(size if bodies else 1000))
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        await writer.drain()

    async with await asyncio.start_server(take, "127.0.0.1", 0, limit=4096) as server:
        early = Service()
        early.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/in"
        large = record((("id", 1),), Column("text", "x" * 3_000_000), sequence=SequenceInfo(0, 1, 1))
        await write(early, large, deadline=5)
        for connection in connections:
            connection.close()

    assert len(bodies) == 2
    assert json.loads(bodies[-1])[0]["data"]["key"] == {"id": 1}


async def test_a_refused_event_is_found_and_named(service: Service) -> None:
    service.answer = lambda events: (422, {}) if any(event["data"]["key"]["id"] == 5 for event in events) else (200, {})

    with pytest.raises(SinkRejected, match="HTTP 422") as raised:
        await write(service, *(numbered_record(key, key) for key in range(8)))

    assert raised.value.keys == ("id=5",)
    assert {event["data"]["key"]["id"] for event in service.stored} >= {0, 1, 2, 3, 4}


@pytest.mark.parametrize("status", [301, 401, 403, 404, 410])
async def test_a_service_that_refuses_everything_is_final(service: Service, status: int) -> None:
    service.answer = lambda events: (status, {})

    with pytest.raises(SinkRejected, match=f"HTTP {status}"):
        await write(service, numbered_record(1, 1), numbered_record(2, 2))
    assert len(service.requests) == 1


@pytest.mark.parametrize(
    ("status", "way_out"),
    [
        (401, "correct the keys in sink.http.url, or the secret of sink.http.hmacSecretFile"),
        (403, "let the service accept the events"),
        (404, "correct sink.http.url"),
        (410, ""),
    ],
)
async def test_a_refusal_has_the_field_the_answer_and_a_way_out_and_blames_no_row(
    service: Service, status: int, way_out: str
) -> None:
    service.answer, service.words = lambda events: (status, {}), b'{"error":\n"no such hook\x1b[2J"}'

    with pytest.raises(SinkRejected) as raised:
        await write(service, numbered_record(1, 1))

    assert raised.value.keys == ()
    where = f"sink.http.url '{service.url}' refuses"
    assert raised.value.message.startswith(f'{where}: {{"error": "no such hook [2J"}}')
    assert way_out in raised.value.message


async def test_the_beginning_of_an_answer_is_quoted(service: Service) -> None:
    service.answer, service.words = lambda events: (422, {}), b"no such field" + b" x" * 5000

    with pytest.raises(SinkRejected, match="refuses: no such field x x") as raised:
        await write(service, numbered_record(1, 1))

    assert len(raised.value.message) < 300
    assert raised.value.keys == ("id=1",)


async def test_an_answer_is_not_quoted_that_may_repeat_the_keys_of_the_address(service: Service) -> None:
    service.url += "?sig=a%2Fb0c%2Bdefghi%3D"
    service.answer, service.words = lambda events: (404, {}), b"no page /in?sig=a/b0c%2Bdefghi%3D"

    with pytest.raises(
        SinkRejected, match=r"\(its answer is not quoted: it may repeat the parameters of the"
    ) as raised:
        await write(service, numbered_record(1, 1))

    assert "defghi" not in raised.value.message


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip", "deflate"])
@pytest.mark.parametrize("status", [200, 404])
async def test_the_status_of_an_answer_counts_that_cannot_be_unpacked(
    service: Service, status: int, encoding: str
) -> None:
    async def take(request: web.Request) -> web.Response:
        encodings.append(request.headers.get("accept-encoding"))
        return web.Response(status=status, headers={"content-encoding": encoding}, body=b"no such encoding")

    encodings: list[str | None] = []
    service.streamed = take
    refusal = pytest.raises(SinkRejected, match=r"refuses: \(its answer is not quoted: it is compressed\): correct")
    async with asyncio.timeout(4):
        with refusal if status == 404 else nullcontext():
            await write(service, numbered_record(1, 1), deadline=5)

    assert encodings == ["identity"]


async def test_words_that_come_in_parts_are_read_and_those_that_never_come_are_not_waited_for(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_sink, "BODY_SECONDS", 0.3)
    is_over = asyncio.Event()

    async def take(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(status=422)
        await answer.prepare(request)
        for part in (b"no such ", b"event type"):
            await answer.write(part)
            await asyncio.sleep(0.02)
        await is_over.wait()
        return answer

    service.streamed = take
    with pytest.raises(SinkRejected, match="refuses: no such event type"):
        await write(service, numbered_record(1, 1))
    is_over.set()


async def test_nothing_is_sent_once_the_channel_is_lost(service: Service) -> None:
    with pytest.raises(OwnershipLost):
        await write(service, numbered_record(1, 1), guard=ClosedGuard())
    assert service.requests == []


async def test_a_missing_secret_is_named_before_anything_is_sent(service: Service, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"sink\.http\.hmacSecretFile: .*secret: No such file"):
        await write(service, numbered_record(1, 1), secret=tmp_path / "secret")
    assert service.requests == []
