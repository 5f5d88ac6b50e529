"""What a checkpoint folder of Spark knows, wherever it is: the id of its query, and the last batch in its log."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from ots_tunnel.spark.lake.replays import check_logged
from ots_tunnel.spark.lake.tables.lake_table import LakeTable
from ots_tunnel.spark.sessions import classic_context


class Logged(NamedTuple):
    """A folder in which a query has begun; `last` is -1 where it has logged no batch."""

    query_id: str
    last: int


def check_age(table: LakeTable, checkpoint: str) -> None:
    """Refuse a folder that has logged less than the table has; to be called before its query starts.

    Later the difference is gone: Spark logs the next batch, and gives it the number of one that the table has.

    Args:
        checkpoint: folder of the query.

    Raises:
        QueryRefused: the folder is an old copy.
    """
    found = logged(table.spark, checkpoint)
    if found is not None and table.exists:
        check_logged(table.last_batch(found.query_id), found.last, table.path)


def logged(spark: Any, checkpoint: str) -> Logged | None:
    """What a folder knows; None where no query has begun in it, or Spark itself will refuse it as damaged."""
    jvm = classic_context(spark)._jvm
    hadoop = jvm.org.apache.hadoop.fs
    folder = hadoop.Path(checkpoint)
    files = folder.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
    metadata, offsets = hadoop.Path(folder, "metadata"), hadoop.Path(folder, "offsets")
    if not files.exists(metadata):
        return None
    stream = files.open(metadata)
    try:
        text = jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8")
    finally:
        stream.close()
    query_id = id_of(text)
    if query_id is None:
        return None
    names = [each.getPath().getName() for each in files.listStatus(offsets)] if files.exists(offsets) else []
    return Logged(query_id, max((int(name) for name in names if name.isdigit()), default=-1))


def id_of(text: str) -> str | None:
    """The id of a query in Spark's file `metadata`; None in a damaged one, such as an empty one behind a power loss."""
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return str(found["id"]) if isinstance(found, dict) and "id" in found else None
