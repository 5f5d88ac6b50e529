"""Whether the folder of files and the folder of checkpoints belong together, and to this query alone.

Spark's file sink leaves a batch out whose number its log already has: that is how a repeated batch is written once. A
query with an empty folder of checkpoints counts from 0 again. Beside files of a former query all its batches up to the
last one of these would be left out without a word, and the tunnel's checkpoints would move on. Two queries that begin
at once would do that to each other, so a folder of files has a mark, made before the first batch:

    checkpoints/ots-query     a name that the query gives itself, once
    files/_ots-query          the name of the query whose files these are; readers of files pass over such names

The other way round Spark logs a batch once the one before is written. Checkpoints that know more belong to files that
are elsewhere: Spark would write the next batches beside none, and then fail for want of the former ones.
"""

from __future__ import annotations

import re
import uuid
from pathlib import Path
from typing import Final

from ots_tunnel.errors import QueryRefused
from ots_tunnel.query.document import QueryConfig
from ots_tunnel.query.files import files_folder

#: Folder of the file sink's log, below the files; folder of the logged batches, below the checkpoints.
_SINK_LOG: Final = "_spark_metadata"
_OFFSETS: Final = "offsets"
_BATCH: Final = re.compile(r"([0-9]+)(?:\.compact)?")
#: File with the name of a query, below the checkpoints; file with that of the query that writes, below the files.
_NAME: Final = "ots-query"
_MARK: Final = "_ots-query"


def check_folders(config: QueryConfig) -> None:
    """Refuse folders that do not belong together, and files of another query; mark the files as this query's.

    Raises:
        QueryRefused: names both folders. OSError: one of them cannot be read or written.
    """
    files, checkpoints = files_folder(config.sink.files), config.checkpoint_directory
    written, known = _last_batch(files / _SINK_LOG), _last_batch(checkpoints / _OFFSETS)
    place = f"in {files}, but checkpointDirectory {checkpoints}"
    found = f"found files of batches up to {written}" if written >= 0 else "found no files of a batch"
    knows = f"knows batches up to {known}" if known >= 0 else "knows no batch"
    if written > known:
        raise QueryRefused(
            f"sink.files.url: {found} {place} {knows}: Spark would leave out the batches that come next; allowed is "
            "the folder of checkpoints with which these files were written, or another folder for files"
        )
    if written < known - 1:
        raise QueryRefused(
            f"sink.files.url: {found} {place} {knows}: the files of the others are not there; allowed is the folder "
            f"of files that were written with these checkpoints, with its {_SINK_LOG}, or a new folder of checkpoints "
            "with a new folder for files and another tunnel"
        )
    mark, name = files / _MARK, _written_once(checkpoints / _NAME, uuid.uuid4().hex)
    if _written_once(mark, name) != name:
        raise QueryRefused(
            f"sink.files.url: found that another query writes into {files}; allowed is a folder of its own for each "
            f"query, or, where none does any more, remove {mark}"
        )


def leave_folders(config: QueryConfig) -> None:
    """Give a folder of files back into which this query has written nothing.

    Raises:
        OSError: one of the folders cannot be read or written.
    """
    files, name = files_folder(config.sink.files), config.checkpoint_directory / _NAME
    mark = files / _MARK
    if _last_batch(files / _SINK_LOG) < 0 and name.exists() and mark.exists() and mark.read_text() == name.read_text():
        mark.unlink()


def _written_once(path: Path, text: str) -> str:
    """The text of a file, which is made with this one where it does not exist, or was left without any."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("x") as file:
            file.write(text)
    except FileExistsError:
        if not path.read_text():
            path.write_text(text)
    return path.read_text()


def _last_batch(folder: Path) -> int:
    """Number of the last batch in a log of Spark; -1 where there is none."""
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    return max((int(found[1]) for name in names if (found := _BATCH.fullmatch(name))), default=-1)
