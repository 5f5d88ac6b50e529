"""Starts the query of a document into a table of a lake: a log of every change, or a mirror of the source table.

A mirror of a tunnel of type Stream begins with the existing rows, which its driver writes before it follows the tunnel.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ots_tunnel.errors import SinkError
from ots_tunnel.query.document import QueryConfig
from ots_tunnel.query.files import DELTA, ICEBERG, QueryFilesConfig, table_place
from ots_tunnel.spark.failures import line_of_job
from ots_tunnel.spark.lake import ChangeLog, Delta, Iceberg, Mirror, Upkeep
from ots_tunnel.spark.lake.checkpoints import check_age
from ots_tunnel.spark.lake.growth import ADD, MAP, REFUSE
from ots_tunnel.spark.lake.tables.lake_table import LakeTable
from ots_tunnel.spark.query.session import check_buckets

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: What happens to attributes without a column, by the word of the document.
_GROWTH: Final = {None: ADD, "Add": ADD, "Map": MAP, "Error": REFUSE}
_PLACES: Final = {DELTA: Delta, ICEBERG: Iceberg}
#: A table takes the compression of its files from the session.
_CODEC: Final = {DELTA: "spark.sql.parquet.compression.codec", ICEBERG: "spark.sql.iceberg.compression-codec"}
_CODECS: Final = {"none": "uncompressed", "gzip": "gzip", "zstd": "zstd"}


def start_lake(config: QueryConfig, spark: SparkSession, source: Mapping[str, str]) -> Any:
    """Start the query; return Spark's `StreamingQuery`.

    Args:
        source: options of the source `ots`.

    Raises:
        QueryRefused: a session without the format, or without Hadoop's part for a bucket, another table in the place,
            or a source table that no mirror can equal.
        ConfigError: the source is not there. SinkError: the bucket does not answer, or refuses. TunnelError: the same
            of the service.
        PySparkException: Spark refuses it.
    """
    files = config.sink.files
    # with its scheme, as the table has its own: Spark takes a path without one for one of `spark.hadoop.fs.defaultFS`
    place, checkpoint = _PLACES[files.format](table_place(files)), f"file://{config.checkpoint_directory}"
    table = place.seen_by(spark)
    table.check_session()
    if files.is_bucket:
        check_buckets(spark)
        _look_into_bucket(table, files)
    spark.conf.set(_CODEC[files.format], _CODECS[files.compression])
    growth, trigger = _GROWTH[files.unknown_columns], f"{config.trigger_interval_seconds} seconds"
    if files.mode == "Mirror":
        own = {name: value for name, value in source.items() if name != "columns"}
        mirror = Mirror(spark, own, place, columns=source.get("columns", ""), growth=growth, upkeep=Upkeep())
        mirror.prepare()
        return mirror.start(checkpoint, processingTime=trigger)
    check_age(table, checkpoint)
    changes = spark.readStream.format("ots").options(**source).load()
    log = ChangeLog(place, growth, Upkeep(), "/".join((source["instance"], source["table"], source["tunnel"])))
    writer = changes.writeStream.foreachBatch(log)
    return writer.option("checkpointLocation", checkpoint).trigger(processingTime=trigger).start()


def _look_into_bucket(table: LakeTable, files: QueryFilesConfig) -> bool:
    """Whether there is a table: a first call, so that what Hadoop says stands beside the fields that it may be about.

    Raises:
        SinkError: see `start_lake`.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        return table.exists
    except (Py4JError, PySparkException) as error:
        raise SinkError(
            f"sink.files: the bucket of {files.url!r} at {files.endpoint or 'Amazon S3'} does not answer as it should: "
            f"{line_of_job(error)}; it may be url, endpoint, region, bucketInHost or the keys of credentials"
        ) from error
