"""The call to the service that deletes a tunnel, as a reset asks."""

from __future__ import annotations

import asyncio
import logging

from ots_tunnel.errors import ObjectNotExist, ParameterInvalid
from ots_tunnel_operator.apply.create import ActionFailed
from ots_tunnel_operator.assess.creation import CREATE_SECONDS
from ots_tunnel_operator.diagnosis import Place, service_problem
from ots_tunnel_operator.instance import CALL_ERRORS, Instance
from ots_tunnel_operator.log_actions import LogAction
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.world.resource import Resource

logger = logging.getLogger(__name__)


class Removal:
    """Deletes the tunnel of one object.

    Args:
        resource: the object.
        cache: of its loop.
    """

    def __init__(self, resource: Resource, cache: LoopCache) -> None:
        self._resource = resource
        self._cache = cache

    async def delete_tunnel(self, tunnel_id: str) -> bool:
        """Delete the tunnel of the spec's name if it has this id, and return whether it was there.

        Raises:
            ActionFailed: the service refuses it, or does not answer.
            KubeError: the lease is not held; nothing was sent.
        """
        cache, source = self._cache, self._resource.spec.source
        if cache.source.instance is None:
            raise RuntimeError("there are no clients, although the plan relies on what they have seen")
        # whatever becomes of the call, what was seen of the tunnel no longer holds
        cache.tunnel = None
        try:
            async with cache.turn.lent(), asyncio.timeout(CREATE_SECONDS):
                is_deleted = await self._delete(cache.source.instance, tunnel_id)
        except CALL_ERRORS as error:
            cache.source.forget()
            raise ActionFailed(service_problem(error, Place.of_source(source))) from error
        if is_deleted:
            place = {"namespace": self._resource.namespace, "object": self._resource.name}
            extra = {"action": LogAction.DELETED_TUNNEL, **place, "tunnel_id": tunnel_id}
            logger.info(LogAction.DELETED_TUNNEL.description, extra=extra)
        return is_deleted

    async def _delete(self, instance: Instance, tunnel_id: str) -> bool:
        source = self._resource.spec.source
        listed = await instance.tunnels.list_tunnels(source.table)
        found = next((tunnel for tunnel in listed if tunnel.tunnel_id == tunnel_id), None)
        if found is None:
            return False
        try:
            await instance.tunnels.delete_tunnel(
                source.table, found.tunnel_name, found.tunnel_id, before_send=instance.before_write
            )
        except (ParameterInvalid, ObjectNotExist):
            # an earlier call was carried out late
            return False
        return True
