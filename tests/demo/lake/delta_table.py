"""A mirror in Delta, read by a Spark of this process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession

from tests.cluster.local_cluster import ClusterUnavailable
from tests.demo.lake.comparison import Row
from tests.demo.lake.rows import mirrored_row
from tests.support.lake.lake_jars import JarsUnavailable, lake_jars

#: What a person might ask of the table.
QUESTION = "SELECT carrier, count(*) AS flights FROM {table} GROUP BY carrier ORDER BY flights DESC LIMIT 5"
HISTORY = "DESCRIBE HISTORY {table} LIMIT 5"


class DeltaTable:
    """The table of a folder or a bucket; `close` ends the Spark.

    Args:
        place: of the table.
        key: names of the key's columns.
        settings: of the Spark, which a bucket needs.

    Raises:
        ClusterUnavailable: the machine lacks Java, or Delta's jars cannot be fetched.
    """

    def __init__(self, place: str, key: Sequence[str], settings: Mapping[str, str]) -> None:
        self._place = f"delta.`{place}`"
        self._key = tuple(key)
        self._spark = _session(settings)

    def close(self) -> None:
        """End the Spark."""
        self._spark.stop()

    def rows(self) -> Iterator[Row]:
        """Yield key, and value and version of each attribute, in the order of the keys."""
        ordered = self._spark.sql(f"SELECT * FROM {self._place} ORDER BY {', '.join(self._key)}")
        for found in ordered.toLocalIterator(prefetchPartitions=True):
            yield mirrored_row(found.asDict(recursive=True), self._key)

    def answers(self) -> Iterator[tuple[str, list[str], list[tuple[Any, ...]]]]:
        """Yield questions, and names and rows of their answers."""
        yield QUESTION, *self._query(QUESTION)
        yield HISTORY, *self._query(HISTORY, "version", "timestamp", "operation")

    def _query(self, statement: str, *columns: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Return names and rows of a statement, in which `{table}` is the table: of all columns, or of these."""
        found = self._spark.sql(statement.format(table=self._place)).select(*(columns or ("*",)))
        return found.columns, [tuple(row) for row in found.collect()]


def _session(more: Mapping[str, str]) -> SparkSession:
    try:
        jars = lake_jars()
    except JarsUnavailable as reason:
        raise ClusterUnavailable(str(reason)) from reason
    settings = {
        "spark.jars": jars,
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "8",
        "spark.databricks.delta.snapshotPartitions": "2",
        # errors come as exceptions; at ERROR Delta writes a line for each read of a table with marks
        "spark.log.level": "FATAL",
        "spark.ui.showConsoleProgress": "false",
        **more,
    }
    builder = SparkSession.builder.master("local[2]").appName("look at a mirror")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
