"""The loop of one object: observe, assess, plan, apply, report (docs/architecture.md 2).

Theory of operation
-------------------
One daemon per object runs passes. A pass is level-based: it starts from what exists, never from what the pass before
it did, so it may be interrupted anywhere and repeated. One pass has up to MAX_STEPS steps:

    observe   read object, children, pods, reports, source, sink, tunnel        -> World
    assess    derive lag, problems, snapshot, completion                        -> Assessment
    plan      decide actions, wait and problem                                  -> Plan
    report    before actions that may take a minute: the status names them, or still why they failed the last time
    apply     carry out the actions in order; the first failure ends the step
    report    write status and events, if they changed

A plan with `again` makes another step at once, because its actions changed the world. A new object needs five steps:
destination, its record, tunnel, its record, the Deployment. MAX_STEPS is more than twice that; it bounds the time for
which a loop that never settles holds its object's lock.

A loop ends when its object is being deleted, or when a watch has told that it is gone. A read alone does not prove
that: the copy may still hold a predecessor of the same name, and nobody starts the loop of an object twice.

Only cancellation leaves a pass. A failed action becomes a problem of the plan. A pass that could not observe its object
(a refusal or an unexpected error, or a spec that this release cannot read) makes every condition Unknown: at once, or,
where the error may be over in the next pass, when passes have failed for Settings.unknown_seconds. The pause until the
next pass is, by the first case that applies:

    a problem or an error               1 s, doubled up to 60 s, +- 10 % (Settings.backoff_*)
    a wait that no watch reports        2 s (POLLED_WAITS, Settings.wait_seconds)
    otherwise                           15 s to 15.75 s after the last DescribeTunnel (Settings.poll_seconds)

and at least 1 s (Settings.gap_seconds). Within it an event of the object or of a child starts the next pass at once,
but not before the gap: a rollout causes dozens of pod events in a second, and one pass sees them all.

Example: `kubectl scale --replicas=3` changes the generation; the watch wakes the loop; observe finds a Deployment of 1;
plan applies it with 3 and waits (Scaling); report writes Progressing=True. Each new pod wakes the loop again until all
three are ready and the status says Ready=True.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from pydantic import ValidationError

from ots_tunnel.config import describe
from ots_tunnel.protocol.backoff import Backoff
from ots_tunnel_operator.apply import ActionFailed, Applier, PredecessorThere
from ots_tunnel_operator.assess.assessment import assess
from ots_tunnel_operator.assess.kept_reports import observed_time
from ots_tunnel_operator.assess.observed import find_unobserved
from ots_tunnel_operator.diagnosis import internal_problem, kube_problem, shortened, spec_unreadable
from ots_tunnel_operator.kube.claims import Claim, Claims
from ots_tunnel_operator.kube.client import KubeError
from ots_tunnel_operator.kube.cluster import Cluster, Reader
from ots_tunnel_operator.kube.kinds import TUNNEL, Manifest
from ots_tunnel_operator.kube.reflector import StaleCopy
from ots_tunnel_operator.log_actions import LogAction
from ots_tunnel_operator.loop.own_object import OwnObject, parsed
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.metrics import OperatorMetrics
from ots_tunnel_operator.observe.observer import Observer
from ots_tunnel_operator.plan.actions import Plan, RecordStatus, Wait
from ots_tunnel_operator.plan.planner import plan
from ots_tunnel_operator.reasons import Reason
from ots_tunnel_operator.report.conditions import Notice, record_notices
from ots_tunnel_operator.report.reporter import Reporter
from ots_tunnel_operator.settings import Settings
from ots_tunnel_operator.status_write import StatusOutdated
from ots_tunnel_operator.world import Competitor, Reference, Resource, World

logger = logging.getLogger(__name__)

#: Most steps of one pass; a new object needs five.
MAX_STEPS = 12

#: Seconds after which the event about a claim that cannot be checked is repeated; the API server keeps one for an hour.
DOUBT_SECONDS = 3000.0

#: Seconds after which an object is taken for gone that no read finds, although no watch has told that it was deleted.
ABSENT_SECONDS = 300.0

#: Waits whose end no watch reports: it happens in the service or in Spark.
POLLED_WAITS = frozenset(
    {
        Reason.TUNNEL_INITIALISING,
        Reason.CREATING_TUNNEL,
        Reason.CREATING_DESTINATION,
        Reason.SNAPSHOT_RUNNING,
        Reason.PREDECESSOR_GOING,
    }
)

#: Problems that end by themselves and whose end no watch reports: growing pauses would only show them for longer.
SPARK_PROBLEMS = frozenset({Reason.SPARK_OPERATOR_MISSING, Reason.SNAPSHOT_RETRYING})


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a pass: seconds until the next one; `gone` where the object no longer exists."""

    delay: float
    gone: bool = False


class Reconciler:
    """Passes over objects, at most Settings.passes at once; it holds no state of a single object.

    Args:
        kube: the API server.
        observer: reads the world.
        settings: of the process.
        metrics: of the process.
        elder: the eldest other object on the same tunnel, or None; called in every step.
        clock: Unix seconds.
        reader: what watches keep of the cluster; None reads from the API server every time.
        entropy: randomness of the pauses.
    """

    def __init__(
        self,
        kube: Cluster,
        observer: Observer,
        settings: Settings,
        metrics: OperatorMetrics,
        elder: Callable[[Resource], Competitor | None],
        clock: Callable[[], float] = time.time,
        *,
        reader: Reader | None = None,
        entropy: random.Random | None = None,
    ) -> None:
        self._kube = kube
        self.claims = Claims(kube, settings.lease)
        self._reader = reader or kube
        self._own = OwnObject(kube, self._reader)
        self._turns = asyncio.Semaphore(settings.passes)
        self._entropy = entropy or random.Random()
        self._observer = observer
        self._settings = settings
        self._metrics = metrics
        self._elder = elder
        self._clock = clock
        self._reporter = Reporter(kube, settings, metrics)
        self._backoff = Backoff(settings.backoff_seconds, 2.0, settings.backoff_max_seconds, 0.1)

    async def run(self, namespace: str, name: str, cache: LoopCache) -> None:
        """Run passes until the object is gone or the task is cancelled."""
        while True:
            cache.wake.clear()
            outcome = await self.step(namespace, name, cache)
            if outcome.gone:
                return
            # events come in bursts, and one pass sees them all
            await asyncio.sleep(min(self._settings.gap_seconds, outcome.delay))
            try:
                async with asyncio.timeout(max(0.0, outcome.delay - self._settings.gap_seconds)):
                    await cache.wake.wait()
            except TimeoutError:
                continue

    async def step(self, namespace: str, name: str, cache: LoopCache) -> Outcome:
        """Run one pass; only cancellation is raised."""
        async with cache.lock, self._turns:
            began, started = time.monotonic(), self._clock()
            try:
                outcome = await self._pass(namespace, name, cache)
            except Exception as error:
                # a bug, too, is told in the status of this object, and stops neither its loop nor the others
                outcome = await self._failed(namespace, name, cache, error, started)
            seconds = time.monotonic() - began
            if outcome.gone:
                # the liveness probe must not wait for passes over an object that no longer exists
                self._metrics.forget(namespace, name)
            elif cache.failing_since is None:
                self._metrics.passed(namespace, name, seconds)
            else:
                self._metrics.tried(namespace, name, seconds)
            return outcome

    async def _failed(self, namespace: str, name: str, cache: LoopCache, error: Exception, started: float) -> Outcome:
        """The end of a pass that could not observe its object: after a while, or at once, the object shows it."""
        where = _where(namespace, name, error)
        match error:
            case KubeError():
                problem = kube_problem(error)
                logger.warning("the API server refused a call of a pass", extra=where)
            case ValidationError():
                # CRD and release disagree; other objects are not affected
                problem = spec_unreadable(describe(error))
                logger.error(
                    "an object does not fit the CRD of this release",
                    extra=where | {"action": LogAction.OBJECT_UNREADABLE},
                )
            case _:
                # the edge of the loop: the log has the traceback
                problem = internal_problem(error)
                logger.exception("a pass failed", extra=where)
        cache.failing_since = started if cache.failing_since is None else cache.failing_since
        now = self._clock()
        is_shown = not _is_passing(error) or now - cache.failing_since >= self._settings.unknown_seconds
        # the status of an object that another operator serves is that one's to write
        if is_shown and cache.body is not None and not self.claims.names_another(cache.body):
            try:
                await self._reporter.report_unobserved(cache.body, problem, cache, now)
            except (KubeError, StatusOutdated) as refused:
                cache.outdated = True
                logger.warning("a failed pass could not be reported", extra=_where(namespace, name, refused))
        return self._delayed_outcome(cache, problem.reason)

    async def _pass(self, namespace: str, name: str, cache: LoopCache) -> Outcome:
        refused = ""
        for _ in range(MAX_STEPS):
            body = await self._own.read(namespace, name, cache)
            if body is None:
                return self._absent_outcome(cache)
            if body["metadata"].get("deletionTimestamp"):
                return Outcome(0.0, gone=True)
            claim = await self.claims.claim(body)
            if claim is Claim.ELSEWHERE:
                await self._post_doubt(body, cache)
                cache.failing_since = None
                return Outcome(self._settings.poll_seconds)
            if claim is Claim.NEW:
                cache.outdated, refused = True, "its claim could not be read back"
                continue
            try:
                await self._own.hold(body, cache)
                outcome = await self._take_step(body, cache)
            except StatusOutdated as error:
                cache.outdated, refused = True, str(error)
                continue
            if outcome is not None:
                return outcome
            refused = ""
        if refused:
            # nothing of this pass can be read in the status
            raise KubeError(409, "Conflict", f"the object has changed in each of {MAX_STEPS} steps: {refused}")
        return Outcome(self._settings.gap_seconds)

    async def _post_doubt(self, body: Manifest, cache: LoopCache) -> None:
        """Post that nobody can tell whether somebody serves the object: its status is not this operator's to write."""
        doubt = self.claims.doubt(body)
        if doubt:
            metadata = body["metadata"]
            of = Reference(metadata["namespace"], metadata["name"], str(metadata.get("uid") or ""))
            notice = Notice("Warning", "ClaimUnreadable", doubt)
            await self._reporter.post(of, notice, cache, self._clock(), every=DOUBT_SECONDS)

    def _absent_outcome(self, cache: LoopCache) -> Outcome:
        """The end of a pass that did not find its object: it is gone, or no read shows it yet.

        The watch that started the loop may be ahead of the one that keeps the copies, and a loop that has ended is
        never started again.
        """
        now = self._clock()
        cache.absent_since = now if cache.absent_since is None else cache.absent_since
        if cache.forgotten or now - cache.absent_since > ABSENT_SECONDS:
            return Outcome(0.0, gone=True)
        delay = self._backoff.delay(cache.failures, self._entropy.random())
        cache.failures += 1
        return Outcome(max(delay, self._settings.gap_seconds))

    async def _take_step(self, body: Manifest, cache: LoopCache) -> Outcome | None:
        """One step; None where another one follows at once.

        Raises:
            StatusOutdated: the object has changed since it was read.
            KubeError: the API server refused a read or the status.
            ValidationError: this release cannot read the object.
        """
        resource = parsed(body, cache)
        world = await self._observer.observe(resource, cache, elder=self._elder(resource), now=self._clock())
        assessment = assess(world, spark_missing_seconds=self._settings.spark_missing_seconds)
        decided = plan(world, assessment, self._settings)
        if decided.again and not cache.action_failed:
            # the actions may take a minute, and every condition has to exist before anything else is written
            await self._reporter.report(world, assessment, decided, cache)
        tried = decided
        decided, changed = await self._apply_actions(world, tried, cache)
        cache.action_failed = decided is not tried
        if decided.again and decided.problem is None:
            return None
        await self._reporter.report(await self._refreshed(world, changed), assessment, decided, cache)
        cache.failing_since = None
        if find_unobserved(world) is None:
            cache.observed_time = observed_time(world)
        return self._outcome(decided, cache)

    async def _apply_actions(self, world: World, decided: Plan, cache: LoopCache) -> tuple[Plan, bool]:
        """Carry out the actions; the plan with the problem of a failed one, and whether anything was changed."""
        applier = Applier(self._kube, world.resource, cache, self._reader)
        changed = False
        try:
            for action in decided.actions:
                changed |= await applier.apply(action)
                if isinstance(action, RecordStatus):
                    await self._post_record(world, action, cache)
        except StatusOutdated:
            raise
        except PredecessorThere as error:
            return replace(decided, wait=Wait(Reason.PREDECESSOR_GOING, str(error)), again=False), True
        except ActionFailed as error:
            return replace(decided, problem=error.problem, again=False), True
        except Exception as error:
            # a bug in one action is shown as a problem of the object; the pass ends in order
            place = _where(world.resource.namespace, world.resource.name, error)
            logger.exception("an action failed", extra=place | {"action": LogAction.ACTION_FAILED})
            return replace(decided, problem=internal_problem(error), again=False), True
        return decided, changed

    async def _post_record(self, world: World, action: RecordStatus, cache: LoopCache) -> None:
        for notice in record_notices(action.change, world.resource.status):
            await self._reporter.post(world.resource, notice, cache, world.now)

    async def _refreshed(self, world: World, changed: bool) -> World:
        """The world with the status as stored now, because actions may have recorded into it."""
        if not changed:
            return world
        body = await self._reader.get(TUNNEL, world.resource.namespace, world.resource.name)
        if body is None:
            return world
        return replace(world, resource=replace(world.resource, status=body.get("status") or {}))

    def _outcome(self, decided: Plan, cache: LoopCache) -> Outcome:
        if decided.problem is not None and decided.problem.reason not in SPARK_PROBLEMS:
            return self._delayed_outcome(cache, decided.problem.reason)
        cache.failures = 0
        polled = decided.problem is None and decided.wait is not None and decided.wait.reason in POLLED_WAITS
        if polled:
            return Outcome(min(self._settings.wait_seconds, self._settings.poll_seconds))
        # loops spread over time; never below a poll, or a figure would wait for the pass after the next
        delay = self._settings.poll_seconds * self._entropy.uniform(1.0, 1.05)
        if cache.tunnel is not None:
            # an event in between must not delay the next DescribeTunnel
            delay += cache.tunnel_time - self._clock()
        return Outcome(max(delay, self._settings.gap_seconds))

    def _delayed_outcome(self, cache: LoopCache, reason: Reason) -> Outcome:
        self._metrics.failed(str(reason))
        delay = self._backoff.delay(cache.failures, self._entropy.random())
        cache.failures += 1
        return Outcome(max(delay, self._settings.gap_seconds))


def _is_passing(error: Exception) -> bool:
    """Whether an error of the API server may be over in the next pass."""
    if not isinstance(error, KubeError) or isinstance(error, StaleCopy):
        return False
    return error.status in (0, 409, 429) or error.status >= 500


def _where(namespace: str, name: str, error: Exception) -> dict[str, str]:
    return {
        "action": LogAction.PASS_FAILED,
        "namespace": namespace,
        "object": name,
        "error": f"{type(error).__name__}: {shortened(str(error))}",
    }
