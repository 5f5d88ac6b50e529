"""The operator as a simulated process: `Runtime` over the model of the API server, with kopf's role."""

from __future__ import annotations

import random
from collections.abc import Callable

from ots_tunnel_operator.kube.cluster import Cluster
from ots_tunnel_operator.metrics import OperatorMetrics
from ots_tunnel_operator.runtime import Runtime
from ots_tunnel_operator.settings import Settings
from tests.simulation.fleet.kopf_role import KopfRole
from tests.simulation.fleet.reports import Reports
from tests.simulation.machine.loop import VirtualLoop
from tests.simulation.machine.process import Process
from tests.simulation.story import Story

#: Lease that claims name.
LEASE = "ots/ots-tunnel-operator"
SETTINGS = Settings(worker_image="worker:1", spark_image="spark:1", lease=LEASE)
#: Seconds until another replica leads after the leader was killed: the life of its Lease.
TAKE_OVER = (2.0, 18.0)


class OperatorProcess:
    """The leading operator; a killed one is followed by another.

    Args:
        cluster: makes the connection to the API server of a process.
        reports: the pages of the workers.
        failed: called with a rule and a text when a handler ends with an error.
    """

    def __init__(
        self,
        loop: VirtualLoop,
        story: Story,
        seed: str,
        cluster: Callable[[], Cluster],
        reports: Reports,
        failed: Callable[[str, str], None],
    ) -> None:
        self._loop = loop
        self._story = story
        self._seed = seed
        self._cluster = cluster
        self._reports = reports
        self._failed = failed
        self._starts = 0
        self.process: Process | None = None
        self.processes: list[Process] = []
        self.metrics: OperatorMetrics | None = None

    def start(self) -> None:
        """Start a leader."""
        if self.process is not None:
            return
        self._starts += 1
        name = f"operator.{self._starts}"
        self.process = Process(self._loop, name, random.Random(f"{self._seed}:{name}"), machine="operator")
        self.processes.append(self.process)
        self._story.tell(name, "leads")
        self.process.start(self._run(self.process))

    def kill(self, away: float) -> None:
        """Kill the leader; another one leads after `away` seconds."""
        process, self.process = self.process, None
        if process is not None:
            process.kill()
            self._loop.network.process_died(process, power=False)
            self._loop.after(away, self.start)

    async def _run(self, process: Process) -> None:
        self.metrics = OperatorMetrics()
        runtime = Runtime(SETTINGS, self.metrics, entropy=random.Random(process.chance.random()))
        cluster = self._cluster()
        await runtime.open(cluster, session=self._reports)
        role = KopfRole(runtime, cluster, lambda text: self._failed("bug", f"{process.name}: {text}"))
        await role.run()
