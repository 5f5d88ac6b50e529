"""Whether a batch may be written to a table, by what the table tells of earlier ones. Pure.

A batch of a query whose number is not above the last one that the table has is left out. That is
right for the batch that Spark repeats after a crash, since it has the same records. It is wrong where the checkpoint
folder was restored from an old copy: its next batches have old numbers and other records, and would vanish. A crash
leaves the table at most at the batch that Spark has logged and repeats, so a table that is further tells the
difference. That has to be looked at before the query starts: it logs its next batch, and a folder that is one batch old
has as many as the table then.

The other way round Spark begins a batch once the one before is written, and each batch of a query leaves its number,
one without rows as well. So a table that lacks the batch before was restored from an old copy itself, or was made anew,
and the changes of its missing batches are nowhere.

A folder that was lost is no danger: the new one has another query id.
"""

from __future__ import annotations

import json

from ots_tunnel.errors import QueryRefused

_QUERY, _BATCH = "otsQuery", "otsBatch"


def note_of(query_id: str, batch_id: int) -> str:
    """The text that a commit carries, as `userMetadata` in `DESCRIBE HISTORY`."""
    return json.dumps({_QUERY: query_id, _BATCH: batch_id}, sort_keys=True)


def check_logged(last: int | None, logged: int, path: str) -> None:
    """Refuse a folder whose query is to start, and that has logged less than the table has.

    Args:
        last: the last batch of the query in the table; None if it has none.
        logged: the last batch that the folder has logged; -1 if it has none.

    Raises:
        QueryRefused: the folder is an old copy.
    """
    if last is not None and last > logged:
        raise _folder_is_old(f"batches up to {logged}" if logged >= 0 else "no batch", last, path)


def check_batch(last: int | None, batch_id: int, path: str) -> None:
    """Refuse a batch that is older than the table, or does not follow its last one.

    Args:
        last: the last batch of the query in the table; None if it has none.

    Raises:
        QueryRefused: the checkpoint folder or the table is an old copy, or the table is another one.
    """
    if last is not None and last > batch_id:
        raise _folder_is_old(f"batch {batch_id}", last, path)
    if batch_id > 0 and (last is None or last < batch_id - 1):
        has = "has no batch of the same query" if last is None else f"has batches of the same query up to {last}"
        raise QueryRefused(
            f"checkpointLocation: found batch {batch_id}, but table {path!r} {has}: the table is older than the "
            "folder, or another one, and the changes in between are missing there; allowed is the table as it was with "
            "the folder, or a new path, checkpoint folder and tunnel"
        )


def _folder_is_old(found: str, last: int, path: str) -> QueryRefused:
    return QueryRefused(
        f"checkpointLocation: found {found}, but table {path!r} has batch {last} of the same query: the "
        "folder is older than the table, and its batches would be left out; allowed is the folder as it was "
        "with the table, or a new one"
    )
