"""A program of PySpark that reads tables, or follows tunnels, one after the other.

    python -m tests.bench.programs.spark_program JSON

JSON has `kind` (a name of `KINDS`), `options` of the source, and more of them for the `first` run alone, `runs`: a
table, or a tunnel, for each run, `schema` for reading, `rows` by table, and `folder` for what is written. A JSON line
with `rows` ends each run.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from ots_tunnel.credentials import FileCredentials
from ots_tunnel.snapshot.document import SnapshotConfig
from ots_tunnel.spark import register
from ots_tunnel.spark.cluster import ClusterAccess, ConfigMaps
from ots_tunnel.spark.lake import ChangeLog
from ots_tunnel.spark.snapshot import driver as snapshot
from ots_tunnel.tables import TableAdmin
from ots_tunnel.tables.compatibility import planned_schema
from tests.support.kube.config_maps import ConfigMapServer, serving

_RECORD = "/api/v1/namespaces/shop/configmaps/copy"

Run = Callable[[SparkSession, dict[str, Any], Path], int]


def read_into_noop(spark: SparkSession, given: dict[str, Any], folder: Path) -> int:
    """Read a table into nothing; Spark counts the rows that arrived."""
    return _written(spark, given, lambda writer: writer.format("noop").mode("overwrite").save())


def read_into_parquet(spark: SparkSession, given: dict[str, Any], folder: Path) -> int:
    """Read a table into Parquet files."""
    return _written(spark, given, lambda writer: writer.parquet(str(folder)))


def read_into_delta(spark: SparkSession, given: dict[str, Any], folder: Path) -> int:
    """Read a table into a table of Delta."""
    return _written(spark, given, lambda writer: writer.format("delta").save(str(folder)))


def copy_table(spark: SparkSession, given: dict[str, Any], folder: Path) -> int:
    """Copy a table into another one by the snapshot's driver, with its record in a server of this process."""
    options = given["options"]
    keys = {"directory": options["credentialsDirectory"]}
    place = {"endpoint": options["endpoint"], "instance": options["instance"], "credentials": keys}
    copy = f"copy_{folder.name}"
    admin = TableAdmin(options["endpoint"], options["instance"], FileCredentials(Path(keys["directory"])))
    schema = admin.describe(options["table"])
    assert schema is not None
    admin.create(planned_schema(schema, copy))
    admin.close()
    config = SnapshotConfig.model_validate(
        {
            "source": {**place, "table": options["table"]},
            "sink": {"tablestore": {**place, "table": copy}},
            "progress": {"namespace": "shop", "configMap": "copy", "label": "tunnel-1"},
        }
    )
    server = ConfigMapServer()
    server.make(_RECORD)
    folder.mkdir()
    token = folder / "token"
    token.write_text("token")
    with serving(server) as url:
        snapshot.run(config, spark, ConfigMaps(ClusterAccess(url, token), "shop"))
    return int(given["rows"][options["table"]])


def follow_into_noop(spark: SparkSession, given: dict[str, Any], folder: Path) -> int:
    """Follow a tunnel to its end into nothing."""
    return _followed(spark, given, folder, lambda writer: writer.format("noop"))


def follow_into_parquet(spark: SparkSession, given: dict[str, Any], folder: Path) -> int:
    """Follow a tunnel to its end into Parquet files, by Spark's file sink."""
    return _followed(
        spark, given, folder, lambda writer: writer.format("parquet").option("path", str(folder / "files"))
    )


def follow_into_delta(spark: SparkSession, given: dict[str, Any], folder: Path) -> int:
    """Follow a tunnel to its end into a change log in Delta."""
    return _followed(spark, given, folder, lambda writer: writer.foreachBatch(ChangeLog(str(folder / "table"))))


KINDS: dict[str, Run] = {
    each.__name__: each
    for each in (
        read_into_noop,
        read_into_parquet,
        read_into_delta,
        copy_table,
        follow_into_noop,
        follow_into_parquet,
        follow_into_delta,
    )
}


def _written(spark: SparkSession, given: dict[str, Any], write: Callable[[Any], None]) -> int:
    from pyspark.sql import Observation
    from pyspark.sql.functions import count, lit

    seen = Observation()
    frame = spark.read.format("ots").options(**given["options"]).schema(given["schema"]).load()
    write(frame.observe(seen, count(lit(1)).alias("rows")).write)
    return int(seen.get["rows"])


def _followed(spark: SparkSession, given: dict[str, Any], folder: Path, into: Callable[[Any], Any]) -> int:
    changes = spark.readStream.format("ots").options(**given["options"]).load()
    writer = into(changes.writeStream).option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    rows = 0
    query.awaitTermination()
    for progress in query.recentProgress:
        rows += progress["numInputRows"]
    return rows


def main() -> None:
    given = json.loads(sys.argv[1])
    spark = SparkSession.builder.appName("bench").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", "10000")
    register(spark)
    run = KINDS[given["kind"]]
    for number, name in enumerate(given["runs"]):
        place = {**given["options"], given["of"]: name, **(given.get("first", {}) if not number else {})}
        rows = run(spark, {**given, "options": place}, Path(given["folder"], str(number)))
        print(json.dumps({"rows": rows}), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
