"""One cluster, one emulator, one source table and one installed chart, which every long scenario shares."""

from __future__ import annotations

import asyncio
import io
import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress

from ots_tunnel.client.table import TableClient
from ots_tunnel.credentials import static_credentials
from ots_tunnel.demo.writer import ChangeWriter
from ots_tunnel.model import Credentials
from ots_tunnel.tables import TableAdmin
from ots_tunnel.verify.compare import Comparison, compare_tables
from tests.cluster.local_cluster import Cluster
from tests.demo import environment
from tests.demo.emulator_admin import EmulatorAdmin
from tests.demo.environment import Endpoints, Images
from tests.demo.kube import Kube
from tests.demo.progress import Story
from tests.demo.scenario import ACCESS_KEY_ID, ACCESS_KEY_SECRET, Scenario
from tests.demo.workload import Workload

#: AccessKey pairs of the objects; that of the demo is the writer's and stays.
FORMER_KEY = ("copy-id", "copy-secret")
LATER_KEY = ("copy-id-2", "copy-secret-2")

_OWN_KEY = Credentials(ACCESS_KEY_ID, ACCESS_KEY_SECRET)


@dataclass
class Fleet:
    """What the scenarios share, and their steps, which name themselves when they fail."""

    cluster: Cluster
    kube: Kube
    scenario: Scenario
    images: Images
    endpoints: Endpoints
    workload: Workload
    story: Story
    admin: EmulatorAdmin = field(init=False)

    def __post_init__(self) -> None:
        self.admin = EmulatorAdmin(self.endpoints.admin)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Run one step and print how long it took; when it fails, the error says which it was."""
        begin = time.monotonic()
        try:
            yield
        except Exception as error:
            error.add_note(f"in the step: {name}")
            raise
        finally:
            self.story.note(f"{time.monotonic() - begin:4.0f} s  {name}")

    def ott(self, *words: str) -> str:
        """Run `kubectl ott` for the objects' namespace, as a person does."""
        path = os.pathsep.join((str(Path(sys.executable).parent), self.kube.environment["PATH"]))
        kube = replace(self.kube, environment=self.kube.environment | {"PATH": path})
        return kube.kubectl("ott", *words, "-n", self.scenario.namespace, timeout=330)

    @contextmanager
    def writing(self, rate: float | None = None) -> Iterator[ChangeWriter]:
        """Change the source table while the block runs.

        Args:
            rate: changes per second; that of the scenario by default.
        """
        writer = self.workload.writer(rate)
        writer.start()
        try:
            yield writer
        finally:
            writer.stop(timeout=120)

    def tables(self) -> TableAdmin:
        """Return a connection to the tables of the instance, which the caller closes."""
        return TableAdmin(self.endpoints.data, self.scenario.instance, static_credentials(_OWN_KEY))

    def drop(self, table: str) -> None:
        """Delete a table."""
        admin = self.tables()
        try:
            admin.delete(table)
        finally:
            admin.close()

    def compare(self, first: str, second: str) -> Comparison:
        """Compare every row, cell and version of two tables."""
        return asyncio.run(self._compare(first, second))

    async def _compare(self, first: str, second: str) -> Comparison:
        client = TableClient(self.endpoints.data, self.scenario.instance, static_credentials(_OWN_KEY))
        try:
            return await compare_tables(client, first, client, second)
        finally:
            await client.close()

    def tunnels(self) -> list[dict[str, Any]]:
        """Return the tunnels of the service, as its admin port shows them."""
        (instance,) = self.admin.get("/state")["instances"]
        found: list[dict[str, Any]] = instance["tunnels"]
        return found


@contextmanager
def started(cluster: Cluster, images: Images) -> Iterator[Fleet]:
    """Start the cluster, load the source table and install the chart, as `make demo` does.

    The Spark operator is installed as well where there is an image of Spark.
    """
    keys = tuple(f"{key}:{secret}" for key, secret in (FORMER_KEY, LATER_KEY))
    scenario = Scenario(
        cluster=cluster.name, rows=6000, poll_seconds=3, changes_per_second=200, patience=180, further_keys=keys
    )
    story = Story()
    begin = time.monotonic()
    kube = environment.start_local_cluster(scenario, images)
    with ExitStack() as stack:
        endpoints = stack.enter_context(environment.emulator(kube, scenario, images, story))
        workload = Workload(scenario, endpoints.data)
        fleet = Fleet(cluster, kube, scenario, images, endpoints, workload, story)
        path = {"instance": scenario.instance, "table": scenario.table}
        fleet.admin.post("/partitions", **path, count=scenario.partitions)
        workload.load(Progress(console=Console(file=io.StringIO())))
        if images.spark:
            cluster.install_spark_operator(scenario.namespace, images.spark)
        environment.install_operator(kube, scenario, images, story)
        story.note(f"cluster, emulator, table and chart are there after {time.monotonic() - begin:.0f} s")
        yield fleet
