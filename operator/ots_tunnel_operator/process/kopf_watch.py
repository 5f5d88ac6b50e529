"""kopf's watch of the operator's objects goes on after an error of the API server.

kopf ends by any error that the API server puts into a watch, but 410, and by any refusal of a list or of a watch, but
429 (`kopf._cogs.clients.watching`): the whole process would, with its Lease, for one answer of an API server that is
being started again, or of a proxy. The operator's own watches of the same objects go on (`kube.reflector`), and their
passes show a refusal that lasts. Here the list is asked for again, with growing pauses; what was deleted meanwhile is
told by the operator's own watch.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import random
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
from kopf._cogs.clients import errors, watching

from ots_tunnel.protocol.backoff import Backoff
from ots_tunnel_operator import GROUP
from ots_tunnel_operator.log_actions import LogAction

logger = logging.getLogger(__name__)

#: Pauses before the next list, seconds.
RETRY = Backoff(1.0, 2.0, 30.0, 0.2)
#: Seconds after which a watch has gone well: the pauses begin anew.
WELL_SECONDS = 60.0
#: By what a watch of kopf ends.
ENDS = (watching.WatchingError, errors.APIError, aiohttp.ClientError, OSError)

Watch = Callable[..., AsyncIterator[Any]]


def outlast_errors_of_watches() -> None:
    """Let every watch of the operator's objects that kopf begins from now on outlast errors.

    kopf has no setting for it; it looks its endless watch up in this module for each kind and namespace.
    """
    watching.infinite_watch = functools.partial(lasting_watch, watching.infinite_watch)


async def lasting_watch(watch: Watch, **arguments: Any) -> AsyncIterator[Any]:
    """What kopf's endless watch yields, begun anew after an error.

    kopf itself knows what to do about a right that it lacks on definitions or namespaces, so these watches are as ever.

    Args:
        watch: kopf's own.
        arguments: those that kopf calls it with; `resource` is the kind.
    """
    resource, namespace, failures = arguments["resource"], arguments.get("namespace"), 0
    now = asyncio.get_running_loop().time
    while True:
        began = now()
        try:
            async for event in watch(**arguments):
                yield event
            return
        except ENDS as error:
            if resource.group != GROUP:
                raise
            where = f"{resource.plural} in {namespace or 'every namespace'}"
            values = {
                "action": LogAction.KOPF_WATCH_FAILED,
                "watch": where,
                "error": f"{type(error).__name__}: {error}",
            }
            logger.warning("kopf's watch failed", extra=values)
        failures = 0 if now() - began > WELL_SECONDS else failures
        await asyncio.sleep(RETRY.delay(failures, random.random()))
        failures += 1
