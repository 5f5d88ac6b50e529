"""The splits of one job on their way from the driver to the process in which Spark plans the job.

Both run on the same machine, but the planner sees only the options of the query, and those are shown in the UI. So the
option `splitsDirectory` names a folder with the two items of the progress record, in the record's own form and under
its own keys: the frozen list, and a bitmap of the splits that the job leaves out.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from ots_tunnel.snapshot.record import DONE_KEY, SPLITS_KEY, done_bitmap, done_splits
from ots_tunnel.snapshot.splits import Split, SplitList, deserialise, serialise


def write_pending(folder: Path, splits: SplitList, pending: Collection[int]) -> None:
    """Write the frozen list and the splits to leave out, which are all but `pending`."""
    left_out = set(range(len(splits))).difference(pending)
    (folder / SPLITS_KEY).write_bytes(serialise(splits))
    (folder / DONE_KEY).write_bytes(done_bitmap(left_out, len(splits)))


def read_pending(folder: Path) -> list[Split]:
    """The splits to read, in key order.

    Raises:
        CodecError: the list is damaged.
    """
    splits = deserialise((folder / SPLITS_KEY).read_bytes())
    left_out = done_splits((folder / DONE_KEY).read_bytes(), len(splits))
    return [splits.split(index) for index in range(len(splits)) if index not in left_out]
