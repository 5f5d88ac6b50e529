"""Reports of workers over HTTP: what is no report is unknown, never 0."""

from __future__ import annotations

import logging
import tracemalloc
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
from aiohttp import web

from ots_tunnel_operator import names
from ots_tunnel_operator.observe import scrape as scraping
from ots_tunnel_operator.observe import worker_page
from ots_tunnel_operator.observe.scrape import read_document, scrape
from ots_tunnel_operator.world.pod import Pod
from ots_tunnel_operator.world.report import RefusedCount, ReportedGap, SinkContact
from tests.support.operator.worlds import recorded, resource

REPORT = b"""{"clientId": "01234567-pod-1", "time": "2026-01-01T00:00:00Z", "rowsPerSecond": 12.5, "busyPercent": 40,
 "channels": [{"id": "c", "type": "Stream", "state": "OPEN", "rowsTotal": 7, "lagSeconds": 3}]}"""

TIMELESS = REPORT.replace(b'"channels"', b'"possibleGaps": [{"channel": "c", "from": null, "to": null}], "channels"')


def with_sink(document: bytes) -> bytes:
    return REPORT.replace(b'"channels"', b'"sink": ' + document + b', "channels"')


@dataclass
class Worker:
    """Answers every request alike."""

    status: int = 200
    body: bytes = REPORT
    is_chunked: bool = False
    """Whether the answer does not tell its length before."""
    requests: int = 0

    async def answer(self, request: web.Request) -> web.Response:
        self.requests += 1
        answer = web.Response(status=self.status, body=self.body)
        if self.is_chunked:
            answer.enable_chunked_encoding()
        return answer


@pytest.fixture
async def worker(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Worker]:
    worker, application = Worker(), web.Application()
    application.router.add_get("/channels", worker.answer)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    monkeypatch.setattr(names, "WORKER_PORT", runner.addresses[0][1])
    yield worker
    await runner.cleanup()


def pod(phase: str = "Running", ip: str = "127.0.0.1") -> Pod:
    return Pod(name="pod-1", phase=phase, ready=True, deleting=False, ip=ip, restarts=0, message="")


async def scraped(*pods: Pod) -> tuple[Pod, ...]:
    return await scrape(worker_page.WorkerPages().read, resource(recorded()), pods, timeout=5.0)


async def test_a_running_worker_reports_its_channels(worker: Worker) -> None:
    [found] = await scraped(pod())

    assert found.report is not None
    assert (found.report.client_id, found.report.rows_per_second) == ("01234567-pod-1", 12.5)
    assert [(channel.rows, channel.lag_seconds) for channel in found.report.channels] == [(7, 3)]


@pytest.mark.parametrize(("says", "passed"), [(b"", False), (b', "passed": true', True), (b', "passed": false', False)])
async def test_a_worker_reports_its_possible_gaps(worker: Worker, says: bytes, passed: bool) -> None:
    gap = b'{"channel": "c", "from": "1970-01-01T00:00:01.500Z", "to": "1970-01-01T00:00:09.000Z"' + says + b"}"
    worker.body = REPORT.replace(b'"channels"', b'"possibleGaps": [' + gap + b'], "channels"')

    [found] = await scraped(pod())

    assert found.report is not None
    assert found.report.gaps == (ReportedGap("c", 1.5, 9.0, passed),)


async def test_a_worker_reports_what_was_refused_and_an_elder_one_nothing(worker: Worker) -> None:
    [elder] = await scraped(pod())
    worker.body = REPORT.replace(b'"channels"', b'"refused": {"records": 5, "keys": 2}, "channels"')
    [found] = await scraped(pod())

    assert elder.report is not None
    assert found.report is not None
    assert (elder.report.refused, found.report.refused) == (None, RefusedCount(5, 2))


@pytest.mark.parametrize(("told", "since"), [(b'"1970-01-01T00:00:01.500Z"', 1.5), (b"null", None), (b'"soon"', None)])
async def test_a_worker_tells_since_when_it_counts(worker: Worker, told: bytes, since: float | None) -> None:
    counts = b'"startedTime": ' + told + b', "refused": {"records": 5, "keys": 2}, "channels"'
    worker.body = REPORT.replace(b'"channels"', counts)
    [found] = await scraped(pod())

    assert found.report is not None
    assert found.report.refused == RefusedCount(5, 2, since)


async def test_a_pod_that_does_not_run_is_not_asked(worker: Worker) -> None:
    found = await scraped(pod(phase="Pending"), pod(ip=""))

    assert [each.report for each in found] == [None, None]
    assert worker.requests == 0


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (503, REPORT),
        (200, b"<html>"),
        (200, b"{}"),
        (200, b"[]"),
        (200, REPORT.replace(b"12.5", b"[]")),
        (200, TIMELESS),
        (200, REPORT.replace(b'"channels"', b'"refused": {"records": 5}, "channels"')),
        (200, with_sink(b'{"lookedTime": null, "confirmedTime": null, "failing": {"since": null, "error": "x"}}')),
        (200, with_sink(b"{}")),
        (200, b"[" * 100_000),
        (200, REPORT.replace(b"12.5", b"NaN")),
        (200, REPORT.replace(b"40", b"1e999")),
        (200, REPORT.replace(b"7", b"-Infinity")),
    ],
    ids=[
        "error",
        "no JSON",
        "empty",
        "a list",
        "wrong type",
        "a gap without times",
        "a count without keys",
        "a failing write without its time",
        "nothing of the sink",
        "nested without end",
        "a rate that is no number",
        "a share without end",
        "rows without end",
    ],
)
async def test_an_answer_of_another_form_is_no_report(worker: Worker, status: int, body: bytes) -> None:
    worker.status, worker.body = status, body

    assert [each.report for each in await scraped(pod())] == [None]
    assert worker.requests == 1


@pytest.mark.parametrize(
    ("document", "contact"),
    [
        (b"null", None),
        (b'{"lookedTime": null, "confirmedTime": null, "failing": null}', SinkContact(False)),
        (b'{"lookedTime": "2025-12-31T23:00:00.000Z", "confirmedTime": null, "failing": null}', SinkContact(True)),
        (b'{"lookedTime": null, "confirmedTime": "2025-12-31T23:00:00.000Z", "failing": null}', SinkContact(True)),
        (
            b'{"lookedTime": null, "confirmedTime": null, '
            b'"failing": {"since": "2025-12-31T23:58:00.000Z", "error": "no answer"}}',
            SinkContact(False, 120.0, "no answer"),
        ),
        # the worker's clock was set back
        (
            b'{"lookedTime": null, "confirmedTime": null, '
            b'"failing": {"since": "2026-01-01T00:10:00.000Z", "error": "no answer"}}',
            SinkContact(False, 0.0, "no answer"),
        ),
    ],
)
async def test_what_a_worker_knows_of_its_sink(worker: Worker, document: bytes, contact: SinkContact | None) -> None:
    worker.body = with_sink(document)
    [found] = await scraped(pod())

    assert found.report is not None
    assert found.report.sink == contact


@pytest.mark.parametrize("is_chunked", [False, True], ids=["of a told length", "of any length"])
async def test_a_huge_answer_is_no_report(worker: Worker, monkeypatch: pytest.MonkeyPatch, is_chunked: bool) -> None:
    worker.is_chunked = is_chunked
    monkeypatch.setattr(worker_page, "MAX_BYTES", 100)

    assert [each.report for each in await scraped(pod())] == [None]


async def test_a_worker_that_does_not_answer_has_no_report(worker: Worker) -> None:
    assert [each.report for each in await scraped(pod(ip="::1"))] == [None]


async def test_a_silent_worker_is_logged_with_its_object(worker: Worker, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="ots_tunnel_operator"):
        await scraped(pod(ip="::1"))

    (line,) = (vars(record) for record in caplog.records)
    assert (line["action"], line["namespace"], line["object"]) == ("worker_silent", "default", "flights-copy")
    assert (line["kind"], line["child"]) == ("Pod", "pod-1")


@pytest.mark.parametrize(
    "body",
    [b"[" + b"[]," * 2_000_000 + b"[]]", b"[" + b'"ab",' * 1_000_000 + b'"ab"]', b"[" * 300_000],
    ids=["empty lists", "short texts", "nested lists"],
)
async def test_a_page_of_many_small_values_takes_no_memory(worker: Worker, body: bytes) -> None:
    """Such a page of 8 MiB would be 200 MB as Python objects, of which the process of all objects has 512."""
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="allowed are 200000"):
            read_document(body)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert most < 1_000_000


async def test_the_workers_of_an_object_report_a_bounded_number_of_channels(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scraping, "MAX_CHANNELS", 2)

    found = await scraped(pod(), pod(), pod())

    assert sorted(each.report is None for each in found) == [False, False, True]


@pytest.mark.parametrize("number", [b"9223372036854775808", b"1" + b"0" * 400])
async def test_a_number_that_no_status_can_hold_is_no_report(worker: Worker, number: bytes) -> None:
    worker.body = REPORT.replace(b'"lagSeconds": 3', b'"lagSeconds": ' + number)

    assert [each.report for each in await scraped(pod())] == [None]
