"""Steps of the demo from start to end; the scenario's numbers decide its size."""

from __future__ import annotations

import asyncio
import shlex
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import yaml
from rich.progress import Progress, TextColumn
from rich.table import Table

from ots_tunnel.client.table import TableClient
from ots_tunnel.credentials import static_credentials
from ots_tunnel.demo.writer import ChangeWriter
from ots_tunnel.model import Credentials
from ots_tunnel.verify.compare import Comparison, compare_tables
from tests.cluster import local_cluster
from tests.demo import environment, objects
from tests.demo.emulator_admin import EmulatorAdmin, HandOverCounter
from tests.demo.environment import Endpoints, Images
from tests.demo.kube import DemoError, Kube, wait_until
from tests.demo.loading import load
from tests.demo.progress import Story
from tests.demo.scenario import ACCESS_KEY_ID, ACCESS_KEY_SECRET, Scenario
from tests.demo.workload import Workload


class _PlainDumper(yaml.SafeDumper):
    """Writes repeated values in full instead of by anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


@dataclass
class Result:
    """Measured values for the final summary."""

    rows: int = 0
    changes: dict[str, int] = field(default_factory=dict)
    base_seconds: float = 0
    recovery_seconds: float = 0
    catch_up_seconds: float = 0
    hand_overs: int = 0
    comparison: Comparison = field(default_factory=Comparison)


class Demo:
    """One run of a scenario on one cluster."""

    def __init__(self, scenario: Scenario, kube: Kube, endpoints: Endpoints, story: Story) -> None:
        self._scenario = scenario
        self._kube = kube
        self._endpoints = endpoints
        self._story = story
        self._admin = EmulatorAdmin(endpoints.admin)
        self._workload = Workload(scenario, endpoints.data)
        self.result = Result()

    def load(self) -> None:
        """Create the source table and load it through the vendor's SDK."""
        self.result.rows = load(self._scenario, self._admin, self._workload, self._story)

    def copy(self) -> None:
        """Apply the object; during the copy split a partition, scale the workers and kill one."""
        scenario, story = self._scenario, self._story
        with ExitStack() as stack:
            hand_overs = stack.enter_context(HandOverCounter(self._admin))
            writer = self._workload.writer()
            writer.start()
            stack.callback(writer.stop)
            story.command("kubectl", "-n", scenario.namespace, "get", "ott", "--watch")
            stack.enter_context(self._kube.watching("-n", scenario.namespace, "ott", show=story.note))
            self._existing_rows()
            if scenario.disturbed:
                self._scale()
                self._kill_a_worker()
            self._catch_up(writer)
            self.result.hand_overs = hand_overs.count

    def compare(self) -> None:
        """Compare every row of both tables."""
        columns = (TextColumn("   {task.description} {task.completed:,} rows"),)
        with Progress(*columns, console=self._story.console) as progress:
            task = progress.add_task("compared", total=None)
            self.result.comparison = asyncio.run(self._compare(lambda rows: progress.update(task, completed=rows)))

    async def _compare(self, report: Any) -> Comparison:
        scenario = self._scenario
        credentials = static_credentials(Credentials(ACCESS_KEY_ID, ACCESS_KEY_SECRET))
        client = TableClient(self._endpoints.data, scenario.instance, credentials)
        try:
            return await compare_tables(client, scenario.table, client, scenario.destination, progress=report)
        finally:
            await client.close()

    def _existing_rows(self) -> None:
        scenario = self._scenario
        with self._story.phase("existing rows are copied", "a writer keeps changing the table"):
            begin = time.monotonic()
            tunnel = objects.tablestore_tunnel(scenario)
            self._story.command("kubectl", "apply", "-f", "-")
            self._story.document(yaml.dump(tunnel, Dumper=_PlainDumper, sort_keys=False))
            self._kube.apply(tunnel)
            self._await("the copy of the existing rows begins", lambda status: status.get("phase") in _COPYING)
            split = self._admin.post("/split", instance=scenario.instance, table=scenario.table)
            self._story.note(f"partition {split['parent']} was split into {', '.join(split['children'])}")
            self._await("the existing rows are copied", lambda status: status.get("phase") == "Streaming")
            self.result.base_seconds = time.monotonic() - begin

    def _scale(self) -> None:
        scenario, count = self._scenario, self._scenario.scaled_replicas
        with self._story.phase(f"scale to {count} workers"):
            self._run("scale", "ott", scenario.name, f"--replicas={count}")
            self._await(f"{count} workers own channels", lambda status: len(self._spread()) == count)
            self._show_spread()

    def _kill_a_worker(self) -> None:
        """Kill a worker's process, then delete its pod: a pod that is only deleted drains and releases its channels."""
        with self._story.phase("a worker is killed", "its channels move after its heartbeat timeout"):
            victim, channels = self._spread().most_common(1)[0]
            begin = time.monotonic()
            self._run("exec", victim, "--", "sh", "-c", "kill -9 -1", may_fail=True)
            self._run("delete", "pod", victim, "--force", "--grace-period=0")
            wait_until(
                f"the {channels} channels of {victim} have other owners",
                lambda: victim not in (spread := self._spread()) and sum(spread.values()) >= self._open_channels(),
                self._scenario.patience,
            )
            self.result.recovery_seconds = time.monotonic() - begin
            self._story.note(f"its {channels} channels have other owners after {self.result.recovery_seconds:.0f} s")
            self._show_spread()

    def _run(self, *words: str, may_fail: bool = False) -> None:
        """Print a kubectl command and run it; `may_fail` is for a command that kills its own container."""
        command = ("-n", self._scenario.namespace, *words)
        self._story.command("kubectl", *(shlex.quote(word) for word in command))
        try:
            self._kube.kubectl(*command)
        except DemoError:
            if not may_fail:
                raise

    def _catch_up(self, writer: ChangeWriter) -> None:
        with self._story.phase("the writer stops, the copy catches up"):
            self.result.changes = {str(kind): count for kind, count in writer.stop(timeout=60).items()}
            stopped = time.time()
            begin = time.monotonic()
            wait_until("every channel is consumed past the last change", lambda: self._consumed(stopped), 120)
            self._await("the status says caught up", _has_caught_up)
            self.result.catch_up_seconds = time.monotonic() - begin

    def _consumed(self, moment: float) -> bool:
        return all(channel["consumePoint"] / 1e9 >= moment for channel in self._stream_channels())

    def _stream_channels(self) -> list[dict[str, Any]]:
        return [
            channel
            for instance in self._admin.get("/state")["instances"]
            for tunnel in instance["tunnels"]
            for channel in tunnel["channels"]
            if channel["type"] == "Stream" and channel["status"] != "TERMINATED"
        ]

    def _open_channels(self) -> int:
        return len(self._stream_channels())

    def _spread(self) -> Counter[str]:
        """Count the channels per worker pod, by the service's assignment."""
        return Counter(_pod(owner) for owner in self._admin.owners().values())

    def _show_spread(self) -> None:
        table = Table("worker", "channels")
        table.columns[1].justify = "right"
        for worker, channels in sorted(self._spread().items()):
            table.add_row(worker, str(channels))
        self._story.console.print(table)

    def _await(self, what: str, reached: Any) -> None:
        def look() -> bool:
            return bool(reached(self._status()))

        def explain() -> str:
            status = self._status()
            ready = next((c for c in status.get("conditions", []) if c["type"] == "Ready"), {})
            return f"phase {status.get('phase')}, Ready {ready.get('status')}: {ready.get('message')}"

        wait_until(what, look, self._scenario.patience, explain)

    def _status(self) -> dict[str, Any]:
        found = self._kube.get("-n", self._scenario.namespace, "ott", self._scenario.name)
        status: dict[str, Any] = found.get("status", {})
        for condition in status.get("conditions", []):
            if condition["type"] == "Stalled" and condition["status"] == "True":
                raise DemoError(f"the object is stalled: {condition['reason']}: {condition['message']}")
        return status


_COPYING = ("BaseData", "Streaming")


def _pod(client: str) -> str:
    """Return the pod's name in a client id: its tag is the first 8 characters of the uid, a dash and that name."""
    tag = client.split("-", 1)[-1]
    return "-".join(tag.split("-")[:3])


def _has_caught_up(status: dict[str, Any]) -> bool:
    return bool(status.get("lag", {}).get("caughtUp")) and status.get("throughput", {}).get("rowsPerSecond") == 0


def run(scenario: Scenario, story: Story, context: str = "") -> Result:
    """Run the scenario and return the measured values.

    Raises:
        DemoError: a wait timed out, or a command failed.
    """
    with story.phase("programs and images", "built once per version and kept in the cache"):
        if not context:
            local_cluster.run_script("packages.sh", timeout=900)
        local_cluster.build("cluster", *(("spark",) if scenario.engine == "spark" else ()))
        images = environment.build_images(scenario)
    with story.phase("Kubernetes", f"context {context}" if context else "API server, scheduler, kubelet, containerd"):
        kube, images = _cluster(scenario, images, context)
    with ExitStack() as stack:
        with story.phase("emulator", "Tablestore and Tunnel Service, in the cluster"):
            endpoints = stack.enter_context(environment.emulator(kube, scenario, images, story))
        demo = Demo(scenario, kube, endpoints, story)
        with story.phase("load the table", "through the vendor's Python SDK"):
            demo.load()
        with story.phase("install the operator"):
            if scenario.engine == "spark" and not context:  # an existing cluster has its own Spark operator
                local_cluster.Cluster(scenario.cluster).install_spark_operator(scenario.namespace, images.spark)
            environment.install_operator(kube, scenario, images, story)
        demo.copy()
        with story.phase("compare both tables", "every row, cell and cell version"):
            demo.compare()
    return demo.result


def _cluster(scenario: Scenario, images: Images, context: str) -> tuple[Kube, Images]:
    if context:
        return environment.use_context(context, images, scenario.namespace)
    return environment.start_local_cluster(scenario, images), images
