"""The session of a query: the version of Spark that its files need, and the settings. Pure.

Settings of an object, `spec.spark.conf`, stand above our defaults, and below what the query depends on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ots_tunnel.query.settings import KEPT_CLASSES
from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.manifests.spark.submission import REQUIRED_CONF, SPARK_VERSION

#: Version of PySpark in our image for Iceberg (worker/image/iceberg/requirements.txt): Iceberg has no jar for a newer
#: minor.
ICEBERG_SPARK_VERSION: Final = "4.1.4"

#: With Spark's own number, 200 tasks, a batch of a few rows that is merged into a table takes long, and so it does
#: where Spark compiles its plan again for each batch.
_OF_TABLES: Final = {"spark.sql.shuffle.partitions": "16", **KEPT_CLASSES}


@dataclass(frozen=True, slots=True)
class _Session:
    """What files of a format need of their session."""

    version: str = SPARK_VERSION
    defaults: Mapping[str, str] = field(default_factory=dict)
    required: Mapping[str, str] = field(default_factory=dict)
    """What the format needs besides its jars, which our images have."""


_FORMATS: Final = {
    "Delta": _Session(
        # Delta reads its own log with 50 tasks otherwise
        defaults={**_OF_TABLES, "spark.databricks.delta.snapshotPartitions": "8"},
        required={
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        },
    ),
    "Iceberg": _Session(
        version=ICEBERG_SPARK_VERSION,
        defaults=_OF_TABLES,
        # the catalog is the driver's own: it depends on the folder
        required={"spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"},
    ),
}
_FILES: Final = _Session()
#: What an object may change of every query.
_DEFAULT_CONF: Final = {
    # The process beside the JVM holds two batches, and what it reads ahead.
    "spark.driver.memoryOverhead": "1g"
}
_REQUIRED_CONF: Final = {**REQUIRED_CONF, "spark.speculation": "false"}


def is_of_iceberg(obj: TablestoreTunnel) -> bool:
    """Whether the query needs our image for Iceberg."""
    return obj.spec.sink.files is not None and obj.spec.sink.files.format == "Iceberg"


def session_version(obj: TablestoreTunnel) -> str:
    """Version of Spark in our image for the query."""
    return _session(obj).version


def session_conf(obj: TablestoreTunnel) -> dict[str, str]:
    """Settings of the query's application."""
    session = _session(obj)
    return {
        **_DEFAULT_CONF,
        **session.defaults,
        **obj.spec.spark_settings.conf,
        **_REQUIRED_CONF,
        **session.required,
    }


def _session(obj: TablestoreTunnel) -> _Session:
    files = obj.spec.sink.files
    return _FILES if files is None else _FORMATS.get(files.format, _FILES)
