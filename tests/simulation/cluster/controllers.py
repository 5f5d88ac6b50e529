"""The controllers of Kubernetes as one actor: Deployments and garbage collection, a moment after each change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ots_tunnel_operator.kube.kinds import kind_of
from tests.simulation.apiserver.api import Api, Request
from tests.simulation.apiserver.garbage import orphans
from tests.simulation.apiserver.store import Event
from tests.simulation.cluster.deployments import Deployments

#: Seconds between two looks when nothing changed: minReadySeconds ends without an event.
LOOK_SECONDS = 5.0
COLLECTOR = "garbage-collector"


class Controllers:
    """Runs the controllers.

    Args:
        delay: seconds from a change to the controllers' reaction.
    """

    def __init__(self, api: Api, deployments: Deployments, delay: Callable[[], float]) -> None:
        self._api = api
        self._deployments = deployments
        self._delay = delay
        self._changed = asyncio.Event()
        before = api.store.listener

        def follow(event: Event) -> None:
            before(event)
            self._changed.set()

        api.store.listener = follow

    async def run(self) -> None:
        """React until cancelled."""
        while True:
            try:
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._changed.wait()
            except TimeoutError:
                pass
            self._changed.clear()
            await asyncio.sleep(self._delay())
            self._deployments.step()
            self._collect()

    def _collect(self) -> None:
        for key in orphans(self._api.store):
            _, namespace, name = key
            path = kind_of(self._api.store.objects[key]).path(namespace, name)
            self._api.call(Request("DELETE", path, manager=COLLECTOR))
