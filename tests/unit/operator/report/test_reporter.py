"""Status writes and events: after a change only, and never a second time."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import pytest

from ots_tunnel_operator.kube.client import Kube
from ots_tunnel_operator.kube.errors import KubeError
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.metrics import OperatorMetrics
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.report.notices import Notice
from ots_tunnel_operator.report.reporter import DROPPED_SECONDS, EVENT_SECONDS, MAX_POSTED, Reporter, event
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world.absence import Failure, Missing
from ots_tunnel_operator.world.world import World
from tests.support.operator.worlds import (
    NOW,
    SETTINGS,
    assessed,
    planned,
    recorded,
    resource,
    world,
)

NOTICE = Notice("Warning", "LagHigh", "late")


class RecordingKube:
    """Keeps what is written; `refusal` is the HTTP status of every answer."""

    def __init__(self) -> None:
        self.patches: list[Mapping[str, Any]] = []
        self.events: list[Mapping[str, Any]] = []
        self.refusal: int | None = None

    async def patch(self, kind: object, namespace: str, name: str, change: Mapping[str, Any], part: str) -> None:
        assert part == "status"
        self._answer()
        self.patches.append(change["status"])

    async def create(self, kind: object, manifest: Mapping[str, Any]) -> None:
        self._answer()
        self.events.append(manifest)

    def _answer(self) -> None:
        if self.refusal is not None:
            raise KubeError(self.refusal, "Refused", "no")


@pytest.fixture
def kube() -> RecordingKube:
    return RecordingKube()


@pytest.fixture
def reporter(kube: RecordingKube) -> Reporter:
    return Reporter(cast("Kube", kube), SETTINGS, OperatorMetrics())


async def report(reporter: Reporter, found: World, cache: LoopCache) -> None:
    await reporter.report(found, assessed(found), planned(found), cache)


def merged(before: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """The result of a merge patch (RFC 7386) on the API server."""
    after = dict(before)
    for name, value in patch.items():
        if isinstance(value, Mapping):
            after[name] = merged(after.get(name) or {}, value)
        elif value is None:
            after.pop(name, None)
        else:
            after[name] = value
    return after


def written(kube: RecordingKube, found: World, now: float) -> World:
    """The world a moment later, with the status that was written."""
    status = merged(found.resource.status, kube.patches[-1])
    return replace(found, now=now, resource=replace(found.resource, status=status))


async def test_a_first_status_is_written_with_its_events(reporter: Reporter, kube: RecordingKube) -> None:
    await report(reporter, world(), LoopCache())

    assert [patch["phase"] for patch in kube.patches] == ["Streaming"]
    assert "Consuming" in {posted["reason"] for posted in kube.events}


async def test_an_unchanged_object_causes_no_write(reporter: Reporter, kube: RecordingKube) -> None:
    cache = LoopCache()
    await report(reporter, world(), cache)

    await report(reporter, written(kube, world(), NOW + 3600), cache)

    assert len(kube.patches) == 1


async def test_figures_wait_for_their_time(reporter: Reporter, kube: RecordingKube) -> None:
    cache, before = LoopCache(), world()
    await report(reporter, before, cache)
    busier = replace(before.pods[0], report=replace(before.pods[0].report, rows_per_second=900.0))

    after = replace(written(kube, before, NOW), pods=(busier,))
    for seconds in (1.0, SETTINGS.status_seconds + 1):
        await report(reporter, replace(after, now=NOW + seconds), cache)

    assert len(kube.patches) == 2
    assert cache.last_write == NOW + SETTINGS.status_seconds + 1


async def test_an_object_that_is_gone_needs_no_status(reporter: Reporter, kube: RecordingKube) -> None:
    kube.refusal = 404
    await report(reporter, world(), LoopCache())

    assert kube.events == []


async def test_another_refusal_of_the_status_is_an_error(reporter: Reporter, kube: RecordingKube) -> None:
    kube.refusal = 403
    with pytest.raises(KubeError, match="Refused: no"):
        await report(reporter, world(), LoopCache())


async def test_an_event_is_posted_once_in_a_while(reporter: Reporter, kube: RecordingKube) -> None:
    cache, of = LoopCache(), resource(recorded())
    for seconds in (0.0, EVENT_SECONDS - 1, EVENT_SECONDS):
        await reporter.post(of, NOTICE, cache, NOW + seconds)

    assert len(kube.events) == 2


async def test_the_memory_of_events_is_bounded(reporter: Reporter, kube: RecordingKube) -> None:
    cache, of = LoopCache(), resource(recorded())
    for number in range(MAX_POSTED + 5):
        await reporter.post(of, Notice("Normal", "LagHigh", str(number)), cache, NOW)

    assert len(cache.posted) == MAX_POSTED
    assert ("LagHigh", "0") not in cache.posted


@pytest.mark.parametrize(("status", "lines"), [(403, 1), (409, 0)])
async def test_a_lost_event_is_logged_and_a_repeated_one_is_not(
    reporter: Reporter, kube: RecordingKube, caplog: pytest.LogCaptureFixture, status: int, lines: int
) -> None:
    kube.refusal = status
    with caplog.at_level(logging.WARNING):
        await reporter.post(resource(recorded()), NOTICE, LoopCache(), NOW)

    assert len(caplog.records) == lines


def test_the_name_of_an_event_is_that_of_its_content_and_minute() -> None:
    of, names = resource(recorded()), set()
    for seconds in (0, 1, 60):
        names.add(event(of, NOTICE, NOW + seconds)["metadata"]["name"])

    assert len(names) == 2
    assert event(of, Notice("Normal", "LagHigh", "x" * 5000), NOW)["message"] == "x" * 1024


async def test_a_status_that_becomes_unknown_tells_when_it_was_last_observed(
    kube: RecordingKube, reporter: Reporter
) -> None:
    """An idle status is not written for hours, and observed all the time."""
    idle = recorded(**{"observedTime": timestamp(NOW - 36_000)})
    busy = Failure(Problem(Reason.SERVICE_UNAVAILABLE, "busy", ("TunnelReady",)))
    found = world(resource(idle), tunnel=busy)

    await reporter.report(found, assessed(found), planned(found), LoopCache(observed_time=NOW - 15))

    assert kube.patches[0]["observedTime"] == timestamp(NOW - 15)


class OlderDefinition(RecordingKube):
    """The CRD has no status.verdict."""

    def __init__(self) -> None:
        super().__init__()
        self.status: dict[str, Any] = {}

    async def patch(  # type: ignore[override]  # the other one answers with nothing
        self, kind: object, namespace: str, name: str, change: Mapping[str, Any], part: str
    ) -> dict[str, Any]:
        await super().patch(kind, namespace, name, change, part)
        self.status = merged(self.status or recorded(), change["status"])
        self.status.pop("verdict", None)
        return {"metadata": {}, "status": dict(self.status)}


async def test_a_field_that_the_crd_lacks_is_tried_again_after_a_while_only(caplog: pytest.LogCaptureFixture) -> None:
    kube, cache = OlderDefinition(), LoopCache()
    reporter = Reporter(cast("Kube", kube), SETTINGS, OperatorMetrics())

    async def look(seconds: float) -> int:
        """The writes of one look."""
        before = len(kube.patches)
        gone = replace(world(resource(kube.status or recorded()), tunnel=Missing()), now=NOW + seconds)
        await report(reporter, gone, cache)
        return len(kube.patches) - before

    writes = [await look(seconds) for seconds in (0, 1, 20, 300, DROPPED_SECONDS - 1)]
    assert writes == [1, 0, 0, 0, 0]
    assert "verdict" in kube.patches[0]
    assert [await look(seconds) for seconds in (DROPPED_SECONDS, DROPPED_SECONDS + 1)] == [1, 0]
    dropped = [found for found in kube.events if found["reason"] == "CrdOutdated"]
    assert len(dropped) == 1
    assert "status.verdict" in dropped[0]["message"]
    assert [vars(record)["fields"] for record in caplog.records] == ["status.verdict"]


async def test_what_somebody_else_writes_into_a_status_is_set_back_at_once() -> None:
    kube, cache = OlderDefinition(), LoopCache()
    reporter = Reporter(cast("Kube", kube), SETTINGS, OperatorMetrics())
    await report(reporter, world(tunnel=Missing()), cache)
    kube.status = kube.status | {"phase": "Streaming"}

    await report(reporter, world(resource(kube.status), tunnel=Missing()), cache)

    assert kube.status["phase"] == "Failed"
