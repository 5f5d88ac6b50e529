"""The loop of one object: number of steps, pauses, and that only cancellation leaves a pass."""

from __future__ import annotations

import asyncio
import copy
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest

from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.kube.cluster import Cluster, Reader
from ots_tunnel_operator.kube.errors import KindMissing, KubeError
from ots_tunnel_operator.kube.kinds import TUNNEL, Kind, Manifest
from ots_tunnel_operator.kube.reflector import StaleCopy
from ots_tunnel_operator.loop.pace import ABSENT_SECONDS, Outcome
from ots_tunnel_operator.loop.reconcile import MAX_STEPS, Reconciler
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.metrics import OperatorMetrics
from ots_tunnel_operator.names import ANNOTATION_OPERATOR, FINALIZER, LEAVES_NEXT
from ots_tunnel_operator.observe.observer import Observer
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world.absence import Failure, Missing
from ots_tunnel_operator.world.resource import Resource
from ots_tunnel_operator.world.world import Competitor, Settling, World
from tests.support.kube.cluster_model import ClusterModel
from tests.support.kube.kube_memory import KubeMemory
from tests.support.operator.objects import tunnel_object
from tests.support.operator.spark_worlds import spark_application, spark_world
from tests.support.operator.worlds import NOW, SETTINGS, TUNNEL_ID, UID, deployment, pod, recorded, resource, world

NAME = "flights-copy"
DELETED = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
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
    body["metadata"] |= {"uid": UID, "finalizers": [FINALIZER], **metadata}
    return KubeMemory({("TablestoreTunnel", NAME): body | {"status": recorded()}})


async def step(
    kube: KubeMemory,
    find: Callable[[Resource], World],
    cache: LoopCache | None = None,
    metrics: OperatorMetrics | None = None,
) -> tuple[Outcome, int]:
    """One pass, and its number of observations."""
    observed = Observed(find)
    reconciler = Reconciler(
        cast(Cluster, kube),
        cast(Observer, observed),
        SETTINGS,
        metrics or OperatorMetrics(),
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


async def test_metrics_say_what_was_done_for_an_object_and_how_it_is_to_be() -> None:
    kube, metrics = stored(), OperatorMetrics()
    place = {"namespace": "default", "name": NAME}
    observed = cast(Observer, Observed(lambda _: replace(world(), children={}, pods=())))
    reconciler = Reconciler(cast(Cluster, kube), observed, SETTINGS, metrics, lambda _: None, lambda: NOW)

    await reconciler.step("default", NAME, LoopCache())

    value = metrics.registry.get_sample_value
    assert value("ots_tunnel_actions_total", place | {"action": "ApplyObject"}) == 4  # what workers are and need
    assert value("ots_tunnel_wanted_workers", place) == 1
    assert value("ots_tunnel_ready_workers", place) == 0
    assert value("ots_tunnel_lag_limit_seconds", place) == 900
    assert value("ots_tunnel_retention_limit_percent", place) == 50
    assert value("ots_tunnel_condition", place | {"type": "Stalled", "reason": "AsExpected"}) == 0


async def test_what_is_done_although_channels_have_not_settled_is_told_once_it_is_done() -> None:
    stuck = Settling("a worker is draining", stuck_seconds=1000.0)
    pods = tuple(pod(f"pod-{number}", deletion_cost=LEAVES_NEXT if number == 2 else "") for number in (1, 2))
    of = resource(recorded(), replicas=1)
    two = world(of, children=deployment(2), pods=pods, settling=stuck)
    kube = stored()

    kube.refusal = KubeError(500, "InternalError", "no")
    await step(kube, lambda _: two)
    assert not [kind for kind, _ in kube.objects if kind == "Event"]
    kube.refusal = None
    await step(kube, lambda _: two)

    reasons = [found["reason"] for (kind, _), found in kube.objects.items() if kind == "Event"]
    assert "ChannelsUnsettled" in reasons
    assert kube.objects["Deployment", NAME]["spec"]["replicas"] == 1


async def test_a_problem_is_reported_and_tried_again_with_growing_pauses() -> None:
    kube, cache = stored(), LoopCache()

    delays = [(await step(kube, lambda _: world(tunnel=BUSY), cache))[0].delay for _ in range(8)]

    assert condition(kube, "Ready") == ("Unknown", "ServiceUnavailable")
    assert delays[0] < 2 < delays[3] < delays[5]
    assert max(delays) <= 1.1 * SETTINGS.backoff_max_seconds
    await step(kube, lambda _: world(), cache)
    assert cache.failures == 0


async def test_the_problem_of_an_action_stays_shown_until_the_action_succeeds() -> None:
    class OlderDefinition(KubeMemory):
        """Stores no status.destination, and keeps the reasons of Ready that were written."""

        reasons: list[str]
        lacks = True

        async def patch(self, kind: Kind, namespace: str, name: str, change: Manifest, part: str = "") -> Manifest:
            if self.lacks and "destination" in change.get("status", {}):
                change = change | {"status": {**change["status"], "destination": None}}
            self.reasons += [
                item["reason"] for item in change["status"].get("conditions", ()) if item["type"] == "Ready"
            ]
            return await super().patch(kind, namespace, name, change, part)

    kube, cache = OlderDefinition(stored().objects), LoopCache()
    kube.reasons = []
    kube.objects["TablestoreTunnel", NAME]["status"] = {}

    def find(of: Resource) -> World:
        return replace(world(tunnel=Missing()), resource=of, destination=Missing(), children={}, pods=())

    for _ in range(3):
        await step(kube, find, cache)
    assert kube.reasons == ["CreatingDestination", "CrdOutdated"]

    kube.lacks = False
    await step(kube, find, cache)
    assert kube.objects["TablestoreTunnel", NAME]["status"]["destination"]["createIntentTime"]
    # the next action fails: there is no service to create a table in
    assert kube.reasons[2:] == ["InternalError"]


async def test_a_wait_that_no_watch_reports_is_polled_often() -> None:
    running = spark_world(spark_application("RUNNING"), recorded(snapshot={"tunnelId": TUNNEL_ID}))

    outcome, _ = await step(stored(), lambda _: running)

    assert outcome.delay == SETTINGS.wait_seconds


@pytest.mark.parametrize("metadata", [DELETED, {"uid": "successor"}, None])
async def test_the_loop_ends_with_its_object(metadata: dict[str, Any] | None) -> None:
    kube = KubeMemory() if metadata is None else stored(**metadata)
    # a watch has told of the objects that are no longer there
    cache = LoopCache(uid=UID, forgotten="deletionTimestamp" not in (metadata or {}))

    assert await step(kube, lambda _: world(), cache) == (Outcome(0.0, gone=True), 0)


@pytest.mark.parametrize("metadata", [{"uid": "predecessor", **DELETED}, None])
async def test_a_read_that_does_not_show_a_new_object_yet_does_not_end_its_loop(
    metadata: dict[str, Any] | None,
) -> None:
    kube = KubeMemory() if metadata is None else stored(**metadata)
    before, cache = copy.deepcopy(kube.objects), LoopCache(uid=UID)

    found = [await step(kube, lambda _: world(), cache) for _ in range(4)]

    assert [(outcome.gone, passes) for outcome, passes in found] == 4 * [(False, 0)]
    assert found[0][0].delay < found[-1][0].delay <= 1.1 * SETTINGS.backoff_max_seconds
    assert kube.objects == before
    kube.objects = stored().objects
    outcome, passes = await step(kube, lambda _: world(), cache)
    assert (outcome.gone, passes, cache.failures) == (False, 1, 0)
    assert condition(kube, "Ready") == ("True", "Consuming")


async def test_the_copy_of_a_predecessor_does_not_end_the_loop_of_a_new_object() -> None:
    before, kube, observed = stored(uid="predecessor", **DELETED), stored(), Observed(lambda _: world())
    reconciler = Reconciler(
        cast(Cluster, kube),
        cast(Observer, observed),
        SETTINGS,
        OperatorMetrics(),
        lambda resource: None,
        clock=lambda: NOW,
        reader=cast(Reader, before),
    )

    outcome = await reconciler.step("default", NAME, LoopCache(uid=UID))

    assert (outcome.gone, observed.passes) == (False, 1)
    assert condition(kube, "Ready") == ("True", "Consuming")


async def test_the_loop_of_an_object_that_nobody_finds_any_more_ends_after_a_while() -> None:
    kube, cache, metrics, now = KubeMemory(), LoopCache(uid=UID), OperatorMetrics(), NOW
    reconciler = Reconciler(
        cast(Cluster, kube),
        cast(Observer, Observed(lambda _: world())),
        SETTINGS,
        metrics,
        lambda resource: None,
        clock=lambda: now,
    )
    assert not (await reconciler.step("default", NAME, cache)).gone
    now += ABSENT_SECONDS
    assert not (await reconciler.step("default", NAME, cache)).gone
    now += 1

    assert (await reconciler.step("default", NAME, cache)).gone
    assert metrics.oldest_pass() == 0.0


async def test_a_kind_that_is_not_served_ends_no_loop_and_counts_as_failed() -> None:
    kube, cache, metrics = stored(), LoopCache(), OperatorMetrics()
    await step(kube, lambda _: world(), cache)

    async def not_served(*_: Any) -> None:
        raise KindMissing(404, "404", "404 page not found")

    kube.get = kube.patch = not_served
    reconciler = Reconciler(
        cast(Cluster, kube), cast(Observer, Observed(lambda _: world())), SETTINGS, metrics, lambda of: None
    )
    outcome = await reconciler.step("default", NAME, cache)

    assert not outcome.gone
    assert cache.failing_since is not None
    assert metrics.failing_seconds() > 0.0


async def test_a_pass_whose_status_is_always_outdated_has_failed() -> None:
    kube, cache, metrics = stored(), LoopCache(), OperatorMetrics()

    async def outdated(*_: Any) -> None:
        raise KubeError(409, "Conflict", "the object has been modified")

    kube.patch = outdated
    observed = Observed(lambda _: world())
    reconciler = Reconciler(cast(Cluster, kube), cast(Observer, observed), SETTINGS, metrics, lambda of: None)
    outcome = await reconciler.step("default", NAME, cache)

    assert observed.passes == MAX_STEPS
    assert not outcome.gone
    assert cache.failing_since is not None
    assert metrics.failing_seconds() > 0.0


async def test_a_claim_that_cannot_be_checked_is_told_by_an_event_and_nothing_else_is_written() -> None:
    class Forbidding(KubeMemory):
        async def get(self, kind: Kind, namespace: str, name: str) -> Manifest | None:
            if kind.kind == "Lease":
                raise KubeError(403, "Forbidden", "may not")
            return await super().get(kind, namespace, name)

    kube = Forbidding(stored(annotations={ANNOTATION_OPERATOR: "far/lease"}).objects)
    before, cache = copy.deepcopy(kube.objects["TablestoreTunnel", NAME]), LoopCache()
    metrics = OperatorMetrics()
    for _ in range(3):
        outcome, passes = await step(kube, lambda _: world(), cache, metrics)

    assert (outcome, passes) == (Outcome(SETTINGS.poll_seconds, elsewhere=True, in_doubt=True), 0)
    place = {"namespace": "default", "name": NAME}
    assert metrics.registry.get_sample_value("ots_tunnel_claim_unreadable", place) == 1.0
    assert kube.objects["TablestoreTunnel", NAME] == before
    (event,) = (item for (kind, _), item in kube.objects.items() if kind == "Event")
    assert (event["type"], event["reason"]) == ("Warning", "ClaimUnreadable")
    assert "'far/lease'" in event["message"]
    assert "remove the annotation" in event["message"]


async def test_the_loop_ends_with_an_object_that_went_with_its_definition() -> None:
    kube, cache = KubeMemory(), LoopCache()
    cache.forgotten = True

    async def not_served(*_: Any) -> None:
        if len(asked) > 1:
            raise KindMissing(404, "404", "404 page not found")
        asked.append("the copy")

    asked = ["nothing"]
    kube.get = not_served

    assert await step(kube, lambda _: world(), cache) == (Outcome(0.0, gone=True), 0)


@pytest.mark.parametrize("when", ["before the pass", "during the pass"])
async def test_a_loop_that_outlives_its_object_leaves_nothing_for_the_liveness_probe(when: str) -> None:
    cache = LoopCache(uid=UID, forgotten=when == "before the pass")

    class Refusing(KubeMemory):
        async def get(self, kind: Kind, namespace: str, name: str) -> Manifest | None:
            cache.forgotten = True
            raise KubeError(500, "InternalError", "etcd")

    kube, metrics = Refusing(), OperatorMetrics()
    observed = cast(Observer, Observed(lambda _: world()))
    reconciler = Reconciler(cast(Cluster, kube), observed, SETTINGS, metrics, lambda resource: None)

    await reconciler.step("default", NAME, cache)

    # kopf may cancel the loop now
    assert metrics.oldest_pass() == 0.0
    assert metrics.failing_seconds() == 0.0
    assert (await reconciler.step("default", NAME, cache)).gone


async def test_the_finalizer_is_written_before_anything_else() -> None:
    kube = stored(finalizers=["others/finalizer"])
    found: list[list[str]] = []

    def look(_: Resource) -> World:
        found.append(list(kube.objects["TablestoreTunnel", NAME]["metadata"]["finalizers"]))
        return world()

    _, passes = await step(kube, look)

    assert (found, passes) == ([["others/finalizer", FINALIZER]], 1)


@pytest.mark.parametrize(("status", "reason", "tries"), [(409, "Conflict", MAX_STEPS), (500, "InternalError", 1)])
async def test_nothing_is_done_for_an_object_without_the_finalizer(status: int, reason: str, tries: int) -> None:
    kube, cache = stored(finalizers=[]), LoopCache()
    tried = 0

    async def refuse(kind: Kind, *_: Any) -> None:
        nonlocal tried
        tried += kind is TUNNEL
        raise KubeError(status, reason, "refused")

    kube.patch = refuse
    outcome, passes = await step(kube, lambda _: world(), cache)

    assert (outcome.gone, passes, tried) == (False, 0, tries)
    assert cache.failing_since == NOW


async def test_an_unexpected_error_makes_the_status_unknown_and_is_logged_with_the_object(
    caplog: pytest.LogCaptureFixture,
) -> None:
    kube, cache = stored(), LoopCache()
    await step(kube, lambda _: world(), cache)
    before = dict(kube.objects["TablestoreTunnel", NAME]["status"])

    def fail(_: Resource) -> World:
        raise RuntimeError("surprise")

    outcome, _ = await step(kube, fail, cache)

    assert not outcome.gone
    after = kube.objects["TablestoreTunnel", NAME]["status"]
    assert condition(kube, "Ready") == ("Unknown", "InternalError")
    assert {item["status"] for item in after["conditions"]} == {"Unknown"}
    assert (after["lag"], after["channels"]) == (before["lag"], before["channels"])
    assert after["observedTime"] == timestamp(NOW)
    assert "InternalError" in {item.get("reason") for (kind, _), item in kube.objects.items() if kind == "Event"}
    (line,) = (vars(record) for record in caplog.records if record.levelno == logging.ERROR)
    assert (line["action"], line["namespace"], line["object"]) == ("pass_failed", "default", NAME)
    assert "surprise" in line["error"]
    await step(kube, lambda _: world(), cache)
    assert condition(kube, "Ready") == ("True", "Consuming")


async def test_a_failed_pass_whose_report_fails_unexpectedly_ends_no_loop(caplog: pytest.LogCaptureFixture) -> None:
    kube, cache = stored(), LoopCache()
    await step(kube, lambda _: world(), cache)

    def fail(_: Resource) -> World:
        # nobody knows what such a status holds
        cache.body = {**(cache.body or {}), "status": {"conditions": ["not a condition"]}}
        raise RuntimeError("surprise")

    outcome, _ = await step(kube, fail, cache)

    assert not outcome.gone
    assert cache.failures == 1
    errors = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert errors == ["a pass failed", "a failed pass could not be reported"]


@pytest.mark.parametrize(("status", "shown"), [(403, 1), (500, 3), (0, 3), (429, 3)])
async def test_an_error_that_may_be_over_soon_is_shown_only_when_it_lasts(status: int, shown: int) -> None:
    kube, cache = stored(), LoopCache()
    await step(kube, lambda _: world(), cache)
    observed, clock = Observed(lambda _: world()), [NOW]

    def refuse(_: Resource) -> World:
        raise KubeError(status, "Refused", "may not read Secrets")

    observed.find = refuse
    metrics = OperatorMetrics()
    reconciler = Reconciler(
        cast(Cluster, kube), cast(Observer, observed), SETTINGS, metrics, lambda of: None, lambda: clock[-1]
    )
    seen = []
    for later in (0.0, 5.0, SETTINGS.unknown_seconds):
        clock.append(NOW + later)
        await reconciler.step("default", NAME, cache)
        seen.append(condition(kube, "Ready"))

    assert seen == [("True", "Consuming")] * (shown - 1) + [("Unknown", "ApiServerRefused")] * (4 - shown)
    # a right that is missing is no reason to start the process again: the only object would do so every 15 minutes
    assert (metrics.failing_seconds() > 0) == (status != 403)


async def test_an_object_that_this_release_cannot_read_is_no_reason_to_start_the_process_again() -> None:
    kube, cache, metrics = stored(), LoopCache(), OperatorMetrics()
    kube.objects["TablestoreTunnel", NAME]["spec"] = {"source": "of another release"}

    await step(kube, lambda _: world(), cache, metrics)

    assert condition(kube, "Ready") == ("Unknown", "SpecUnreadable")
    assert metrics.failing_seconds() == 0.0


class Blind(KubeMemory):
    """An API server whose object nobody can read."""

    async def get(self, kind: Kind, namespace: str, name: str) -> Manifest | None:
        raise StaleCopy(0, "Stale", "no sign of tablestoretunnels for 40 s")


async def test_a_failed_pass_writes_nothing_about_an_object_that_another_operator_serves() -> None:
    kube, cache = stored(annotations={ANNOTATION_OPERATOR: "far/lease"}), LoopCache()
    kube.objects["Lease", "lease"] = {"metadata": {"name": "lease", "namespace": "far", "resourceVersion": "1"}}
    before = copy.deepcopy(kube.objects)

    for each in (kube, Blind(kube.objects)):
        await step(each, lambda _: world(), cache)

    assert kube.objects == before


async def test_a_failed_pass_right_after_a_recovery_makes_the_status_unknown_again() -> None:
    kube, cache = stored(), LoopCache()
    shown = []
    for each in (kube, Blind(kube.objects)) * 2:
        await step(each, lambda _: world(), cache)
        shown.append(condition(kube, "Ready")[0])

    assert shown == ["True", "Unknown", "True", "Unknown"]


async def test_what_is_completed_stays_so_while_nothing_can_be_observed() -> None:
    kube = stored()
    final = {"type": "Completed", "status": "True", "reason": "EndTimeReached", "lastTransitionTime": "t"}
    kube.objects["TablestoreTunnel", NAME]["status"] = recorded(conditions=[final])

    def fail(_: Resource) -> World:
        raise RuntimeError("surprise")

    await step(kube, fail)

    assert condition(kube, "Completed") == ("True", "EndTimeReached")


async def test_a_refusing_api_server_fails_the_pass_and_not_the_loop() -> None:
    kube = stored()
    kube.refusal = KubeError(403, "Forbidden", "may not")

    outcome, passes = await step(kube, lambda _: world())

    assert (outcome.gone, passes) == (False, 1)


async def test_an_object_of_another_release_says_that_it_cannot_be_read() -> None:
    kube = stored()
    kube.objects["TablestoreTunnel", NAME]["spec"] = {"source": 1}

    outcome, passes = await step(kube, lambda _: world())

    assert (outcome.gone, passes) == (False, 0)
    assert condition(kube, "Ready") == ("Unknown", "SpecUnreadable")
    assert condition(kube, "Stalled") == ("True", "SpecUnreadable")


async def test_after_a_change_by_somebody_else_the_object_is_read_again() -> None:
    model, cache = ClusterModel(), LoopCache()
    body = tunnel_object()
    body["metadata"] |= {"uid": UID, "namespace": "default", "generation": 1, "finalizers": [FINALIZER]}
    model.put(TUNNEL, body | {"status": recorded()})

    def edited_meanwhile(of: Resource) -> World:
        if cache.version == "2":
            model.put(TUNNEL, model.objects[TUNNEL, "default", NAME])
        return world(of)

    observed = Observed(edited_meanwhile)
    reconciler = Reconciler(
        model, cast(Observer, observed), SETTINGS, OperatorMetrics(), lambda resource: None, clock=lambda: NOW
    )
    outcome = await reconciler.step("default", NAME, cache)

    assert observed.passes == 2
    assert outcome.delay >= SETTINGS.poll_seconds
    assert model.objects[TUNNEL, "default", NAME]["status"]["phase"] == "Streaming"


async def test_a_decision_that_was_refused_as_outdated_is_not_repeated_from_the_copy_of_a_watch() -> None:
    model, cache = ClusterModel(), LoopCache()
    body = tunnel_object()
    body["metadata"] |= {"uid": UID, "namespace": "default", "generation": 1, "finalizers": [FINALIZER]}
    model.put(TUNNEL, body | {"status": recorded()})
    copied = copy.deepcopy(model.objects[TUNNEL, "default", NAME])
    model.put(TUNNEL, model.objects[TUNNEL, "default", NAME])

    class LateWatch:
        async def get(self, kind: Kind, namespace: str, name: str) -> Manifest | None:
            return copy.deepcopy(copied) if kind is TUNNEL else await model.get(kind, namespace, name)

    observed = Observed(world)
    reconciler = Reconciler(
        model,
        cast(Observer, observed),
        SETTINGS,
        OperatorMetrics(),
        lambda resource: None,
        clock=lambda: NOW,
        reader=cast(Reader, LateWatch()),
    )
    await reconciler.step("default", NAME, cache)

    assert observed.passes == 2
    assert model.objects[TUNNEL, "default", NAME]["status"]["phase"] == "Streaming"


async def test_passes_over_many_objects_take_turns() -> None:
    running, most = 0, 0

    class Slow:
        async def observe(self, resource: Resource, cache: LoopCache, **_: Any) -> World:
            nonlocal running, most
            running += 1
            most = max(most, running)
            for _ in range(5):
                await asyncio.sleep(0)
            running -= 1
            return world()

    settings = replace(SETTINGS, passes=3)
    reconciler = Reconciler(
        cast(Cluster, stored()), cast(Observer, Slow()), settings, OperatorMetrics(), lambda of: None, lambda: NOW
    )
    await asyncio.gather(*(reconciler.step("default", NAME, LoopCache()) for _ in range(12)))

    assert most == 3


async def test_an_object_is_validated_once_for_each_generation(monkeypatch: pytest.MonkeyPatch) -> None:
    kube, cache, validated = stored(generation=1), LoopCache(), []
    validate = TablestoreTunnel.from_body

    def count(body: Any) -> TablestoreTunnel:
        validated.append(body)
        return validate(body)

    monkeypatch.setattr(TablestoreTunnel, "from_body", count)
    for _ in range(3):
        await step(kube, world, cache)
    kube.objects["TablestoreTunnel", NAME]["metadata"]["generation"] = 2
    await step(kube, world, cache)

    assert len(validated) == 2
