"""The loop of one object: number of steps, pauses, and that only cancellation leaves a pass."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, cast

import pytest

from ots_tunnel_operator.kube.client import Kube, KubeError
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.metrics import OperatorMetrics
from ots_tunnel_operator.observe.observer import Observer
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.reconcile import Outcome, Reconciler
from ots_tunnel_operator.world import Competitor, Failure, Resource, World
from tests.support.kube.kube_memory import KubeMemory
from tests.support.operator.objects import tunnel_object
from tests.support.operator.spark_worlds import spark_application, spark_world
from tests.support.operator.worlds import NOW, SETTINGS, TUNNEL_ID, UID, recorded, world

NAME = "flights-copy"
BUSY = Failure(Problem(Reason.SERVICE_UNAVAILABLE, "busy", ("TunnelReady",)))


class Observed:
    """An observer that returns the test's world."""

    def __init__(self, find: Callable[[Resource], World]) -> None:
        self.find = find
        self.passes = 0

    async def observe(self, resource: Resource, cache: LoopCache, *, elder: Competitor | None, now: float) -> World:
        self.passes += 1
        return self.find(resource)


def stored(**metadata: Any) -> KubeMemory:
    body = tunnel_object()
    body["metadata"] |= {"uid": UID, **metadata}
    return KubeMemory({("TablestoreTunnel", NAME): body | {"status": recorded()}})


async def step(
    kube: KubeMemory, find: Callable[[Resource], World], cache: LoopCache | None = None
) -> tuple[Outcome, int]:
    """One pass, and its number of observations."""
    observed = Observed(find)
    reconciler = Reconciler(
        cast(Kube, kube),
        cast(Observer, observed),
        SETTINGS,
        OperatorMetrics(),
        lambda resource: None,
        clock=lambda: NOW,
    )
    return await reconciler.step("default", NAME, cache or LoopCache()), observed.passes


def condition(kube: KubeMemory, kind: str) -> tuple[str, str]:
    conditions = kube.objects["TablestoreTunnel", NAME]["status"]["conditions"]
    (found,) = (item for item in conditions if item["type"] == kind)
    return found["status"], found["reason"]


async def test_a_running_object_is_polled() -> None:
    kube = stored()
    outcome, passes = await step(kube, lambda _: world())

    assert SETTINGS.poll_seconds <= outcome.delay <= 1.05 * SETTINGS.poll_seconds
    assert (outcome.gone, passes) == (False, 1)
    assert condition(kube, "Ready") == ("True", "Consuming")


async def test_a_problem_is_reported_and_tried_again_with_growing_pauses() -> None:
    kube, cache = stored(), LoopCache()

    delays = [(await step(kube, lambda _: world(tunnel=BUSY), cache))[0].delay for _ in range(8)]

    assert condition(kube, "Ready") == ("False", "ServiceUnavailable")
    assert delays[0] < 2 < delays[3] < delays[5]
    assert max(delays) <= 1.1 * SETTINGS.backoff_max_seconds
    await step(kube, lambda _: world(), cache)
    assert cache.failures == 0


async def test_a_wait_that_no_watch_reports_is_polled_often() -> None:
    running = spark_world(spark_application("RUNNING"), recorded(snapshot={"tunnelId": TUNNEL_ID}))

    outcome, _ = await step(stored(), lambda _: running)

    assert outcome.delay == SETTINGS.wait_seconds


@pytest.mark.parametrize("metadata", [{"deletionTimestamp": "2026-01-01T00:00:00Z"}, None])
async def test_the_loop_ends_with_its_object(metadata: dict[str, Any] | None) -> None:
    kube = KubeMemory() if metadata is None else stored(**metadata)

    assert await step(kube, lambda _: world()) == (Outcome(0.0, gone=True), 0)


async def test_an_unexpected_error_keeps_the_status_and_is_logged_with_the_object(
    caplog: pytest.LogCaptureFixture,
) -> None:
    kube = stored()

    def fail(_: Resource) -> World:
        raise RuntimeError("surprise")

    outcome, _ = await step(kube, fail)

    assert not outcome.gone
    assert kube.writes == []
    (line,) = (vars(record) for record in caplog.records if record.levelno == logging.ERROR)
    assert (line["action"], line["namespace"], line["object"]) == ("pass_failed", "default", NAME)
    assert "surprise" in line["error"]


async def test_a_refusing_api_server_fails_the_pass_and_not_the_loop() -> None:
    kube = stored()
    kube.refusal = KubeError(403, "Forbidden", "may not")

    outcome, passes = await step(kube, lambda _: world())

    assert (outcome.gone, passes) == (False, 1)


async def test_an_object_of_another_release_is_left_alone() -> None:
    kube = stored()
    kube.objects["TablestoreTunnel", NAME]["spec"] = {"source": 1}

    outcome, passes = await step(kube, lambda _: world())

    assert (outcome.gone, passes, kube.writes) == (False, 0, [])
