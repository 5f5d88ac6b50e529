"""The loop of one object: observe, assess, plan, apply, report (docs/architecture.md 2).

Theory of operation
-------------------
One daemon per object runs passes. A pass is level-based: it starts from what exists, never from what the pass before
it did, so it may be interrupted anywhere and repeated. One pass has up to MAX_STEPS steps:

    observe   read object, children, pods, reports, source, sink, tunnel        -> World
    assess    derive lag, problems, snapshot, completion                        -> Assessment
    plan      decide actions, wait and problem                                  -> Plan
    report    before actions that may take a minute: the status names them, or still why they failed the last time, and
              has what the plan records first
    apply     carry out the actions in order; the first failure ends the step
    report    write status and events, if they changed

A plan with `again` makes another step at once, because its actions changed the world. A new object needs five steps:
destination, its record, tunnel, its record, the Deployment. MAX_STEPS is more than twice that; it bounds the time for
which a loop that never settles holds its object's lock.

A loop ends when its object is being deleted, or when a watch has told that it is gone. A read alone does not prove
that: the copy may still hold a predecessor of the same name, and nobody starts the loop of an object twice.

Only cancellation leaves a pass. A failed action becomes a problem of the plan. A pass that could not observe its object
is shown (`failed_pass`). `pace` says how long the pause until the next pass is; an event of the object or of a child
ends it early.

Example: `kubectl scale --replicas=3` changes the generation; the watch wakes the loop; observe finds a Deployment of 1;
plan applies it with 3 and waits (Scaling); report writes Progressing=True. Each new pod wakes the loop again until all
three are ready and the status says Ready=True.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable

from ots_tunnel_operator.kube.claims import Claim, Claims
from ots_tunnel_operator.kube.cluster import Cluster, Reader
from ots_tunnel_operator.kube.errors import KubeError
from ots_tunnel_operator.kube.kinds import Manifest
from ots_tunnel_operator.loop.failed_pass import FailedPass, is_answered
from ots_tunnel_operator.loop.one_step import OneStep
from ots_tunnel_operator.loop.own_object import OwnObject
from ots_tunnel_operator.loop.pace import Outcome, Pace
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.metrics import OperatorMetrics
from ots_tunnel_operator.observe.observer import Observer
from ots_tunnel_operator.report.notices import Notice
from ots_tunnel_operator.report.reporter import Reporter
from ots_tunnel_operator.settings import Settings
from ots_tunnel_operator.status_write import StatusOutdated
from ots_tunnel_operator.turns.passes import PassTurn
from ots_tunnel_operator.world.resource import Reference, Resource
from ots_tunnel_operator.world.world import Competitor

#: Most steps of one pass; a new object needs five.
MAX_STEPS = 12

#: Seconds after which the event about a claim that cannot be checked is repeated; the API server keeps one for an hour.
DOUBT_SECONDS = 3000.0


class Reconciler:
    """Passes over objects; it holds no state of a single object.

    At most Settings.passes run at once; those that wait for an instance do not count.

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
        reader = reader or kube
        reporter = Reporter(kube, settings, metrics)
        self.claims = Claims(kube, settings.lease)
        self._own = OwnObject(kube, reader)
        self._step = OneStep(kube, reader, observer, reporter, settings, elder, clock, metrics.acted)
        self._failed = FailedPass(reporter, self.claims, settings, clock)
        self._pace = Pace(settings, metrics, clock, entropy or random.Random())
        self._turns = asyncio.Semaphore(settings.passes)
        self._settings = settings
        self._metrics = metrics
        self._clock = clock
        self._reporter = reporter

    async def run(self, namespace: str, name: str, cache: LoopCache) -> None:
        """Run passes until the object is gone or the task is cancelled."""
        while True:
            cache.wake.clear()
            outcome = await self.step(namespace, name, cache)
            if outcome.gone:
                return
            await self._pause(outcome.delay, cache)

    async def _pause(self, delay: float, cache: LoopCache) -> None:
        """Wait until an event or for `delay` seconds; events come in bursts, and one pass sees those of a gap."""
        loop = asyncio.get_running_loop()
        earliest = loop.time() + min(self._settings.gap_seconds, delay)
        try:
            async with asyncio.timeout(delay):
                await cache.wake.wait()
        except TimeoutError:
            return
        await asyncio.sleep(max(0.0, earliest - loop.time()))

    async def step(self, namespace: str, name: str, cache: LoopCache) -> Outcome:
        """Run one pass; only cancellation is raised."""
        async with cache.lock, PassTurn(self._turns) as cache.turn:
            began, started = time.monotonic(), self._clock()
            cache.keep_time(started)
            answered = False
            try:
                outcome = await self._pass(namespace, name, cache)
            except Exception as error:
                # a bug, too, is told in the status of this object, and stops neither its loop nor the others
                problem = await self._failed.show(namespace, name, cache, error, started)
                outcome = self._pace.failed(problem, cache)
                answered = is_answered(error)
            seconds = time.monotonic() - began
            if outcome.gone or outcome.elsewhere or cache.forgotten:
                # the liveness probe must not wait for passes over an object that no longer exists, and of one that
                # another operator serves this one has no figures
                self._metrics.forget(namespace, name)
                if outcome.in_doubt:
                    self._metrics.doubted(namespace, name)
            elif answered or cache.failing_since is None:
                self._metrics.passed(namespace, name, seconds)
            else:
                self._metrics.tried(namespace, name, seconds)
            return outcome

    async def _pass(self, namespace: str, name: str, cache: LoopCache) -> Outcome:
        refused = ""
        for _ in range(MAX_STEPS):
            if cache.forgotten:
                return Outcome(0.0, gone=True)
            body = await self._own.read(namespace, name, cache)
            if body is None:
                return self._pace.absent(cache)
            if body["metadata"].get("deletionTimestamp"):
                return Outcome(0.0, gone=True)
            claim = await self.claims.claim(body)
            if claim is Claim.ELSEWHERE:
                in_doubt = await self._post_doubt(body, cache)
                cache.failing_since = None
                return Outcome(self._settings.poll_seconds, elsewhere=True, in_doubt=in_doubt)
            if claim is Claim.NEW:
                cache.outdated, refused = True, "its claim could not be read back"
                continue
            try:
                await self._own.hold(body, cache)
                decided = await self._step.take(body, cache)
            except StatusOutdated as error:
                cache.outdated, refused = True, str(error)
                continue
            if decided is not None:
                return self._pace.planned(decided, cache)
            refused = ""
        if refused:
            # nothing of this pass can be read in the status
            raise KubeError(409, "Conflict", f"the object has changed in each of {MAX_STEPS} steps: {refused}")
        return Outcome(self._settings.gap_seconds)

    async def _post_doubt(self, body: Manifest, cache: LoopCache) -> bool:
        """Post the doubt whether another operator serves the object, where there is one: its status is left alone."""
        doubt = self.claims.doubt(body)
        if doubt:
            metadata = body["metadata"]
            of = Reference(metadata["namespace"], metadata["name"], str(metadata.get("uid") or ""))
            notice = Notice("Warning", "ClaimUnreadable", doubt)
            await self._reporter.post(of, notice, cache, self._clock(), every=DOUBT_SECONDS)
        return bool(doubt)
