"""Write status and events of an object, only after a change (docs/architecture.md rule 9)."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from ots_tunnel_operator import API_VERSION, KIND, names
from ots_tunnel_operator.assess.assessment import Assessment
from ots_tunnel_operator.assess.observed import find_unobserved
from ots_tunnel_operator.diagnosis import CRD_HINT, shortened
from ots_tunnel_operator.kube.cluster import Cluster
from ots_tunnel_operator.kube.errors import KindMissing, KubeError
from ots_tunnel_operator.kube.kinds import EVENT
from ots_tunnel_operator.log_actions import LogAction
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.metrics import OperatorMetrics
from ots_tunnel_operator.plan.actions import Plan
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.report.notices import Notice, notices
from ots_tunnel_operator.report.status import build_status
from ots_tunnel_operator.report.status_change import is_different, is_urgent, merge_patch, merged
from ots_tunnel_operator.report.unobserved import deleting_status, unobserved_status
from ots_tunnel_operator.settings import Settings
from ots_tunnel_operator.status_write import Written, dropped_fields, write_status
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world.resource import Named, Reference
from ots_tunnel_operator.world.world import World

logger = logging.getLogger(__name__)

#: Seconds in which an event is not repeated.
EVENT_SECONDS = 600.0
#: Seconds between two tries to store what the API server drops, because the CRD may be another one by now.
DROPPED_SECONDS = 600.0
#: Seconds after which the event about that is repeated; the API server keeps one for an hour.
DROPPED_EVENT_SECONDS = 3000.0
#: Events remembered per object.
MAX_POSTED = 100


class Reporter:
    """Writes status and events; holds no state of a single object."""

    def __init__(self, kube: Cluster, settings: Settings, metrics: OperatorMetrics) -> None:
        self._kube = kube
        self._settings = settings
        self._metrics = metrics
        self._told: set[tuple[str, ...]] = set()

    async def report(
        self,
        world: World,
        assessment: Assessment,
        plan: Plan,
        cache: LoopCache,
        record: Mapping[str, Any] | None = None,
    ) -> Written | None:
        """Write the status if it changed enough, and post the events about its changes.

        Args:
            record: what is to be recorded next (`RecordStatus`): it goes with the status where that is written.

        Returns:
            What was written; None where nothing was, so that the record is still to be written.

        Raises:
            KubeError: the API server refuses the status.
            StatusOutdated: the object has changed since it was read.
        """
        resource, before = world.resource, world.resource.status
        after = build_status(world, assessment, plan)
        wanted: dict[str, float] | None = _wanted(world, assessment, plan)
        if find_unobserved(world) is not None:
            # an unknown figure has no sample
            wanted = None
            if cache.observed_time is not None:
                # the figures held until then; the recorded time is that of the last write
                after["observedTime"] = timestamp(cache.observed_time)
        self._metrics.observed(resource.namespace, resource.name, after, wanted)
        return await self._write(resource, before, after, cache, world.now, record or {})

    async def report_unobserved(self, body: Mapping[str, Any], problem: Problem, cache: LoopCache, now: float) -> None:
        """Write that a pass could not observe the object.

        Args:
            body: the object as last read.
            problem: why.

        Raises:
            KubeError: the API server refuses the status.
            StatusOutdated: the object has changed since it was read.
        """
        metadata, before = body["metadata"], body.get("status") or {}
        of = Reference(metadata["namespace"], metadata["name"], str(metadata.get("uid") or ""))
        generation = int(metadata.get("generation") or 0)
        after = unobserved_status(before, problem, generation=generation, observed=cache.observed_time, now=now)
        self._metrics.observed(of.namespace, of.name, after)
        await self._write(of, before, after, cache, now)

    async def report_deletion(self, body: Mapping[str, Any], waiting: str, cache: LoopCache, now: float) -> None:
        """Write that an object is being deleted, and what its deletion waits for.

        Args:
            body: the object as last read.
            waiting: what the deletion waits for; empty where that is not known.

        Raises:
            KubeError: the API server refuses the status.
            StatusOutdated: the object has changed since it was read.
        """
        metadata, before = body["metadata"], body.get("status") or {}
        of = Reference(metadata["namespace"], metadata["name"], str(metadata.get("uid") or ""))
        cache.version = str(metadata.get("resourceVersion") or "")
        after = deleting_status(before, waiting, generation=int(metadata.get("generation") or 0), now=now)
        self._metrics.observed(of.namespace, of.name, after)
        await self._write(of, before, after, cache, now)

    async def _write(
        self,
        of: Named,
        before: Mapping[str, Any],
        after: Mapping[str, Any],
        cache: LoopCache,
        now: float,
        record: Mapping[str, Any] = MappingProxyType({}),
    ) -> Written | None:
        known = _known(before, cache, now)
        due = now - cache.last_write >= self._settings.status_seconds
        if not is_urgent(known, after) and not (due and is_different(known, after)):
            return None
        after = merged(after, record)
        try:
            stored = await write_status(self._kube, of, merge_patch(before, after), cache)
        except KubeError as error:
            if error.status == 404 and not isinstance(error, KindMissing):
                return None
            raise
        cache.last_write = now
        is_changed = stored is not None and (is_urgent(stored, after) or is_different(stored, after))
        cache.written = (after, stored) if stored is not None and is_changed else None
        self._metrics.wrote_status()
        if lost := dropped_fields(after, stored):
            await self._tell_dropped(of, lost, cache, now)
        for notice in notices(before.get("conditions") or (), after["conditions"]):
            await self.post(of, notice, cache, now)
        return Written(stored)

    async def _tell_dropped(self, of: Named, fields: tuple[str, ...], cache: LoopCache, now: float) -> None:
        """Say that the CRD is older than the operator: once in the log, and by an event of the object."""
        text = shortened(", ".join(fields))
        if fields not in self._told:
            self._told.add(fields)
            place = {"namespace": of.namespace, "object": of.name, "fields": text}
            logger.warning(LogAction.STATUS_DROPPED.description, extra={"action": LogAction.STATUS_DROPPED, **place})
        message = f"the API server drops {text}: the CRD is older than this operator, and what it keeps there is lost: "
        await self.post(
            of, Notice("Warning", Reason.CRD_OUTDATED, message + CRD_HINT), cache, now, every=DROPPED_EVENT_SECONDS
        )

    async def post(
        self, resource: Named, notice: Notice, cache: LoopCache, now: float, *, every: float = EVENT_SECONDS
    ) -> None:
        """Post an event unless it was posted in the last `every` seconds; a lost event is logged and is no failure."""
        key = (notice.reason, notice.message)
        if now - cache.posted.get(key, 0.0) < every:
            return
        while len(cache.posted) >= MAX_POSTED:
            cache.posted.pop(next(iter(cache.posted)))
        cache.posted[key] = now
        try:
            await self._kube.create(EVENT, event(resource, notice, now))
        except KubeError as error:
            if error.status != 409:
                logger.warning(
                    "an event could not be posted",
                    extra={
                        "action": LogAction.EVENT_LOST,
                        "namespace": resource.namespace,
                        "object": resource.name,
                        "reason": notice.reason,
                        "error": shortened(str(error)),
                    },
                )


def _wanted(world: World, assessment: Assessment, plan: Plan) -> dict[str, float]:
    """The gauges that say what an object is to be like, and how fast it gets there."""
    monitoring, pace = world.resource.spec.monitoring, assessment.scaling.pace
    known = {} if pace is None else {"catchup_ratio": pace}
    return known | {
        "wanted_workers": plan.replicas,
        "lag_limit_seconds": world.resource.spec.lag_limit_seconds,
        "retention_limit_percent": monitoring.retention_warning_percent,
    }


def _known(before: Mapping[str, Any], cache: LoopCache, now: float) -> Mapping[str, Any]:
    """The status to compare with: what was wanted, while the stored one is what the API server made of it.

    It drops what the CRD does not have, and to write that again in every pass would change nothing.
    """
    if cache.written is None or now - cache.last_write >= DROPPED_SECONDS:
        return before
    wanted, stored = cache.written
    return wanted if stored == before else before


def event(resource: Named, notice: Notice, now: float) -> dict[str, Any]:
    """The Event; its name follows from content and minute, so that the API server refuses a repetition."""
    time = timestamp(now)
    identity = f"{resource.uid}/{notice.reason}/{notice.message}/{int(now // 60)}"
    digest = hashlib.sha256(identity.encode()).hexdigest()[:16]
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{resource.name}.{digest}", "namespace": resource.namespace},
        "involvedObject": {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "name": resource.name,
            "namespace": resource.namespace,
            "uid": resource.uid,
        },
        "type": notice.kind,
        "reason": notice.reason,
        "message": notice.message[:1024],
        "firstTimestamp": time,
        "lastTimestamp": time,
        "count": 1,
        "source": {"component": names.COMPONENT},
        "reportingComponent": names.COMPONENT,
        "reportingInstance": names.COMPONENT,
    }
