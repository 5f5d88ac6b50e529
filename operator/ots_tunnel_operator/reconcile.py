"""The loop of one object: observe, plan, apply, report. Level-based: every pass starts from what is there.

Nothing escapes a pass but cancellation: whatever goes wrong becomes a condition, an event and a pause.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from ots_tunnel.config import describe
from ots_tunnel.protocol.backoff import Backoff
from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.apply import ActionFailed, Applier, PredecessorThere
from ots_tunnel_operator.assess.assessment import assess
from ots_tunnel_operator.diagnosis import internal_problem, kube_problem, shortened
from ots_tunnel_operator.kube.client import Kube, KubeError
from ots_tunnel_operator.kube.kinds import TUNNEL
from ots_tunnel_operator.log_actions import LogAction
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.metrics import OperatorMetrics
from ots_tunnel_operator.observe.observer import Observer
from ots_tunnel_operator.plan.actions import Plan, Wait
from ots_tunnel_operator.plan.planner import plan
from ots_tunnel_operator.reasons import Reason
from ots_tunnel_operator.report.reporter import Reporter
from ots_tunnel_operator.settings import Settings
from ots_tunnel_operator.world import Competitor, Resource, World

logger = logging.getLogger(__name__)

#: Steps one pass takes before it lets others in; a new object needs six.
MAX_STEPS = 12

#: Waits that end on the service's or Spark's side, of which no watch tells.
POLLED_WAITS = frozenset(
    {
        Reason.TUNNEL_INITIALISING,
        Reason.CREATING_TUNNEL,
        Reason.CREATING_DESTINATION,
        Reason.SNAPSHOT_RUNNING,
        Reason.PREDECESSOR_GOING,
    }
)

#: Problems that end without us and of whose end no watch tells: a growing pause would only show them for longer.
SPARK_PROBLEMS = frozenset({Reason.SPARK_OPERATOR_MISSING, Reason.SNAPSHOT_RETRYING})


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a pass ended: seconds until the next one; `gone` when there is no object any more."""

    delay: float
    gone: bool = False


class Reconciler:
    """Passes over one object.

    Args:
        kube: the API server.
        observer: reads the world.
        settings: of the process.
        metrics: what the process counts.
        elder: who else is on the same tunnel and elder; asked in every pass.
        clock: Unix seconds.
    """

    def __init__(
        self,
        kube: Kube,
        observer: Observer,
        settings: Settings,
        metrics: OperatorMetrics,
        elder: Callable[[Resource], Competitor | None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._kube = kube
        self._observer = observer
        self._settings = settings
        self._metrics = metrics
        self._elder = elder
        self._clock = clock
        self._reporter = Reporter(kube, settings, metrics)
        self._backoff = Backoff(settings.backoff_seconds, 2.0, settings.backoff_max_seconds, 0.1)

    async def run(self, namespace: str, name: str, cache: LoopCache) -> None:
        """Pass after pass until the object is gone or the task is cancelled."""
        while True:
            cache.wake.clear()
            outcome = await self.step(namespace, name, cache)
            if outcome.gone:
                return
            # events come in bursts: one pass sees them all
            await asyncio.sleep(min(self._settings.gap_seconds, outcome.delay))
            try:
                async with asyncio.timeout(max(0.0, outcome.delay - self._settings.gap_seconds)):
                    await cache.wake.wait()
            except TimeoutError:
                continue

    async def step(self, namespace: str, name: str, cache: LoopCache) -> Outcome:
        """One pass; raises nothing but cancellation."""
        async with cache.lock:
            began = time.monotonic()
            try:
                outcome = await self._pass(namespace, name, cache)
            except KubeError as error:
                outcome = self._failed(cache, kube_problem(error).reason)
                logger.warning("the API server refused a call of a pass", extra=_where(namespace, name, error))
            except Exception as error:
                # the edge of the loop: the object keeps its last status, the log has the traceback
                outcome = self._failed(cache, Reason.INTERNAL_ERROR)
                logger.exception("a pass failed", extra=_where(namespace, name, error))
            if outcome.gone:
                # nobody looks at it any more, and the liveness probe is not to wait for that
                self._metrics.forget(namespace, name)
            else:
                self._metrics.passed(namespace, name, time.monotonic() - began)
            return outcome

    async def _pass(self, namespace: str, name: str, cache: LoopCache) -> Outcome:
        for _ in range(MAX_STEPS):
            body = await self._kube.get(TUNNEL, namespace, name)
            if body is None or body["metadata"].get("deletionTimestamp"):
                return Outcome(0.0, gone=True)
            resource = self._read(body)
            if resource is None:
                return self._failed(cache, Reason.INVALID_SPEC)
            world = await self._observer.observe(resource, cache, elder=self._elder(resource), now=self._clock())
            assessment = assess(world, spark_missing_seconds=self._settings.spark_missing_seconds)
            decided = plan(world, assessment, self._settings)
            if decided.again:
                # what comes may take a minute; and every condition is there before anything else is written
                await self._reporter.report(world, assessment, decided, cache)
            decided, changed = await self._act(world, decided, cache)
            if decided.again and decided.problem is None:
                continue
            await self._reporter.report(await self._refreshed(world, changed), assessment, decided, cache)
            return self._outcome(decided, cache)
        return Outcome(self._settings.gap_seconds)

    def _read(self, body: Mapping[str, Any]) -> Resource | None:
        try:
            return Resource(TablestoreTunnel.from_body(body), body.get("status") or {})
        except ValidationError as error:
            # the CRD and this release disagree: no status can be built, but others go on
            logger.error(
                "an object does not fit the CRD of this release",
                extra={
                    "action": LogAction.OBJECT_UNREADABLE,
                    "namespace": body["metadata"].get("namespace"),
                    "object": body["metadata"].get("name"),
                    "error": shortened(describe(error)),
                },
            )
            return None

    async def _act(self, world: World, decided: Plan, cache: LoopCache) -> tuple[Plan, bool]:
        """Carry out the actions; the plan with what went wrong, and whether the status was recorded to."""
        applier = Applier(self._kube, world.resource, cache)
        changed = False
        try:
            for action in decided.actions:
                changed |= await applier.apply(action)
        except PredecessorThere as error:
            return replace(decided, wait=Wait(Reason.PREDECESSOR_GOING, str(error)), again=False), True
        except ActionFailed as error:
            return replace(decided, problem=error.problem, again=False), True
        except Exception as error:
            place = _where(world.resource.namespace, world.resource.name, error)
            logger.exception("an action failed", extra=place | {"action": LogAction.ACTION_FAILED})
            return replace(decided, problem=internal_problem(error), again=False), True
        return decided, changed

    async def _refreshed(self, world: World, changed: bool) -> World:
        """The world with the status as it is stored now: actions may have recorded into it."""
        if not changed:
            return world
        body = await self._kube.get(TUNNEL, world.resource.namespace, world.resource.name)
        resource = self._read(body) if body is not None else None
        return world if resource is None else replace(world, resource=replace(resource, object=world.resource.object))

    def _outcome(self, decided: Plan, cache: LoopCache) -> Outcome:
        if decided.problem is not None and decided.problem.reason not in SPARK_PROBLEMS:
            return self._failed(cache, decided.problem.reason)
        cache.failures = 0
        polled = decided.problem is None and decided.wait is not None and decided.wait.reason in POLLED_WAITS
        if polled:
            return Outcome(min(self._settings.wait_seconds, self._settings.poll_seconds))
        # not all loops at the same second, and never so early that a figure would miss its turn to be written
        delay = self._settings.poll_seconds * random.uniform(1.0, 1.05)
        if cache.tunnel is not None:
            # an event in between does not put the next look at the tunnel off
            delay += cache.tunnel_time - self._clock()
        return Outcome(max(delay, self._settings.gap_seconds))

    def _failed(self, cache: LoopCache, reason: Reason) -> Outcome:
        self._metrics.failed(str(reason))
        delay = self._backoff.delay(cache.failures, random.random())
        cache.failures += 1
        return Outcome(max(delay, self._settings.gap_seconds))


def _where(namespace: str, name: str, error: Exception) -> dict[str, str]:
    return {
        "action": LogAction.PASS_FAILED,
        "namespace": namespace,
        "object": name,
        "error": f"{type(error).__name__}: {shortened(str(error))}",
    }
