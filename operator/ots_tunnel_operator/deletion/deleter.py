"""Deletion of an object: what its policy deletes, then its release (docs/architecture.md 3.6).

The workers end first: they hand back their channels and store their last checkpoints, and no client is left. Retain
keeps the tunnel. Delete removes it if this operator created it, then the record of a snapshot. While an elder object is
on the tunnel, which then consumes it, the tunnel stays under Delete as well, and an event names that object. Children
with an owner are removed by garbage collection.

A deletion always ends. Whatever is in the way (credentials, endpoint, Secret, rights, a spec that this release cannot
read, an unexpected error) is told by an event at once. After Settings.delete_seconds (600 s), or at once with the
annotation of names.ANNOTATION_FORCE_DELETE, the object is released with another event, and the tunnel stays. Where it
waits for nothing but its workers, that is for their grace period and a minute; and workers whose grace period is longer
than the 600 s have it with a tunnel to be deleted as well, which then gets its own time after their end. The release
itself is tried until the finalizer is gone; a policy that is edited meanwhile is carried out first.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ots_tunnel.protocol.backoff import Backoff
from ots_tunnel_operator import names
from ots_tunnel_operator.deletion.obstacles import (
    Doubtful,
    Draining,
    Elsewhere,
    JustClaimed,
    NotYet,
    Obstacle,
    WorkerDraining,
)
from ots_tunnel_operator.deletion.policy import Policy
from ots_tunnel_operator.deletion.release import release
from ots_tunnel_operator.deletion.remains import Remains
from ots_tunnel_operator.diagnosis import shortened
from ots_tunnel_operator.kube.claims import Claim, Claims
from ots_tunnel_operator.kube.cluster import Cluster, Reader
from ots_tunnel_operator.kube.errors import KubeError
from ots_tunnel_operator.kube.kinds import TUNNEL
from ots_tunnel_operator.log_actions import LogAction
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.metrics import OperatorMetrics
from ots_tunnel_operator.report.notices import Notice
from ots_tunnel_operator.report.reporter import Reporter
from ots_tunnel_operator.settings import Settings
from ots_tunnel_operator.status_write import StatusOutdated
from ots_tunnel_operator.world.world import Competitor

logger = logging.getLogger(__name__)

#: Longest pause between two tries of a release, seconds.
RELEASE_SECONDS = 10.0


class Deleter:
    """Deletes what belongs to an object and releases it; every step may be repeated after a restart.

    Args:
        kube: the API server.
        settings: of the process.
        metrics: of the process.
        clock: Unix seconds.
        claims: of the process.
        entropy: randomness of the pauses.
        reader: what watches keep of the cluster; None reads from the API server every time.
        elder: the elder object on an object's tunnel, as the watch of the objects tells; None without one.
    """

    def __init__(
        self,
        kube: Cluster,
        settings: Settings,
        metrics: OperatorMetrics,
        clock: Callable[[], float] = time.time,
        *,
        claims: Claims | None = None,
        entropy: random.Random | None = None,
        reader: Reader | None = None,
        elder: Callable[[Mapping[str, Any]], Competitor | None] = lambda body: None,
    ) -> None:
        self._kube = kube
        self._policy = Policy(kube, settings, clock, reader)
        self._entropy = entropy or random.Random()
        longest = min(settings.backoff_max_seconds, RELEASE_SECONDS)
        self._backoff = Backoff(settings.backoff_seconds, 2.0, longest, 0.1)
        self._claims = claims or Claims(kube, settings.lease)
        self._settings = settings
        self._clock = clock
        self._reader = reader
        self._elder = elder
        self._reporter = Reporter(kube, settings, metrics)

    async def finish(self, namespace: str, name: str, cache: LoopCache) -> None:
        """Carry out the policy and release the object; only cancellation is raised."""
        while (remains := await self._carry_out(namespace, name, cache)) is not None:
            if await self._release(remains, cache):
                return

    async def _carry_out(self, namespace: str, name: str, cache: LoopCache) -> Remains | None:
        """The object that may be released; None where it is gone, or nobody could read it in time."""
        began, remains = self._clock(), None
        undrained = began
        waiting, logged, was_claimed = NotYet(), "", False
        while True:
            async with cache.lock:
                is_read = False
                try:
                    remains = await self._remains(namespace, name, cache)
                    is_read = True
                    if remains is not None:
                        await self._claim(remains)
                        remains = await self._vouched(remains)
                        decided = remains.decided
                        await self._policy.carry_out(remains, cache)
                        await self._tell_kept(remains, cache)
                        remains = await self._shown_to_others(remains, cache)
                        if remains is not None and remains.decided != decided:
                            continue
                    return remains
                except Exception as error:
                    # whatever goes wrong must not hold the object for longer than the time limit; that it cannot be
                    # read says nothing against another operator, which serves it
                    if is_read or not isinstance(waiting, Elsewhere):
                        waiting = _cause(error, namespace, name)
                if isinstance(waiting, Obstacle) and str(waiting) != logged:
                    logged = str(waiting)
                    where = _where(LogAction.DELETION_DELAYED, namespace, name, logged)
                    logger.warning("a deleted object has to wait", extra=where)
                # after a long absence of every operator the time is over before the first try
                is_untried = isinstance(waiting, JustClaimed) and not was_claimed
                was_claimed = was_claimed or is_untried
                drains = isinstance(waiting, WorkerDraining)
                if not is_untried and self._is_late(remains, began if drains else undrained, waiting):
                    await self._leave_behind(remains, namespace, name, str(waiting), cache)
                    return remains
                now = self._clock()
                # what comes after the workers could not be tried before
                undrained = now if drains else undrained
                await self._tell(remains, waiting, cache, now)
                await self._show(remains, waiting, cache, now)
            await asyncio.sleep(self._settings.wait_seconds)

    async def _release(self, remains: Remains, cache: LoopCache) -> bool:
        """Take the finalizer away; False where another policy has to be carried out first."""
        decided, failures, logged = remains.decided, 0, ""
        while not cache.forgotten:
            try:
                await release(self._kube, remains)
                return True
            except KubeError as error:
                # another client's write in between is nothing to tell
                if error.status != 409 and str(error) != logged:
                    logged = str(error)
                    await self._tell_unreleased(remains, logged, cache)
                    waiting = NotYet(f"its finalizer cannot be removed ({shortened(logged)})")
                    await self._show(remains, waiting, cache, self._clock())
            await asyncio.sleep(self._backoff.delay(failures, self._entropy.random()))
            failures += 1
            try:
                found = await self._remains(remains.namespace, remains.name, cache)
            except (KubeError, NotYet):
                continue
            if found is None:
                return True
            if found.decided != decided:
                return False
            remains = found
        return True

    async def _tell_unreleased(self, remains: Remains, refusal: str, cache: LoopCache) -> None:
        where = _where(LogAction.DELETION_DELAYED, remains.namespace, remains.name, refusal)
        logger.warning("a deleted object could not be released yet", extra=where)
        message = (
            f"the deletion is done, but its finalizer {names.FINALIZER} cannot be removed yet ({shortened(refusal)}): "
            f"check the operator's right to patch the object; it tries again"
        )
        await self._reporter.post(remains, Notice("Warning", "DeletionDelayed", message), cache, self._clock())

    async def _remains(self, namespace: str, name: str, cache: LoopCache) -> Remains | None:
        """The deleted object; None where it is gone, perhaps because its finalizer was removed by hand."""
        body = await self._kube.get(TUNNEL, namespace, name)
        if body is not None and not cache.is_of(body):
            if not cache.forgotten:
                raise NotYet("another object has its name")
            body = None
        return None if body is None else Remains(body, self._elder(body))

    async def _vouched(self, remains: Remains) -> Remains:
        """The object beside its elder one, as the watch vouches for it: before its first list it knows of none."""
        if self._reader is None or not remains.deletes_tunnel:
            return remains
        await self._reader.get(TUNNEL, remains.namespace, remains.name)
        return replace(remains, elder=self._elder(remains.body))

    async def _tell_kept(self, remains: Remains, cache: LoopCache) -> None:
        """Post where a tunnel stays that an elder object consumes, although the policy says Delete."""
        if remains.elder is None or not remains.would_delete or cache.tunnel_deleted:
            return
        elder = f"{remains.elder.namespace}/{remains.elder.name}"
        where = _where(LogAction.TUNNEL_LEFT_BEHIND, remains.namespace, remains.name, f"{elder} consumes it")
        logger.warning("a tunnel is left behind", extra=where | {"command": remains.removal})
        message = (
            f"{remains.tunnel} is left behind, because the elder object {elder} consumes it: once that one no longer "
            f"does, delete the tunnel by hand: {remains.removal}"
        )
        await self._reporter.post(remains, Notice("Warning", "TunnelLeftBehind", message), cache, self._clock())

    async def _claim(self, remains: Remains) -> None:
        claim = await self._claims.claim(remains.body)
        if claim is Claim.NEW:
            raise JustClaimed("the object has just been claimed")
        if claim is Claim.ELSEWHERE:
            if doubt := self._claims.doubt(remains.body):
                raise Doubtful(doubt)
            raise Elsewhere("another operator serves the object")

    def _is_late(self, remains: Remains | None, began: float, waiting: NotYet) -> bool:
        elsewhere = isinstance(waiting, Elsewhere)
        if remains is not None and remains.is_forced and not elsewhere:
            return True
        longest, now = self._longest(elsewhere=elsewhere), self._clock()
        if remains is None or remains.deleted is None:
            return now - began > longest
        if isinstance(waiting, WorkerDraining):
            longest = max(longest, remains.drain_seconds)
        # after a long absence of every operator the time is over before the workers have been told to drain
        patience = min(remains.drain_seconds, longest)
        if isinstance(waiting, Draining):
            # a worker that has not ended by then never will: its node is lost
            longest = patience
        return now - remains.deleted > longest and now - began > patience

    def _longest(self, *, elsewhere: bool) -> float:
        """Seconds after which the object is released; another operator would have done so after the simple time."""
        return self._settings.delete_seconds * (2 if elsewhere else 1)

    async def _tell(self, remains: Remains | None, reason: NotYet, cache: LoopCache, now: float) -> None:
        """Post an event about an obstacle: a person has to remove it, or the object waits until its time is over."""
        if remains is None or not isinstance(reason, Obstacle):
            return
        longest = self._longest(elsewhere=isinstance(reason, Elsewhere))
        message = f"the deletion waits, at most {longest:.0f} s: {reason}"
        await self._reporter.post(remains, Notice("Warning", "DeletionDelayed", message), cache, now)

    async def _show(self, remains: Remains | None, reason: NotYet, cache: LoopCache, now: float) -> None:
        """Write into the status that the object is being deleted; that this fails must not hold it."""
        # one that is gone, perhaps by hand in the middle of a call, has no metrics any more
        if remains is None or cache.forgotten or isinstance(reason, Elsewhere | JustClaimed):
            return
        try:
            await self._reporter.report_deletion(remains.body, str(reason), cache, now)
        except (KubeError, StatusOutdated) as error:
            where = _where(LogAction.DELETION_DELAYED, remains.namespace, remains.name, str(error))
            logger.warning("the status of a deleted object could not be written", extra=where)

    async def _shown_to_others(self, remains: Remains, cache: LoopCache) -> Remains | None:
        """The object as it is to be released; where another finalizer holds it as well, its status says what it is."""
        others = sorted(set(remains.finalizers) - {names.FINALIZER})
        if not others or names.FINALIZER not in remains.finalizers:
            return remains
        await self._show(remains, NotYet(f"finalizer {others[0]} still holds it"), cache, self._clock())
        return await self._remains(remains.namespace, remains.name, cache)

    async def _leave_behind(
        self, remains: Remains | None, namespace: str, name: str, waiting: str, cache: LoopCache
    ) -> None:
        if remains is not None and (cache.tunnel_deleted or not remains.deletes_tunnel):
            # whoever deletes it by hand loses the checkpoints that were to be kept
            where = _where(LogAction.DELETION_DELAYED, namespace, name, waiting)
            logger.warning("an object is released before its time", extra=where)
            left = f"{remains.tunnel} stays"
            if cache.tunnel_deleted:
                record = names.snapshot_name(remains.name)
                left = f"{remains.tunnel} is deleted, ConfigMap {record!r} stays: delete it by hand"
            message = f"the object is released without waiting any longer ({waiting}); {left}"
            await self._reporter.post(remains, Notice("Warning", "DeletionDelayed", message), cache, self._clock())
            await self._tell_kept(remains, cache)
            return
        # the object, which says where the tunnel is, is gone afterwards, and an event lasts for an hour
        command = "" if remains is None else remains.removal
        where = _where(LogAction.TUNNEL_LEFT_BEHIND, namespace, name, waiting)
        logger.warning("a tunnel is left behind", extra=where | {"command": command})
        if remains is not None:
            message = (
                f"{remains.tunnel} is left behind, because it could not be deleted in time: delete it by hand: "
                f"{command} ({waiting})"
            )
            await self._reporter.post(remains, Notice("Warning", "TunnelLeftBehind", message), cache, self._clock())


def _cause(error: Exception, namespace: str, name: str) -> NotYet:
    """Why a deletion waits after an error of its last try."""
    match error:
        case NotYet():
            return error
        case KubeError():
            return Obstacle(f"the API server refuses a call ({shortened(str(error))}): check the rights")
    cause = Obstacle(f"{type(error).__name__}: {shortened(str(error))}")
    where = _where(LogAction.DELETION_DELAYED, namespace, name, str(cause))
    logger.error("an unexpected error of a deletion", exc_info=error, extra=where)
    return cause


def _where(action: LogAction, namespace: str, name: str, error: str) -> dict[str, str]:
    return {"action": action, "namespace": namespace, "object": name, "error": shortened(error)}
