"""The operator as a simulated process: `Runtime` over the model of the API server, with kopf's role."""

from __future__ import annotations

import random
from collections.abc import Callable

from ots_tunnel_operator.kube.cluster import Cluster
from ots_tunnel_operator.metrics import OperatorMetrics
from ots_tunnel_operator.runtime import Runtime
from ots_tunnel_operator.settings import Settings
from tests.simulation.fleet.kopf_role import KopfEnded, KopfRole
from tests.simulation.fleet.reports import Reports
from tests.simulation.machine.loop import VirtualLoop
from tests.simulation.machine.process import Process
from tests.simulation.story import Story

#: Leases that claims name: of the operator, and of a second one whose scope overlaps.
LEASE, SECOND_LEASE = "ots/ots-tunnel-operator", "second/ots-tunnel-operator"
#: Objects whose workers a release may replace at once.
ROLLOUT_BUDGET = 2
#: Seconds until another replica leads after the leader was killed: the life of its Lease.
TAKE_OVER = (2.0, 18.0)
#: Seconds until the kubelet starts a container again that has ended: the first time, and at most.
RESTARTS = (10.0, 160.0)
#: Seconds after which it begins with the shortest pause again.
FORGIVEN = 600.0


class OperatorProcess:
    """The leading operator; a killed one is followed by another.

    Args:
        cluster: makes the connection to the API server of a process.
        reports: the pages of the workers.
        failed: called with a rule and a text when a handler ends with an error.
        name: of its processes, which get numbers.
        lease: that its claims name.
    """

    def __init__(
        self,
        loop: VirtualLoop,
        story: Story,
        seed: str,
        cluster: Callable[[], Cluster],
        reports: Reports,
        failed: Callable[[str, str], None],
        *,
        name: str = "operator",
        lease: str = LEASE,
    ) -> None:
        self.name = name
        self.lease = lease
        self.began = 0.0
        """When the leader started."""
        self._loop = loop
        self._story = story
        self._seed = seed
        self.cluster = cluster
        """Makes the connection of the next process."""
        self._reports = reports
        self._failed = failed
        self._starts = 0
        self._pause = RESTARTS[0]
        self.process: Process | None = None
        self.processes: list[Process] = []
        self.metrics: OperatorMetrics | None = None
        self._runtime: Runtime | None = None
        self.worker_image = "worker:1"
        """Of the release that the next process is."""

    def start(self) -> None:
        """Start a leader."""
        if self.process is not None:
            return
        self._starts += 1
        self.began = self._loop.now
        name = f"{self.name}.{self._starts}"
        self.process = Process(self._loop, name, random.Random(f"{self._seed}:{name}"), machine=self.name)
        self.processes.append(self.process)
        self._begin(self.process)

    def _begin(self, process: Process) -> None:
        self._story.tell(process.name, "leads")
        process.start(self._run(process))

    def oldest_pass(self) -> float:
        """Seconds since the last pass over the object that has waited longest, as the probe sees it."""
        process, metrics = self.process, self.metrics
        return 0.0 if process is None or metrics is None else float(process.run(metrics.oldest_pass))

    def shown(self, uid: str) -> int:
        """The version of an object that the operator's page for people shows now; 0 where it shows none."""
        served = () if self._runtime is None else self._runtime.served()
        versions = (body["metadata"]["resourceVersion"] for body, _ in served if body["metadata"]["uid"] == uid)
        return max(map(int, versions), default=0)

    def kill(self, away: float | None) -> None:
        """Kill the leader; another one leads after `away` seconds, or never."""
        process, self.process, self._runtime = self.process, None, None
        if process is not None:
            process.kill()
            self._loop.network.process_died(process, power=False)
            if away is not None:
                self._loop.after(away, self.start)

    def end(self, away: float, orderly: bool) -> None:
        """End the leader: at once, or in order, as SIGTERM does; another one leads after `away` seconds."""
        process, runtime = self.process, self._runtime
        if process is None or runtime is None or not orderly:
            self.kill(away)
            return
        self._story.tell(process.name, "is asked to end")
        process.start(self._close(process, runtime, away), "close")

    async def _close(self, process: Process, runtime: Runtime, away: float) -> None:
        await runtime.close()
        if self.process is process:
            self.kill(away)

    async def _run(self, process: Process, may_write: Callable[[], bool] | None = None) -> None:
        self.metrics = OperatorMetrics()
        settings = Settings(
            worker_image=self.worker_image, spark_image="spark:1", lease=self.lease, rollout_budget=ROLLOUT_BUDGET
        )
        entropy = random.Random(process.chance.random())
        runtime = Runtime(settings, self.metrics, entropy=entropy, may_write=may_write)
        cluster = self.cluster()
        await runtime.open(cluster, pages=self._reports.read)
        self._runtime = runtime
        role = KopfRole(runtime, cluster, lambda text: self._failed("bug", f"{process.name}: {text}"))
        try:
            await role.run()
        except KopfEnded as error:
            lived, pause = self._loop.now - self.began, self._pause
            self._pause = RESTARTS[0] if lived > FORGIVEN else min(2 * pause, RESTARTS[1])
            self._story.tell(process.name, "ends: %s; its container is started again in %d s", error, pause)
            self.kill(pause)
