"""Whether a batch may be written to a Delta table, by what the table tells of earlier ones. Pure.

Delta skips a batch of a query (`txnAppId`) whose number (`txnVersion`) is not above the last one that it has. That is
right for the batch that Spark repeats after a crash, since it has the same records. It is wrong where the checkpoint
folder was restored from an old copy: its next batches have old numbers and other records, and would vanish. A crash
leaves the table at most at the batch that Spark repeats, so a table that is further tells the difference.

A folder that was lost is no danger: the new one has another query id.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

from ots_tunnel.errors import QueryRefused

_QUERY, _BATCH = "otsQuery", "otsBatch"
#: Commits of a table that are looked at for its last batch: compaction and added columns come between.
LOOKED_AT: Final = 100


def note_of(query_id: str, batch_id: int) -> str:
    """The text that a commit carries, as `userMetadata` in `DESCRIBE HISTORY`."""
    return json.dumps({_QUERY: query_id, _BATCH: batch_id}, sort_keys=True)


def last_batch(notes: Iterable[str | None], query_id: str) -> int | None:
    """The highest batch of a query in the notes of commits; None if it has none."""
    found = [batch for note in notes if note and (batch := _batch_of(note, query_id)) is not None]
    return max(found, default=None)


def check_batch(last: int | None, batch_id: int, path: str) -> None:
    """Refuse a batch that is older than the table.

    Raises:
        QueryRefused: the checkpoint folder is an old copy.
    """
    if last is not None and last > batch_id:
        raise QueryRefused(
            f"checkpointLocation: found batch {batch_id}, but table {path!r} has batch {last} of the same query: the "
            "folder is older than the table, and Delta would leave its batches out; allowed is the folder as it was "
            "with the table, or a new one"
        )


def _batch_of(note: str, query_id: str) -> int | None:
    try:
        found = json.loads(note)
    except ValueError:
        return None  # a note of another writer's commit
    if not isinstance(found, dict) or found.get(_QUERY) != query_id or not isinstance(found.get(_BATCH), int):
        return None
    return int(found[_BATCH])
