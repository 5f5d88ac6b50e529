"""Names and numbers of the demo; the tests run the same scenario in other sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ots_tunnel.demo.flights import MAX_VERSIONS

#: AccessKey pair of the emulator. It protects no data, but the emulator refuses a wrong pair as the service does.
ACCESS_KEY_ID = "demo-id"
ACCESS_KEY_SECRET = "demo-secret"

DATA_PORT = 8800
ADMIN_PORT = 8801


@dataclass(frozen=True, slots=True)
class Scenario:
    """One run: a table is copied while a writer changes it and workers come and go; then both tables are compared."""

    cluster: str = "ott-demo"
    namespace: str = "demo"
    operator_namespace: str = "ots-tunnel-system"
    instance: str = "demo"
    table: str = "flights"
    destination: str = "flights_copy"
    name: str = "flights"
    #: workers, or spark for the existing rows of the copy; lake: no copy, but a mirror by Spark alone.
    engine: Literal["workers", "spark", "lake"] = "workers"
    #: Of the mirror.
    table_format: Literal["Delta", "Iceberg"] = "Delta"
    #: Rows of the flights table to load; None means all 336,776.
    rows: int | None = None
    partitions: int = 8
    changes_per_second: int = 500
    replicas: int = 2
    scaled_replicas: int = 4
    heartbeat_interval_seconds: int = 5
    heartbeat_timeout_seconds: int = 15
    #: Whether workers are added and one is killed during the copy.
    disturbed: bool = True
    #: Seconds between two polls, and between two writes of figures, of the operator; None means its defaults.
    poll_seconds: int | None = None
    #: Further AccessKey pairs, ID:SECRET, that the emulator accepts.
    further_keys: tuple[str, ...] = ()
    #: Longest time of every wait in seconds.
    patience: float = 300

    @property
    def max_versions(self) -> int:
        """Versions that the source table keeps: a mirror in a lake equals a table that keeps one."""
        return 1 if self.engine == "lake" else MAX_VERSIONS

    @property
    def endpoint(self) -> str:
        """Address at which pods reach the emulator."""
        return f"http://ots-emulator.{self.namespace}.svc.cluster.local:{DATA_PORT}"
