"""Starts the query of a document: the source `ots` into Spark's file sink, or into a table of Delta or Iceberg."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ots_tunnel.errors import QueryRefused
from ots_tunnel.query.document import QueryConfig
from ots_tunnel.query.files import TABLES, QueryFilesConfig, files_folder
from ots_tunnel.query.settings import RESERVED, refused_settings
from ots_tunnel.spark import register
from ots_tunnel.spark.query.lake import start_lake
from ots_tunnel.spark.query.session import log_by_file_system

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Formats of files by their names in Spark.
_FORMATS: Final = {"Parquet": "parquet", "JsonLines": "json"}
#: Types of declared columns by their names in Spark's DDL.
_TYPES: Final = {
    "integer": "BIGINT",
    "double": "DOUBLE",
    "boolean": "BOOLEAN",
    "string": "STRING",
    "binary": "BINARY",
}


def check_settings(spark: SparkSession) -> None:
    """Refuse a session with settings that break the promise of the files, wherever they come from.

    Raises:
        QueryRefused: names the first of them.
    """
    # the settings of a session begin with those of the program, also with those that are not about SQL
    found = {name: value for name in RESERVED if (value := spark.conf.get(name, ""))}
    for text in refused_settings(found):
        raise QueryRefused(f"spark.conf: {text}")


def start_query(config: QueryConfig, spark: SparkSession, report: Path | None = None) -> Any:
    """Start the query; return Spark's `StreamingQuery`.

    Args:
        report: file that gets the figures of the source; None where Spark shows them.

    Raises:
        PySparkException: Spark or the source refuses it. TunnelError: a table, or what it is to have, does.
    """
    register(spark)
    log_by_file_system(spark)
    source = source_options(config)
    if report is not None:
        source["reportFile"] = str(report)
    if config.sink.files.format in TABLES:
        return start_lake(config, spark, source)
    changes = spark.readStream.format("ots").options(**source).load()
    files = config.sink.files
    writer = changes.writeStream.format(_FORMATS[files.format]).options(**sink_options(config))
    return writer.trigger(processingTime=f"{config.trigger_interval_seconds} seconds").start()


def source_options(config: QueryConfig) -> dict[str, str]:
    """Options of the source `ots`."""
    source, files = config.source, config.sink.files
    options = {
        "endpoint": source.endpoint,
        "instance": source.instance,
        "table": source.table,
        "tunnel": source.tunnel,
        "credentialsDirectory": str(source.credentials.directory),
        "maxBytesPerBatch": str(config.max_bytes_per_batch),
        "heartbeatIntervalSeconds": str(config.heartbeat_interval_seconds),
        "heartbeatTimeoutSeconds": str(config.heartbeat_timeout_seconds),
        "onPossibleGap": config.on_possible_gap.lower(),
    }
    if config.client_tag is not None:
        options["clientTag"] = config.client_tag
    return options if files.columns is None else {**options, "columns": columns_ddl(files)}


def sink_options(config: QueryConfig) -> dict[str, str]:
    """Options of Spark's file sink.

    Paths have their scheme: Spark takes one without for a folder of `spark.hadoop.fs.defaultFS`.
    """
    files = config.sink.files
    return {
        "path": f"file://{files_folder(files)}",
        "checkpointLocation": f"file://{config.checkpoint_directory}",
        "compression": files.compression,
    }


def columns_ddl(files: QueryFilesConfig) -> str:
    """The declared columns as the source's option `columns`."""
    quoted = {column.name: column.name.replace("`", "``") for column in files.columns or ()}
    return ", ".join(f"`{quoted[column.name]}` {_TYPES[column.type]}" for column in files.columns or ())
