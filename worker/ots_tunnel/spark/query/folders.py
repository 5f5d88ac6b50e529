"""Whether the folder of files and the folder of checkpoints belong together.

Spark's file sink leaves a batch out whose number its log already has: that is how a repeated batch is written once. A
query with an empty folder of checkpoints counts from 0 again. Beside files of a former query all its batches up to the
last one of these would be left out without a word, and the tunnel's checkpoints would move on.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from ots_tunnel.errors import QueryRefused
from ots_tunnel.query.document import QueryConfig, files_folder

#: Folder of the file sink's log, below the files; folder of the logged batches, below the checkpoints.
_SINK_LOG: Final = "_spark_metadata"
_OFFSETS: Final = "offsets"
_BATCH: Final = re.compile(r"([0-9]+)(?:\.compact)?")


def check_folders(config: QueryConfig) -> None:
    """Refuse files of more batches than the folder of checkpoints knows.

    Raises:
        QueryRefused: names both folders. OSError: one of them cannot be read.
    """
    files, checkpoints = files_folder(config.sink.files), config.checkpoint_directory
    written, known = _last_batch(files / _SINK_LOG), _last_batch(checkpoints / _OFFSETS)
    if written > known:
        found = f"knows batches up to {known}" if known >= 0 else "knows no batch"
        raise QueryRefused(
            f"sink.files.url: found files of batches up to {written} in {files}, but checkpointDirectory {checkpoints} "
            f"{found}: Spark would leave out the batches that come next; allowed is the folder of checkpoints with "
            "which these files were written, or another folder for files"
        )


def _last_batch(folder: Path) -> int:
    """Number of the last batch in a log of Spark; -1 where there is none."""
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    return max((int(found[1]) for name in names if (found := _BATCH.fullmatch(name))), default=-1)
