"""A Delta table in a path: Delta's Python package fits fewer PySparks than its jars.

Delta keeps for each `txnAppId` the last `txnVersion` in the table, and skips a write that has no higher one. The id is
that of the query, which lives in its checkpoint folder: a folder that was lost cannot make Delta leave batches out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Final

from ots_tunnel.errors import QueryRefused
from ots_tunnel.query.spelling import is_of_delta, may_be_of_delta
from ots_tunnel.spark.lake.replays import note_of
from ots_tunnel.spark.lake.tables.lake_table import LakeTable
from ots_tunnel.spark.lake.tables.statements import quoted, run, settings_in
from ots_tunnel.spark.sessions import classic_context

#: Settings of a session without which Delta's statements are not known.
EXTENSION: Final = "io.delta.sql.DeltaSparkSessionExtension"
CATALOG: Final = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
_APP, _VERSION, _NOTE = (
    "spark.databricks.delta.write.txnAppId",
    "spark.databricks.delta.write.txnVersion",
    "spark.databricks.delta.commitInfo.userMetadata",
)
#: It writes a line at level ERROR for each read of a table with marks: that no reader of Parquet gets their filter,
#: which Delta applies itself.
_LOUD: Final = "org.apache.spark.sql.delta.DeltaParquetFileFormat"
#: Share of the rows in all files from which on those that are gone are written out of them. Each such turn writes all
#: files that have one, so it comes after changes of as many rows. Own choice.
PURGED_SHARE: Final = 0.25
#: Setting of a session: tasks that list the files of a table. Its default is 10,000, which takes minutes of a small
#: cluster however few files there are.
_LISTING_TASKS: Final = "spark.sql.sources.parallelPartitionDiscovery.parallelism"


class DeltaTable(LakeTable):
    """See the module."""

    title: ClassVar[str] = "Delta"
    format: ClassVar[str] = "delta"
    log_folder: ClassVar[str] = "_delta_log"
    #: The second one is of a place inside another table.
    absent: ClassVar[frozenset[str]] = frozenset(("DELTA_MISSING_DELTA_TABLE", "DELTA_INVALID_PARTITION_PATH"))
    #: Attributes may have names with blanks, commas or dots, which Parquet's columns cannot have.
    own_properties: ClassVar[Mapping[str, str]] = {"delta.columnMapping.mode": "name"}
    #: A batch changes some rows of many files, which would all be written anew.
    merged_properties: ClassVar[Mapping[str, str]] = {"delta.enableDeletionVectors": "true"}

    @property
    def place(self) -> str:
        """See `LakeTable.place`."""
        return f"delta.{quoted(self.path)}"

    def check_session(self) -> None:
        """See `LakeTable.check_session`."""
        classic_context(self.spark)
        if EXTENSION not in (self.spark.conf.get("spark.sql.extensions", "") or ""):
            raise QueryRefused(
                "the session: found none of Delta's statements, allowed is one with Delta's jars, "
                f"spark.sql.extensions={EXTENSION} and spark.sql.catalog.spark_catalog={CATALOG}"
            )

    def create(
        self, columns: Sequence[tuple[str, str]], properties: Mapping[str, str], *, is_merged: bool = False
    ) -> None:
        """See `LakeTable.create`."""
        if is_merged:
            log4j = classic_context(self.spark)._jvm.org.apache.logging.log4j
            log4j.core.config.Configurator.setLevel(_LOUD, log4j.Level.OFF)
        super().create(columns, properties, is_merged=is_merged)

    def frame(self) -> Any:
        """See `LakeTable.frame`."""
        return self.spark.read.format("delta").load(self.path)

    def last_batch(self, application: str, asked: int | None = None) -> int | None:
        """See `LakeTable.last_batch`; Delta's SQL does not tell it, and the history of commits ends after some time."""
        found = self._snapshot().transactions().get(application)
        return int(found.get()) if found.isDefined() else None

    def append(self, rows: Any, application: str, number: int) -> None:
        """See `LakeTable.append`."""
        options = {
            "txnAppId": application,
            "txnVersion": str(number),
            "userMetadata": note_of(application, number),
        }
        # Delta leaves NULL in a column that the frame lacks
        rows.write.format("delta").mode("append").options(**options).save(self.path)

    @contextmanager
    def once(self, application: str, number: int) -> Iterator[bool]:
        """See `LakeTable.once`; it is Delta that leaves a write out."""
        settings = {_APP: application, _VERSION: str(number), _NOTE: note_of(application, number)}
        with settings_in(self.spark, settings):
            yield True

    def compact(self) -> None:
        """See `LakeTable.compact`."""
        run(self.spark, f"OPTIMIZE {self.place}")
        # it leaves a large file alone that has no other one to be joined with, whatever is gone of it
        if self._share_gone() >= PURGED_SHARE:
            run(self.spark, f"REORG TABLE {self.place} APPLY (PURGE)")

    def _share_gone(self) -> float:
        """The share of the rows in the table's files that are marked as gone."""
        from pyspark.sql import DataFrame
        from pyspark.sql import functions as F

        # not the sum that the snapshot has: it has none where the property is off by now, and the marks still there
        files = DataFrame(self._snapshot().allFiles().toDF(), self.spark)
        marked = F.coalesce(F.sum("deletionVector.cardinality"), F.lit(0))
        rows = F.get_json_object("stats", "$.numRecords").cast("bigint")
        untold = F.count_if(rows.isNull())
        (found,) = files.agg(marked.alias("marked"), F.sum(rows).alias("rows"), untold.alias("untold")).collect()
        if not found.marked:
            return 0.0
        # a session may write files without statistics (spark.databricks.delta.stats.collect)
        total = found.marked + self.frame().count() if found.untold else found.rows
        return float(found.marked / total)

    def _snapshot(self) -> Any:
        log = classic_context(self.spark)._jvm.org.apache.spark.sql.delta.DeltaLog
        return log.forTableWithSnapshot(self.spark._jsparkSession, self.path)._2()

    def clean(self, kept_hours: int) -> None:
        """See `LakeTable.clean`; Delta refuses less than 168 hours unless its own check is off."""
        self.spark.conf.set(_LISTING_TASKS, str(self.spark.sparkContext.defaultParallelism))
        run(self.spark, f"VACUUM {self.place} RETAIN {kept_hours} HOURS")

    @classmethod
    def is_taken(cls, name: str) -> bool:
        """See `LakeTable.is_taken`."""
        return is_of_delta(name)

    @classmethod
    def may_be_taken(cls, name: str) -> bool:
        """See `LakeTable.may_be_taken`."""
        return may_be_of_delta(name)
