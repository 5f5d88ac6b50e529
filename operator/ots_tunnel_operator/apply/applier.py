"""Carry out planned actions in order. Apart from deletion and status writes, only this module changes anything: by
`child_writer` at the API server, by `create` and `removal` at the service.

Each action is idempotent. A failed action ends the pass, because the next ones rely on it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from ots_tunnel_operator import names
from ots_tunnel_operator.apply.child_writer import ChildWriter
from ots_tunnel_operator.apply.create import ActionFailed, Creator
from ots_tunnel_operator.apply.removal import Removal
from ots_tunnel_operator.diagnosis import crd_outdated, kube_problem, pod_monitor_problem
from ots_tunnel_operator.kube.cluster import Cluster, Reader
from ots_tunnel_operator.kube.errors import REFUSALS, KubeError, NameConflict
from ots_tunnel_operator.log_actions import LogAction
from ots_tunnel_operator.loop_cache import LoopCache, MonitorRefusal
from ots_tunnel_operator.plan.actions import (
    Action,
    ApplyObject,
    Aside,
    CreateTunnel,
    DeleteObject,
    DeleteTunnel,
    EnsureDestination,
    RecordStatus,
)
from ots_tunnel_operator.reset.record import State
from ots_tunnel_operator.status_write import StatusOutdated, dropped_fields, write_status
from ots_tunnel_operator.world.resource import Resource

logger = logging.getLogger(__name__)

#: State of a reset that is recorded -> what is logged about it.
RESET_ACTIONS: Mapping[str, LogAction] = {
    State.RUNNING: LogAction.RESET_STARTED,
    State.DONE: LogAction.RESET_DONE,
    State.REFUSED: LogAction.RESET_REFUSED,
}


class Applier:
    """Carries out the actions of one object.

    Args:
        kube: the API server.
        resource: the object.
        cache: of its loop.
        reader: what watches keep of the children; None reads from the API server every time.
    """

    def __init__(self, kube: Cluster, resource: Resource, cache: LoopCache, reader: Reader | None = None) -> None:
        self._kube = kube
        self._resource = resource
        self._cache = cache
        self._children = ChildWriter(kube, resource, cache, reader or kube)
        self._service = Creator(kube, resource, cache)
        self._removal = Removal(resource, cache)

    async def apply(self, action: Action) -> bool:
        """Carry out one action and return whether it changed anything.

        Raises:
            ActionFailed: a call failed.
            PredecessorThere: a child of a deleted object of the same name is in the way.
            StatusOutdated: the object has changed since it was read.
        """
        try:
            return await self._apply(action)
        except StatusOutdated:
            raise
        except (KubeError, NameConflict) as error:
            lasts = isinstance(error, NameConflict) or error.status in REFUSALS
            raise ActionFailed(kube_problem(error), lasts=lasts) from error

    async def _apply(self, action: Action) -> bool:
        match action:
            case RecordStatus(change):
                await self._record(change)
            case EnsureDestination():
                await self._service.ensure_destination(action)
            case CreateTunnel():
                await self._service.create_tunnel(action)
            case DeleteTunnel(tunnel_id):
                return await self._removal.delete_tunnel(tunnel_id)
            case Aside(inner):
                return await self._try_aside(inner)
            case _:
                return await self._children.carry_out(action)
        return True

    async def _try_aside(self, action: ApplyObject | DeleteObject) -> bool:
        """Carry out what the flow does not need; why it was refused is kept for this report and the next looks."""
        try:
            is_changed = await self._children.carry_out(action)
        except (KubeError, NameConflict) as error:
            if isinstance(error, KubeError) and error.status == 0:
                # nobody has answered: that is about more than this object
                raise
            wanted, name = self._resource.wants_pod_monitor, names.workers_name(self._resource.name)
            problem = pod_monitor_problem(error, name, wanted=wanted)
            self._cache.monitor_refusal = MonitorRefusal(wanted, self._cache.time, problem)
            return False
        self._cache.monitor_refusal = None
        return is_changed

    async def _record(self, change: Mapping[str, Any]) -> None:
        self.recorded(change, await write_status(self._kube, self._resource, change, self._cache))

    def recorded(self, change: Mapping[str, Any], stored: Mapping[str, Any] | None) -> None:
        """Take note of a change that is in the status.

        Args:
            stored: the status as stored; None where that is not known.

        Raises:
            ActionFailed: the API server has dropped a part of it.
        """
        self._log_reset(change.get("reset") or {})
        if lost := dropped_fields(change, stored):
            raise ActionFailed(crd_outdated(lost))
        # with the tunnel, the source's stream may have been enabled: read both again
        self._cache.source.table = None
        self._cache.tunnel = None

    def _log_reset(self, change: Mapping[str, Any]) -> None:
        """Log what is recorded of a reset."""
        if action := RESET_ACTIONS.get(str(change.get("state"))):
            values = {"token": str(change.get("token") or ""), "text": str(change.get("message") or "")}
            place = {"namespace": self._resource.namespace, "object": self._resource.name}
            logger.info(action.description, extra={"action": action, **place, **values})
