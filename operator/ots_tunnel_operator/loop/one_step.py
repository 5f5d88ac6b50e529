"""One step of a pass: observe, assess, plan, apply, report (docs/architecture.md 2)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ots_tunnel_operator.apply.applier import Applier
from ots_tunnel_operator.apply.create import ActionFailed
from ots_tunnel_operator.apply.ownership import PredecessorThere
from ots_tunnel_operator.assess.assessment import assess
from ots_tunnel_operator.assess.kept_reports import observed_time
from ots_tunnel_operator.assess.observed import find_unobserved
from ots_tunnel_operator.diagnosis import internal_problem
from ots_tunnel_operator.kube.cluster import Cluster, Reader
from ots_tunnel_operator.kube.kinds import TUNNEL, Manifest
from ots_tunnel_operator.log_actions import LogAction
from ots_tunnel_operator.loop.failed_pass import where
from ots_tunnel_operator.loop.own_object import parsed
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.observe.observer import Observer
from ots_tunnel_operator.observe.pod_monitor import with_refusal
from ots_tunnel_operator.plan.actions import Plan, RecordStatus, Wait
from ots_tunnel_operator.plan.planner import plan
from ots_tunnel_operator.plan.rollout import refused
from ots_tunnel_operator.reasons import Reason
from ots_tunnel_operator.report.notices import Notice, record_notices
from ots_tunnel_operator.report.reporter import Reporter
from ots_tunnel_operator.settings import Settings
from ots_tunnel_operator.status_write import StatusOutdated, Written
from ots_tunnel_operator.world.resource import Resource
from ots_tunnel_operator.world.world import Competitor, World

logger = logging.getLogger(__name__)


class OneStep:
    """The steps of all objects; what is known of one is in its cache.

    Args:
        kube: the API server.
        reader: what watches keep of the cluster.
        observer: reads the world.
        reporter: writes status and events.
        acted: counts an action that changed something: namespace, name, kind of action.
        settings: of the process.
        elder: the eldest other object on the same tunnel, or None.
        clock: Unix seconds.
    """

    def __init__(
        self,
        kube: Cluster,
        reader: Reader,
        observer: Observer,
        reporter: Reporter,
        settings: Settings,
        elder: Callable[[Resource], Competitor | None],
        clock: Callable[[], float],
        acted: Callable[[str, str, str], None],
    ) -> None:
        self._kube = kube
        self._reader = reader
        self._observer = observer
        self._reporter = reporter
        self._settings = settings
        self._elder = elder
        self._clock = clock
        self._acted = acted

    async def take(self, body: Manifest, cache: LoopCache) -> Plan | None:
        """Take one step; what was decided, or None where another one follows at once.

        Raises:
            StatusOutdated: the object has changed since it was read.
            KubeError: the API server refused a read or the status.
            ValidationError: this release cannot read the object.
        """
        resource = parsed(body, cache)
        world = await self._observer.observe(resource, cache, elder=self._elder(resource), now=self._clock())
        assessment = assess(world, spark_missing_seconds=self._settings.spark_missing_seconds)
        cache.scaling = assessment.scaling.history
        decided = plan(world, assessment, self._settings)
        recorded = None
        # completion removes the workers, who alone know what they have refused: it is stored before that
        ends = decided.completed and not assessment.was_completed
        if ends or (decided.again and not cache.action_failed):
            # the actions may take a minute, and every condition has to exist before anything else is written; what is
            # recorded first goes with them: a write of a status costs the API server more than a pass costs here
            record = _first_record(decided)
            written = await self._reporter.report(world, assessment, decided, cache, record)
            recorded = None if record is None else written
        tried = decided
        decided, changed = await self._apply_actions(world, tried, cache, recorded)
        cache.action_failed = decided is not tried
        if decided.again and decided.problem is None:
            return None
        if decided.warning is not None and not cache.action_failed:
            notice = Notice("Warning", decided.warning.reason, decided.warning.message)
            await self._reporter.post(resource, notice, cache, world.now)
        shown = await self._refreshed(world) if changed or ends else world
        await self._reporter.report(with_refusal(shown, cache), assessment, decided, cache)
        cache.failing_since = None
        if find_unobserved(world) is None:
            cache.observed_time = observed_time(world)
        return decided

    async def _apply_actions(
        self, world: World, decided: Plan, cache: LoopCache, recorded: Written | None
    ) -> tuple[Plan, bool]:
        """Carry out the actions; the plan with the problem of a failed one, and whether anything was changed.

        Args:
            recorded: the status that was written with the record that the plan begins with; None where it is not in it.
        """
        applier = Applier(self._kube, world.resource, cache, self._reader)
        changed = False
        try:
            for action in decided.actions:
                if recorded is not None and isinstance(action, RecordStatus):
                    applier.recorded(action.change, recorded.stored)
                    is_changed, recorded = True, None
                else:
                    is_changed = await applier.apply(action)
                if is_changed:
                    changed = True
                    self._acted(world.resource.namespace, world.resource.name, type(action).__name__)
                if isinstance(action, RecordStatus):
                    await self._post_record(world, action, cache)
        except StatusOutdated:
            raise
        except PredecessorThere as error:
            return replace(decided, wait=Wait(Reason.PREDECESSOR_GOING, str(error)), again=False), True
        except ActionFailed as error:
            return refused(decided, world, error.problem, action, lasts=error.lasts), True
        except Exception as error:
            # a bug in one action is shown as a problem of the object; the pass ends in order
            place = where(world.resource.namespace, world.resource.name, error)
            logger.exception("an action failed", extra=place | {"action": LogAction.ACTION_FAILED})
            return replace(decided, problem=internal_problem(error), again=False), True
        return decided, changed

    async def _post_record(self, world: World, action: RecordStatus, cache: LoopCache) -> None:
        for notice in record_notices(action.change, world.resource.status):
            await self._reporter.post(world.resource, notice, cache, world.now)

    async def _refreshed(self, world: World) -> World:
        """The world with the status as stored now, because actions may have recorded into it."""
        body = await self._reader.get(TUNNEL, world.resource.namespace, world.resource.name)
        if body is None:
            return world
        return replace(world, resource=replace(world.resource, status=body.get("status") or {}))


def _first_record(decided: Plan) -> Mapping[str, Any] | None:
    """The change that a plan begins with; None where it begins with something else."""
    first = next(iter(decided.actions), None)
    return first.change if isinstance(first, RecordStatus) else None
