"""One replica of the operator: the real candidate for the Lease, and while it leads the operator itself.

A replica that has lost the Lease ends as `running.operation` ends it, and its container is started again as one that
stands by.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

from ots_tunnel_operator.kube.kinds import Kind, Manifest
from ots_tunnel_operator.kube.lease import Lease
from ots_tunnel_operator.running.operation import LOST_SECONDS
from ots_tunnel_operator.runtime import Runtime
from tests.simulation.apiserver.api import Api, Request
from tests.simulation.apiserver.client import Fate, ModelCluster
from tests.simulation.apiserver.refusal import Refusal
from tests.simulation.fleet.operator_process import LEASE, RESTARTS, OperatorProcess
from tests.simulation.machine.process import Process

#: Seconds between two looks of a replica whether it leads.
LOOK_SECONDS = 0.05
#: Seconds that a call about the Lease takes in one direction.
CALL_SECONDS = (0.001, 0.02)
#: Seconds after which a call fails that cannot reach the API server.
UNREACHABLE_SECONDS = (0.0, 5.0)


class _ReadLease(ModelCluster):
    """Tells who holds the Lease by each read of it; empty where it is gone, or released."""

    def __init__(self, api: Api, fate: Callable[[Request], Fate], told: Callable[[str], None]) -> None:
        super().__init__(api, fate=fate)
        self._told = told

    async def get(self, kind: Kind, namespace: str, name: str) -> Manifest | None:
        """See `Cluster.get`."""
        found = await super().get(kind, namespace, name)
        self._told(str(((found or {}).get("spec") or {}).get("holderIdentity") or ""))
        return found


class Replica(OperatorProcess):
    """One of the operator's pods.

    Args:
        arguments: as of `OperatorProcess`.
        api: for the calls about the Lease.
        chance: decides how long they take.
    """

    def __init__(self, *arguments: Any, api: Api, chance: random.Random, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._api = api
        self._chance = chance
        self._lease: Lease | None = None
        self._competing: asyncio.Task[None] | None = None
        #: Until when it does not reach the API server, and until when it stands still.
        self.cut_until = self.frozen_until = 0.0
        #: When its process was started.
        self.started = 0.0
        #: The holder of the Lease by its last read.
        self.read_holder = ""

    @property
    def leads(self) -> bool:
        """Whether it works, or believes so."""
        return self.process is not None and self._lease is not None and self._lease.leading.is_set()

    def may_write(self) -> bool:
        """Whether it holds the Lease for certain."""
        return self._lease is not None and self._lease.is_held()

    def unreachable(self) -> Fate | None:
        """The fate of a call that does not arrive; None while it reaches the API server."""
        if self._loop.now >= self.cut_until:
            return None
        return Fate(self._chance.uniform(*UNREACHABLE_SECONDS), refusal=Refusal(0, "ClientConnectorError", "cut off"))

    def _begin(self, process: Process) -> None:
        self._story.tell(process.name, "stands by")
        self.started = self._loop.now
        namespace, _, name = LEASE.partition("/")
        self._lease = lease = Lease(
            namespace,
            name,
            process.name,
            tick=lambda: None,
            still=lambda: 0.0,
            serves="every namespace",
            connect=self._connect,
        )
        self._competing = process.start(lease.compete(), "lease")
        process.start(self._lead(process, lease))

    async def _connect(self) -> ModelCluster:
        return _ReadLease(self._api, self._fate_of_lease, self._has_read)

    def _has_read(self, holder: str) -> None:
        self.read_holder = holder

    def _fate_of_lease(self, request: Request) -> Fate:
        there, back = (self._chance.uniform(*CALL_SECONDS) for _ in range(2))
        return self.unreachable() or Fate(there, back)

    async def _lead(self, process: Process, lease: Lease) -> None:
        # it is set in another thread, as `__main__` waits for it
        while not lease.leading.is_set():  # noqa: ASYNC110 - an event of threads
            await asyncio.sleep(LOOK_SECONDS)
        self._story.tell(process.name, "leads")
        self.began = self._loop.now
        lease.when_lost(lambda: self._loop.after(LOST_SECONDS, self._end_lost, process))
        await self._run(process, lease.is_held)

    def _end_lost(self, process: Process) -> None:
        if self.process is process:
            self._story.tell(process.name, "has lost the Lease, and ends")
            self.kill(RESTARTS[0])

    async def _close(self, process: Process, runtime: Runtime, away: float) -> None:
        """End in order, as SIGTERM does: the Lease is released last."""
        await runtime.close()
        if self.process is process and self._lease is not None and self._competing is not None:
            self._lease.when_lost(None)
            self._lease.let_go()
            await self._competing
            self.kill(away)
