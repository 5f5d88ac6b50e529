"""Whether the folder of files and the folder of checkpoints belong together, and to this query alone.

Spark's file sink leaves a batch out whose number its log already has: that is how a repeated batch is written once. A
query with an empty folder of checkpoints counts from 0 again. Beside files of a former query all its batches up to the
last one of these would be left out without a word, and the tunnel's checkpoints would move on. Two queries that begin
at once would do that to each other, so a folder of files has a mark, made before the first batch (`folder_mark`).

The other way round Spark logs a batch once the one before is written, and commits a batch once it is written itself.
Checkpoints that know more belong to files that are elsewhere: Spark would write the next batches beside none, and then
fail for want of the former ones.

A folder inside a table of a lake is none for files: the table's cleaning would remove them after a week.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from ots_tunnel.errors import QueryRefused
from ots_tunnel.query.document import QueryConfig
from ots_tunnel.query.files import files_folder
from ots_tunnel.spark.lake.tables.lake_table import MARKS
from ots_tunnel.spark.query.folder_mark import mark_files, mark_of, unmark_files

#: Folder of the file sink's log, below the files; folders of the logged batches and the committed ones, below the
#: checkpoints.
_SINK_LOG: Final = "_spark_metadata"
_OFFSETS: Final = "offsets"
_COMMITS: Final = "commits"
_BATCH: Final = re.compile(r"([0-9]+)(?:\.compact)?")


def check_folders(config: QueryConfig) -> None:
    """Refuse folders that do not belong together, and files of another query; mark the files as this query's.

    Raises:
        QueryRefused: names both folders. OSError: one of them cannot be read or written.
    """
    files, checkpoints = files_folder(config.sink.files), config.checkpoint_directory
    around = (folder for folder in (files, *files.parents) if any((folder / mark).exists() for mark in MARKS))
    if (table := next(around, None)) is not None:
        raise QueryRefused(
            f"sink.files.url: found {files} in the table {table} of Delta or Iceberg, which removes files that it does "
            "not know; allowed is a folder beside it"
        )
    written, known = _last_batch(files / _SINK_LOG), _last_batch(checkpoints / _OFFSETS)
    place = f"in {files}, but checkpointDirectory {checkpoints}"
    found = f"found files of batches up to {written}" if written >= 0 else "found no files of a batch"
    knows = f"knows batches up to {known}" if known >= 0 else "knows no batch"
    if written > known:
        raise QueryRefused(
            f"sink.files.url: {found} {place} {knows}: Spark would leave out the batches that come next; allowed is "
            "the folder of checkpoints with which these files were written, or another folder for files"
        )
    if written < max(known - 1, _last_batch(checkpoints / _COMMITS)):
        raise QueryRefused(
            f"sink.files.url: {found} {place} {knows}: the files of the others are not there; allowed is the folder "
            f"of files that were written with these checkpoints, with its {_SINK_LOG}, or a new folder of checkpoints "
            "with a new folder for files and another tunnel"
        )
    if not mark_files(files, checkpoints, is_new=max(written, known) < 0):
        raise QueryRefused(
            f"sink.files.url: found that another query writes into {files}; allowed is a folder of its own for each "
            f"query, or, where none does any more, remove {mark_of(files)}"
        )


def leave_folders(config: QueryConfig) -> None:
    """Give a folder of files back into which this query has written nothing.

    Raises:
        OSError: one of the folders cannot be read or written.
    """
    files = files_folder(config.sink.files)
    if _last_batch(files / _SINK_LOG) < 0:
        unmark_files(files, config.checkpoint_directory)


def _last_batch(folder: Path) -> int:
    """Number of the last batch in a log of Spark; -1 where there is none."""
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    return max((int(found[1]) for name in names if (found := _BATCH.fullmatch(name))), default=-1)
