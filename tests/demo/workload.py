"""The source table of the demo and the writer that keeps changing it, both through the vendor's Python SDK."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice

from rich.progress import Progress

from ots_tunnel.demo.changes import DemoChange, changes
from ots_tunnel.demo.flights import FLIGHTS, find_flights, flights_schema, read_flights, read_keys
from ots_tunnel.demo.load import Target, load_flights
from ots_tunnel.demo.writer import ChangeWriter
from ots_tunnel.model import Credentials, PrimaryKey
from tests.demo.scenario import ACCESS_KEY_ID, ACCESS_KEY_SECRET, Scenario

#: Seed of the writer's sequence of changes.
SEED = 2013


class Workload:
    """Loader and writer of one table."""

    def __init__(self, scenario: Scenario, endpoint: str) -> None:
        self._scenario = scenario
        credentials = Credentials(ACCESS_KEY_ID, ACCESS_KEY_SECRET)
        self._target = Target(endpoint, scenario.instance, credentials, scenario.table)
        # Cell versions lie near the present, so that the source table can keep the default check of their deviation.
        self._version_ms = int(time.time() * 1000)
        self._sequence: Iterator[DemoChange] | None = None

    def load(self, progress: Progress) -> int:
        """Create the table anew, load it and return the number of rows."""
        scenario = self._scenario
        admin = self._target.admin()
        try:
            for table in (scenario.table, scenario.destination):
                if admin.describe(table) is not None:
                    admin.delete(table)
            admin.create(flights_schema(scenario.table, scenario.max_versions))
        finally:
            admin.close()
        rows = scenario.rows or FLIGHTS
        task = progress.add_task("rows loaded", total=rows)
        return load_flights(
            self._target,
            version_ms=self._version_ms,
            rows=rows,
            progress=lambda stored: progress.update(task, completed=stored),
        )

    def writer(self, rate: float | None = None) -> ChangeWriter:
        """Return a writer that is not started yet; one after another, each continues where the one before stopped.

        Args:
            rate: changes per second; the scenario's by default.
        """
        if self._sequence is None:
            keys, most = self._keys(), self._scenario.max_versions
            self._sequence = changes(SEED, keys, base_version_ms=self._version_ms, max_versions=most)
        rate = float(self._scenario.changes_per_second) if rate is None else rate
        return ChangeWriter(self._target.admin(), self._scenario.table, self._sequence, rate=rate)

    def _keys(self) -> list[PrimaryKey]:
        if self._scenario.rows is None:
            return list(read_keys(find_flights()))
        # The rows that the loader's first process writes, so that the writer changes existing rows.
        rows = read_flights(find_flights(), self._version_ms, share=0, shares=2)
        return [row.primary_key for row in islice(rows, self._scenario.rows // 2)]
