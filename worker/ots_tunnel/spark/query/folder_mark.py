"""The mark of a folder of files: whose query writes there, and when another query may take the folder over.

    checkpoints/ots-query     a name that the query gives itself, once
    files/_ots-query          the name of the query whose files these are, and the path of its checkpoints; readers of
                              files pass over such names

A driver that is killed before its first batch leaves the mark behind. A mark tells nothing of whether its query lives:
it may wait for the first change of an idle table. So a folder without files is taken over by an act that ends the other
query: file 0 of its log of batches, which only one can make. Where the other query has logged a batch, that fails.
Where it has not, it never can: Spark refuses to log a batch whose file is there, before anything of it is written, so
that the tunnel of that query stays where it was. The other query's checkpoints have to be where the mark says.
"""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from typing import Final

#: File with the name of a query, below the checkpoints; file with that of the query that writes, below the files.
_NAME: Final = "ots-query"
_MARK: Final = "_ots-query"
#: Spark's log of the first batch, below the checkpoints.
_FIRST_BATCH: Final = Path("offsets", "0")


def mark_of(files: Path) -> Path:
    """The mark of a folder of files."""
    return files / _MARK


def mark_files(files: Path, checkpoints: Path, *, is_new: bool) -> bool:
    """Mark files as those of the query with these checkpoints; False where they are those of another one.

    Args:
        is_new: whether neither files nor checkpoints have a batch: only then another query is looked at.

    Raises:
        OSError: one of the folders cannot be read or written.
    """
    name = _written_once(checkpoints / _NAME, uuid.uuid4().hex)
    found = _written_once(mark_of(files), _text(name, checkpoints))
    if _owner(found) == name:
        return True
    if not is_new or not _ends(found, name):
        return False
    # appears at once, and stays when the program is killed before: the next one makes it again
    new = files / f"{_MARK}.{name}"
    new.write_text(_text(name, checkpoints))
    new.replace(mark_of(files))
    return _ends(found, name)


def unmark_files(files: Path, checkpoints: Path) -> None:
    """Take the mark of this query away.

    Raises:
        OSError: one of the folders cannot be read or written.
    """
    name, mark = checkpoints / _NAME, mark_of(files)
    if name.exists() and mark.exists() and _owner(mark.read_text()) == name.read_text():
        mark.unlink()


def _text(name: str, checkpoints: Path) -> str:
    return f"{name}\n{checkpoints}\n"


def _owner(mark: str) -> str:
    return mark.partition("\n")[0]


def _ends(mark: str, name: str) -> bool:
    """Whether the query of a mark has logged no batch, and never will because of the query with this name."""
    owner, _, place = mark.partition("\n")
    checkpoints = Path(place.rstrip("\n"))
    if not place or not (checkpoints / _NAME).is_file() or (checkpoints / _NAME).read_text() != owner:
        return False
    log = checkpoints / _FIRST_BATCH
    logged = [path for path in log.parent.iterdir() if path.name.isdigit()] if log.parent.is_dir() else []
    if any(path != log for path in logged):
        return False
    text = f"query {name} has taken over the folder of files\n"
    try:
        log.parent.mkdir(exist_ok=True)
        with log.open("x") as file:
            file.write(text)
    except FileExistsError:
        return log.read_text() == text
    return True


def _written_once(path: Path, text: str) -> str:
    """The text of a file, which is made with this one where it does not exist, or was left without any.

    It appears with its text: of two programs that make it at one moment, each would take an empty one for its own.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_file():
        whole = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
        whole.write_text(text)
        try:
            _appear(whole, path)
        finally:
            whole.unlink()
    if not path.read_text():
        path.write_text(text)
    return path.read_text()


def _appear(whole: Path, path: Path) -> None:
    """Give a file its name, unless another one has it."""
    try:
        os.link(whole, path)
    except FileExistsError:
        return
    except OSError:  # a volume without links
        try:
            with path.open("x") as file:
                file.write(whole.read_text())
        except FileExistsError:
            return
