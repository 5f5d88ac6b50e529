"""Makes a batch of a query count once in a Delta table, whatever is repeated.

Delta keeps for each `txnAppId` the last `txnVersion` in the table, and skips a write that has no higher one. The id is
that of the query, which lives in its checkpoint folder: a folder that was lost cannot make Delta leave batches out.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from ots_tunnel.errors import ConfigError
from ots_tunnel.spark.lake.replays import check_batch, note_of
from ots_tunnel.spark.lake.tables import classic_context

#: Spark's own property of the thread that runs a batch.
_QUERY_ID: Final = "sql.streaming.queryId"
_APP, _VERSION, _NOTE = (
    "spark.databricks.delta.write.txnAppId",
    "spark.databricks.delta.write.txnVersion",
    "spark.databricks.delta.commitInfo.userMetadata",
)


def query_of(spark: Any) -> str:
    """The id of the query whose batch this thread runs.

    Raises:
        ConfigError: it runs none, or the session is one of Spark Connect.
    """
    found = classic_context(spark).getLocalProperty(_QUERY_ID)
    if not found:
        raise ConfigError(
            "foreachBatch: found no query in this thread, allowed is a call by writeStream.foreachBatch in a classic "
            "session with pinned threads (PYSPARK_PIN_THREAD)"
        )
    return str(found)


def check_folder(spark: Any, path: str, query_id: str, batch_id: int) -> None:
    """Refuse a checkpoint folder and a table of which one is older than the other; once per process is enough.

    Raises:
        ConfigError: see `replays`.
    """
    check_batch(last_version(spark, path, query_id), batch_id, path)


def last_version(spark: Any, path: str, application: str) -> int | None:
    """The last `txnVersion` of an application in a table; None if it has none.

    Delta's SQL does not tell it, and the history of commits ends after some time.
    """
    log = classic_context(spark)._jvm.org.apache.spark.sql.delta.DeltaLog
    found = log.forTableWithSnapshot(spark._jsparkSession, path)._2().transactions().get(application)
    return int(found.get()) if found.isDefined() else None


@contextmanager
def once(spark: Any, application: str, version: int) -> Iterator[None]:
    """Writes of this session count once under a number, until the end of the context.

    Args:
        spark: a batch has a session of its own, so that these settings reach no other write.
    """
    settings = {_APP: application, _VERSION: str(version), _NOTE: note_of(application, version)}
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key in settings:
            spark.conf.unset(key)
