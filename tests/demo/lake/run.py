"""Steps of the lake demo: Spark keeps a mirror of a table while a writer changes it and a driver is killed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from typing import Any

import yaml
from rich.progress import Progress, TextColumn
from rich.table import Table

from ots_tunnel.client.sync_table import SyncTableClient
from ots_tunnel.credentials import static_credentials
from ots_tunnel.demo.flights import KEY_COLUMNS
from ots_tunnel.demo.writer import ChangeWriter
from ots_tunnel.model import Credentials, Marker, PrimaryKey
from ots_tunnel.protocol.plainbuffer.codec import decode_rows
from tests.cluster import local_cluster
from tests.demo import environment
from tests.demo.emulator_admin import EmulatorAdmin
from tests.demo.environment import Endpoints, Images
from tests.demo.kube import DemoError, Kube, wait_until
from tests.demo.lake.bucket import Bucket
from tests.demo.lake.comparison import Comparison, Row, compare
from tests.demo.lake.delta_table import DeltaTable
from tests.demo.lake.iceberg_table import IcebergTable
from tests.demo.lake.lake_object import DRIVER, FOLDER, NAME, lake_object
from tests.demo.lake.volumes import Volumes
from tests.demo.loading import load
from tests.demo.progress import Story
from tests.demo.scenario import ACCESS_KEY_ID, ACCESS_KEY_SECRET, Scenario
from tests.demo.workload import Workload

#: `sink.files` of the object, beside the url.
FILES = {"mode": "Mirror", "compression": "zstd"}
#: Seconds after the last change in which a lag must have shown: the driver records one at most every 15 s, and the
#: operator looks as often.
SETTLED = 40

BucketOf = Callable[[local_cluster.Cluster], AbstractContextManager[Bucket]]


@dataclass
class Result:
    """Measured values for the final summary."""

    rows: int = 0
    changes: dict[str, int] = field(default_factory=dict)
    base_seconds: float = 0
    recovery_seconds: float = 0
    catch_up_seconds: float = 0
    batches: int = 0
    comparison: Comparison = field(default_factory=Comparison)


class LakeDemo:
    """One run of a scenario on the local cluster."""

    def __init__(
        self,
        scenario: Scenario,
        kube: Kube,
        endpoints: Endpoints,
        volumes: Volumes,
        story: Story,
        images: Images,
        bucket: Bucket | None = None,
    ) -> None:
        self._scenario = scenario
        self._images = images
        self._bucket = bucket
        self._kube = kube
        self._endpoints = endpoints
        self._volumes = volumes
        self._story = story
        self._workload = Workload(scenario, endpoints.data)
        self.result = Result()

    def load(self) -> None:
        """Create the source table, which keeps one version, and load it."""
        self.result.rows = load(self._scenario, EmulatorAdmin(self._endpoints.admin), self._workload, self._story)

    def mirror(self) -> None:
        """Apply the object; kill the driver while changes are merged."""
        scenario, story = self._scenario, self._story
        with ExitStack() as stack:
            writer = self._workload.writer()
            writer.start()
            stack.callback(writer.stop)
            self._kube.apply(*self._volumes.manifests())
            if self._bucket is not None:
                self._kube.apply(self._bucket.manifest(scenario.namespace))
            stack.enter_context(self._kube.watching("-n", scenario.namespace, "ott", show=story.note))
            self._existing_rows()
            self._kill_the_driver()
            self._catch_up(writer)

    def compare(self) -> None:
        """Compare every row, value and version of the table with the mirror, and ask the mirror something."""
        table = self._table()
        try:
            columns = (TextColumn("   {task.description} {task.completed:,} rows"),)
            with Progress(*columns, console=self._story.console) as progress:
                task = progress.add_task("compared", total=None)
                source = self._source_rows()
                self.result.comparison = compare(
                    source, table.rows(), lambda rows: progress.update(task, completed=rows)
                )
            for statement, names, rows in table.answers():
                self._show(statement, names, rows)
        finally:
            table.close()

    def _table(self) -> DeltaTable | IcebergTable:
        if self._scenario.table_format == "Iceberg":
            return IcebergTable(self._kube, self._volumes, FOLDER, KEY_COLUMNS, self._images.iceberg)
        if self._bucket is not None:
            return DeltaTable(self._bucket.place, KEY_COLUMNS, self._bucket.settings)
        return DeltaTable(str(self._volumes.files / FOLDER), KEY_COLUMNS, {})

    def _existing_rows(self) -> None:
        with self._story.phase("the mirror begins", "existing rows as one commit, while a writer keeps changing them"):
            begin = time.monotonic()
            place = {} if self._bucket is None else self._bucket.files
            files = FILES | {"format": self._scenario.table_format} | place
            document = lake_object(self._scenario, files, memory="2g")
            self._story.command("kubectl", "apply", "-f", "-")
            self._story.document(yaml.safe_dump(document, sort_keys=False))
            self._kube.apply(document)
            self._await("the first batch of changes is merged", lambda status: _batch(status) >= 0)
            self.result.base_seconds = time.monotonic() - begin

    def _kill_the_driver(self) -> None:
        with self._story.phase("the driver is killed", "the next one goes on from its checkpoints"):
            begin, batch = time.monotonic(), _batch(self._status())
            command = ("-n", self._scenario.namespace, "delete", "pod", DRIVER, "--force", "--grace-period=0")
            self._story.command("kubectl", *command)
            self._kube.kubectl(*command)
            self._await("a further batch is merged", lambda status: _batch(status) > batch)
            self.result.recovery_seconds = time.monotonic() - begin

    def _catch_up(self, writer: ChangeWriter) -> None:
        with self._story.phase("the writer stops, the mirror catches up"):
            self.result.changes = {str(kind): count for kind, count in writer.stop(timeout=60).items()}
            begin, moment = time.monotonic(), time.time()
            self._await("the status says caught up", lambda status: _has_caught_up(status, moment + SETTLED))
            self.result.catch_up_seconds = time.monotonic() - begin
            self.result.batches = _batch(self._status()) + 1

    def _source_rows(self) -> Iterator[Row]:
        scenario = self._scenario
        credentials = static_credentials(Credentials(ACCESS_KEY_ID, ACCESS_KEY_SECRET))
        client = SyncTableClient(self._endpoints.data, scenario.instance, credentials)
        start: PrimaryKey | None = tuple((name, Marker.INF_MIN) for name in KEY_COLUMNS)
        end: PrimaryKey = tuple((name, Marker.INF_MAX) for name in KEY_COLUMNS)
        try:
            while start is not None:
                page = client.get_range(scenario.table, start, end, max_versions=1)
                for row in decode_rows(page.rows):
                    cells = {cell.name: (cell.value, cell.timestamp_ms) for cell in row.columns}
                    yield tuple(value for _, value in row.primary_key), cells
                start = page.next_start
        finally:
            client.close()

    def _show(self, statement: str, names: list[str], rows: list[tuple[Any, ...]]) -> None:
        self._story.command("SQL:", statement.format(table="the mirror"))
        table = Table(*names)
        for row in rows:
            table.add_row(*map(str, row))
        self._story.console.print(table)

    def _await(self, what: str, reached: Any) -> None:
        def explain() -> str:
            status = self._status()
            ready = next((one for one in status.get("conditions", []) if one["type"] == "Ready"), {})
            return f"{status.get('spark')}, Ready {ready.get('status')}: {ready.get('message')}"

        wait_until(what, lambda: bool(reached(self._status())), self._scenario.patience, explain)

    def _status(self) -> dict[str, Any]:
        status: dict[str, Any] = self._kube.get("-n", self._scenario.namespace, "ott", NAME).get("status", {})
        for condition in status.get("conditions", []):
            if condition["type"] == "Stalled" and condition["status"] == "True":
                raise DemoError(f"the object is stalled: {condition['reason']}: {condition['message']}")
        return status


def _batch(status: dict[str, Any]) -> int:
    """Return the number of the last batch; -1 while no driver tells one."""
    return int(status.get("spark", {}).get("batchId", -1))


def _has_caught_up(status: dict[str, Any], moment: float) -> bool:
    return time.time() >= moment and bool(status.get("lag", {}).get("caughtUp"))


def run(scenario: Scenario, story: Story, bucket_of: BucketOf | None = None) -> Result:
    """Run the scenario on the local cluster and return the measured values.

    Args:
        bucket_of: gives the started cluster a bucket in the place of the volume of files.

    Raises:
        DemoError: a wait timed out, or a command failed.
    """
    with story.phase("programs and images", "built once per version and kept in the cache"):
        local_cluster.run_script("packages.sh", timeout=900)
        local_cluster.build("cluster", "spark")
        images = environment.build_images(scenario)
    with story.phase("Kubernetes", "API server, scheduler, kubelet, containerd"):
        kube = environment.start_local_cluster(scenario, images)
    cluster = local_cluster.Cluster(scenario.cluster)
    with ExitStack() as stack:
        with story.phase("emulator", "Tablestore and Tunnel Service, in the cluster"):
            endpoints = stack.enter_context(environment.emulator(kube, scenario, images, story))
        bucket = None if bucket_of is None else stack.enter_context(bucket_of(cluster))
        volumes = Volumes(cluster.state / "lake", scenario.namespace)
        demo = LakeDemo(scenario, kube, endpoints, volumes, story, images, bucket)
        with story.phase("load the table", "through the vendor's Python SDK"):
            demo.load()
        with story.phase("install both operators", "the Spark operator, and ours"):
            cluster.install_spark_operator(scenario.namespace, images.spark)
            environment.install_operator(kube, scenario, images, story)
        demo.mirror()
        with story.phase("compare the mirror with the table", "every row, value and version"):
            demo.compare()
    return demo.result
