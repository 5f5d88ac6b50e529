"""Starts the query of a document into a Delta table: a log of every change, or a mirror of the source table.

A mirror of a tunnel of type Stream begins with the existing rows, which its driver writes before it follows the tunnel.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ots_tunnel.query.document import QueryConfig
from ots_tunnel.query.files import files_folder
from ots_tunnel.spark.lake import ChangeLog, Mirror, Upkeep
from ots_tunnel.spark.lake.checkpoints import check_age
from ots_tunnel.spark.lake.growth import ADD, MAP, REFUSE
from ots_tunnel.spark.lake.tables import check_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: What happens to attributes without a column, by the word of the document.
_GROWTH: Final = {None: ADD, "Add": ADD, "Map": MAP, "Error": REFUSE}
#: Delta takes the compression of its files from the session.
_CODEC: Final = "spark.sql.parquet.compression.codec"
_CODECS: Final = {"none": "uncompressed", "gzip": "gzip", "zstd": "zstd"}


def start_delta(config: QueryConfig, spark: SparkSession, source: Mapping[str, str]) -> Any:
    """Start the query; return Spark's `StreamingQuery`.

    Args:
        source: options of the source `ots`.

    Raises:
        QueryRefused: a session without Delta, another table in the folder, or a source table that no mirror can equal.
        ConfigError: the source is not there. TunnelError: the service does not answer, or refuses.
        PySparkException: Spark refuses it.
    """
    check_session(spark)
    files = config.sink.files
    spark.conf.set(_CODEC, _CODECS[files.compression])
    # with their scheme: Spark takes a path without one for a folder of `spark.hadoop.fs.defaultFS`
    path, checkpoint = f"file://{files_folder(files)}", f"file://{config.checkpoint_directory}"
    growth, trigger = _GROWTH[files.unknown_columns], f"{config.trigger_interval_seconds} seconds"
    if files.mode == "Mirror":
        own = {name: value for name, value in source.items() if name != "columns"}
        mirror = Mirror(spark, own, path, columns=source.get("columns", ""), growth=growth, upkeep=Upkeep())
        mirror.prepare()
        return mirror.start(checkpoint, processingTime=trigger)
    check_age(spark, path, checkpoint)
    changes = spark.readStream.format("ots").options(**source).load()
    writer = changes.writeStream.foreachBatch(ChangeLog(path, growth, Upkeep()))
    return writer.option("checkpointLocation", checkpoint).trigger(processingTime=trigger).start()
