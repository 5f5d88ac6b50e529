"""Where a program of PySpark runs: its environment, with Delta's jars, its cores, and the account that it uses."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ots_tunnel.query.settings import BY_FILE_SYSTEM, KEPT_CLASSES, LOG_FILES
from tests.bench.start import MachineUnfit
from tests.support.lake.lake_jars import JarsUnavailable, lake_jars
from tests.support.programs.go_program import ACCOUNT
from tests.support.programs.processes import inherited_environment

#: A heap that is large from the start, and what the driver of a query sets.
_SETTINGS = {
    LOG_FILES: BY_FILE_SYSTEM[0],
    **KEPT_CLASSES,
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.driver.extraJavaOptions": "'-Xms2g -XX:+UseSerialGC'",
}


@dataclass(frozen=True, slots=True)
class SparkHost:
    """What programs of one measurement share.

    Args:
        folder: for what they write; the keys of the account are in it.
        jars: see `tests.support.lake.lake_jars`.
        server_core: of the emulator.
        core: of driver, JVM and the interpreters of tasks.
    """

    folder: Path
    jars: str
    server_core: int
    core: int

    def environment(self, tasks: int = 1) -> dict[str, str]:
        """Environment variables of a program whose session has as many tasks at a time."""
        confs = " ".join(f"--conf {name}={value}" for name, value in _SETTINGS.items())
        arguments = f"--master local[{tasks}] --jars {self.jars} {confs} pyspark-shell"
        return inherited_environment(PYSPARK_SUBMIT_ARGS=arguments, PYSPARK_PYTHON=sys.executable)

    def account(self, endpoint: str) -> dict[str, str]:
        """Options of a source that name the account."""
        keys = self.folder / "keys"
        keys.mkdir(exist_ok=True)
        (keys / "accessKeyId").write_text(ACCOUNT["key-id"])
        (keys / "accessKeySecret").write_text(ACCOUNT["key-secret"])
        return {"endpoint": endpoint, "instance": "demo", "credentialsDirectory": str(keys)}

    def command(self, program: str, name: str, document: Mapping[str, Any]) -> list[str]:
        """The command of a program of `tests.bench.programs`, with a new folder of this name for what it writes."""
        folder = self.folder / name
        folder.mkdir()
        given = json.dumps({**document, "folder": str(folder)})
        return [sys.executable, "-m", f"tests.bench.programs.{program}", given]


def jars_of_session() -> str:
    """The jars of every session.

    Raises:
        MachineUnfit: there is no Java, or they cannot be fetched.
    """
    try:
        return lake_jars()
    except JarsUnavailable as reason:
        raise MachineUnfit(f"no jars of Delta: {reason}") from reason
