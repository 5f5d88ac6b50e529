"""The environment in which a program of PySpark runs on one core, with Delta's jars."""

from __future__ import annotations

import sys

from tests.bench.start import MachineUnfit
from tests.support.lake.lake_jars import JarsUnavailable, lake_jars
from tests.support.programs.processes import inherited_environment

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
    try:
        jars = lake_jars()
    except JarsUnavailable as reason:
        raise MachineUnfit(f"no jars of Delta: {reason}") from reason
    confs = " ".join(f"--conf {name}={value}" for name, value in _SETTINGS.items())
    arguments = f"--master local[1] --jars {jars} {confs} pyspark-shell"
    return inherited_environment(PYSPARK_SUBMIT_ARGS=arguments, PYSPARK_PYTHON=sys.executable)
