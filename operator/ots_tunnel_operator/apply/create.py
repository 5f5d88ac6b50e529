"""The calls to the service that create something: the destination and the tunnel (`assess.creation` has the theory)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Mapping
from typing import Any, TypeVar

from ots_tunnel.errors import ObjectAlreadyExist
from ots_tunnel.protocol.service_codes import is_refusal
from ots_tunnel.tables.destination import CreateCall, ensure_destination
from ots_tunnel_operator.assess.creation import CREATE_SECONDS
from ots_tunnel_operator.diagnosis import Place, destination_incompatible, service_problem
from ots_tunnel_operator.instance import CALL_ERRORS, Instance, InstanceTables
from ots_tunnel_operator.kube.cluster import Cluster
from ots_tunnel_operator.kube.errors import KubeError
from ots_tunnel_operator.kube.kinds import TUNNEL
from ots_tunnel_operator.log_actions import LogAction
from ots_tunnel_operator.loop_cache import LoopCache, Side
from ots_tunnel_operator.plan.actions import CreateTunnel, EnsureDestination
from ots_tunnel_operator.reasons import Problem
from ots_tunnel_operator.status_write import StatusOutdated, write_status
from ots_tunnel_operator.world.resource import Resource

logger = logging.getLogger(__name__)

R = TypeVar("R")

#: Tries to take an intent back while others change the object.
WITHDRAWALS = 5


class ActionFailed(Exception):
    """An action failed; `problem` describes it for the object's status.

    `lasts`: whether it fails again until a person acts.
    """

    def __init__(self, problem: Problem, *, lasts: bool = False) -> None:
        super().__init__(problem.message)
        self.problem = problem
        self.lasts = lasts


class Creator:
    """Creates what one object needs of the service.

    Args:
        kube: the API server.
        resource: the object.
        cache: of its loop.
    """

    def __init__(self, kube: Cluster, resource: Resource, cache: LoopCache) -> None:
        self._kube = kube
        self._resource = resource
        self._cache = cache

    async def ensure_destination(self, action: EnsureDestination) -> None:
        """Create the destination unless it exists, and wait until it answers.

        Raises:
            ActionFailed: the service refuses it, or the table does not fit.
            KubeError: the lease is not held; nothing was sent.
            StatusOutdated: the object has changed since it was read.
        """
        spec, cache = self._resource.spec, self._cache
        sink, source, destination = spec.sink.tablestore, _connected(cache.source), _connected(cache.sink)
        if sink is None:
            raise RuntimeError("a sink without a table has no destination")
        cache.sink.table = None
        creating = CreateCall(destination.before_write)
        call = ensure_destination(
            InstanceTables(source),
            InstanceTables(destination),
            spec.source.table,
            sink.table,
            create=sink.create_table == "IfMissing",
            call=creating,
        )
        try:
            result = await self._call(_given_up_at_its_end(call, creating), Place.of_sink(sink))
        except ActionFailed:
            if not creating.may_have_created:
                await self._withdraw(action.withdrawal)
            raise
        if not result.created:
            # another client was faster
            await self._withdraw(action.withdrawal)
        if result.problems:
            is_foreign, over = not self._resource.has_made_destination, self._resource.start_over()
            raise ActionFailed(destination_incompatible(sink, result.problems, over, is_foreign=is_foreign))
        if result.created:
            self._log(LogAction.CREATED_DESTINATION, table=sink.table)

    async def create_tunnel(self, action: CreateTunnel) -> None:
        """Create the tunnel; errors as of `ensure_destination`."""
        source, instance = self._resource.spec.source, _connected(self._cache.source)
        call = instance.tunnels.create_tunnel(
            source.table, source.a_tunnel.name, action.type, action.stream, before_send=instance.before_write
        )
        try:
            tunnel_id = await self._call(call, Place.of_source(source))
        except ObjectAlreadyExist:
            # another client was faster, or this repeats a call whose answer was lost: the next pass tells them apart
            await self._withdraw(action.withdrawal)
            return
        except ActionFailed as failed:
            if is_refusal(failed.__cause__ or failed):
                await self._withdraw(action.withdrawal)
            raise
        self._log(LogAction.CREATED_TUNNEL, tunnel_id=str(tunnel_id))

    async def _call(self, call: Awaitable[R], place: Place) -> R:
        try:
            async with self._cache.turn.lent(), asyncio.timeout(CREATE_SECONDS):
                return await call
        except ObjectAlreadyExist:
            raise
        except CALL_ERRORS as error:
            # the credentials may have changed since they were read
            self._cache.source.forget()
            self._cache.sink.forget()
            raise ActionFailed(service_problem(error, place)) from error

    async def _withdraw(self, change: Mapping[str, Any]) -> None:
        """Take the intent of this step back: its call has created nothing.

        Where the API server refuses that, the intent stands until the next refusal of a call with an intent of its own.

        Raises:
            StatusOutdated: the object has changed since it was read; the intent is taken back nevertheless.
        """
        if not change:
            return
        try:
            await write_status(self._kube, self._resource, change, self._cache)
        except StatusOutdated:
            await self._withdraw_from_newer(change)
            raise
        except KubeError as error:
            self._log(LogAction.INTENT_STANDS, error=str(error))

    async def _withdraw_from_newer(self, change: Mapping[str, Any]) -> None:
        of = self._resource
        for _ in range(WITHDRAWALS):
            try:
                body = await self._kube.get(TUNNEL, of.namespace, of.name)
                if body is None or body["metadata"].get("uid") != of.uid:
                    return
                version = {"resourceVersion": body["metadata"].get("resourceVersion")}
                patch = {"metadata": version, "status": dict(change)}
                await self._kube.patch(TUNNEL, of.namespace, of.name, patch, "status")
                return
            except KubeError as error:
                if error.status != 409:
                    self._log(LogAction.INTENT_STANDS, error=str(error))
                    return
        self._log(LogAction.INTENT_STANDS, error=f"the object has changed {WITHDRAWALS} times")

    def _log(self, action: LogAction, **values: str) -> None:
        place = {"namespace": self._resource.namespace, "object": self._resource.name}
        logger.info(action.description, extra={"action": action, **place, **values})


async def _given_up_at_its_end(call: Awaitable[R], creating: CreateCall) -> R:
    try:
        return await call
    finally:
        # a thread goes on although nobody waits for it
        creating.is_given_up = True


def _connected(side: Side) -> Instance:
    """The clients of a side, by which it was observed; a call that was not made must not count as made."""
    if side.instance is None:
        raise RuntimeError("there are no clients, although the plan relies on what they have seen")
    return side.instance
