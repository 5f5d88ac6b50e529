"""Which query a batch is of, and whether its checkpoint folder and the table belong together."""

from __future__ import annotations

from typing import Any, Final

from ots_tunnel.errors import ConfigError
from ots_tunnel.spark.lake.replays import check_batch
from ots_tunnel.spark.lake.tables.lake_table import LakeTable
from ots_tunnel.spark.sessions import classic_context

#: Spark's own property of the thread that runs a batch.
_QUERY_ID: Final = "sql.streaming.queryId"


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


def check_folder(table: LakeTable, query_id: str, batch_id: int) -> None:
    """Refuse a checkpoint folder and a table of which one is older than the other.

    A batch that follows the one that this process has written last needs no look. Any other one does: a folder may be
    put back while the process lives on.

    Raises:
        QueryRefused: see `replays`.
    """
    check_batch(table.last_batch(query_id, batch_id), batch_id, table.path)
