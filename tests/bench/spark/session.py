"""The environment in which a program of PySpark runs on one core, with Delta's jars."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.bench.start import MachineUnfit
from tests.support.programs.processes import inherited_environment

_JARS = Path(__file__).parents[2] / "spark" / "lake" / "build_jars.sh"
#: One task at a time; a heap that is large from the start.
_SETTINGS = {
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


def session_environment() -> dict[str, str]:
    """The environment of a program.

    Raises:
        MachineUnfit: there is no Java, or the jars cannot be fetched.
    """
    built = subprocess.run([_JARS], capture_output=True, text=True, check=False)
    if built.returncode:
        raise MachineUnfit(f"no jars of Delta: {built.stderr.strip().splitlines()[-1]}")
    jars = ",".join(sorted(map(str, Path(built.stdout.strip()).glob("*.jar"))))
    confs = " ".join(f"--conf {name}={value}" for name, value in _SETTINGS.items())
    arguments = f"--master local[1] --jars {jars} {confs} pyspark-shell"
    return inherited_environment(PYSPARK_SUBMIT_ARGS=arguments, PYSPARK_PYTHON=sys.executable)
