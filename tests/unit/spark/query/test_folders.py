"""Files and checkpoints that do not belong together."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from ots_tunnel.errors import QueryRefused
from ots_tunnel.query.document import QueryConfig
from ots_tunnel.spark.query.folders import check_folders, leave_folders
from tests.support.documents.query_document import QUERY


def config_of(folder: Path, written: tuple[str, ...], known: tuple[str, ...]) -> QueryConfig:
    for path, names in ((folder / "files" / "_spark_metadata", written), (folder / "checkpoint" / "offsets", known)):
        for name in names:
            path.mkdir(parents=True, exist_ok=True)
            (path / name).touch()
    place = {"sink": {"files": {"url": (folder / "files").as_uri()}}, "checkpointDirectory": str(folder / "checkpoint")}
    return QueryConfig.model_validate({**QUERY, **place})


@pytest.mark.parametrize(
    ("written", "known"),
    [
        ((), ()),
        ((), ("0",)),
        # the last batch is logged and not written yet
        (("0", "1", ".1.crc"), ("0", "1", "2")),
        (("9.compact", "10"), ("10",)),
    ],
)
def test_one_query_goes_on(tmp_path: Path, written: tuple[str, ...], known: tuple[str, ...]) -> None:
    check_folders(config_of(tmp_path, written, known))


@pytest.mark.parametrize(
    ("written", "known", "told"),
    [
        (("0", "1"), (), "found files of batches up to 1 in "),
        (("9.compact",), ("0", "8"), "knows batches up to 8: Spark would leave out"),
        (("0",), (), "knows no batch: Spark would leave out"),
    ],
)
def test_files_of_a_query_that_is_not_known_are_refused(
    tmp_path: Path, written: tuple[str, ...], known: tuple[str, ...], told: str
) -> None:
    with pytest.raises(QueryRefused, match=told):
        check_folders(config_of(tmp_path, written, known))


@pytest.mark.parametrize("mark", ["_delta_log", "metadata/version-hint.text"])
@pytest.mark.parametrize("table", [".", "files"], ids=["around", "the same folder"])
def test_files_in_a_table_of_a_lake_are_refused(tmp_path: Path, mark: str, table: str) -> None:
    """The cleaning of that table would remove them."""
    (tmp_path / table / mark).mkdir(parents=True)

    with pytest.raises(QueryRefused, match=r"in the table .* which removes files that it does not know"):
        check_folders(config_of(tmp_path, (), ()))


@pytest.mark.parametrize(
    ("written", "known", "told"),
    [
        ((), ("0", "1"), "found no files of a batch in "),
        (("0", "1"), ("3",), "found files of batches up to 1 in "),
    ],
)
def test_checkpoints_of_files_that_are_elsewhere_are_refused(
    tmp_path: Path, written: tuple[str, ...], known: tuple[str, ...], told: str
) -> None:
    """Spark logs a batch once the one before is written; beside other files it fails some batches later."""
    with pytest.raises(QueryRefused, match=f"{told}.* knows batches up to {known[-1]}: the files of "):
        check_folders(config_of(tmp_path, written, known))


def test_a_committed_batch_without_files_is_refused(tmp_path: Path) -> None:
    """Another folder of files after the first batch: Spark would go on with the second one beside none."""
    config = config_of(tmp_path, (), ("0",))
    (config.checkpoint_directory / "commits").mkdir()
    (config.checkpoint_directory / "commits" / "0").touch()

    with pytest.raises(QueryRefused, match=r"found no files of a batch in .* knows batches up to 0: the files of "):
        check_folders(config)


def of_query(config: QueryConfig, checkpoints: Path) -> QueryConfig:
    return config.model_copy(update={"checkpoint_directory": checkpoints})


REFUSED = r"another query writes into .*, or, where none does any more, remove "


def log_a_batch(config: QueryConfig, number: int = 0) -> None:
    """What Spark does first: it refuses a file that is there."""
    folder = config.checkpoint_directory / "offsets"
    folder.mkdir(exist_ok=True)
    (folder / str(number)).open("x").close()


def test_a_folder_of_files_is_that_of_one_query(tmp_path: Path) -> None:
    """Of two that begin at once, each would leave out the batches that the other one has written."""
    first = config_of(tmp_path, (), ())
    second = of_query(first, tmp_path / "other")
    check_folders(first)
    log_a_batch(first)

    with pytest.raises(QueryRefused, match=REFUSED):
        check_folders(second)

    check_folders(first)


def test_of_two_queries_that_mark_a_folder_at_one_moment_one_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = config_of(tmp_path, (), ())
    second = of_query(first, tmp_path / "other")
    begun = Path.open
    marked = []

    def open_and_wait(path: Path, mode: str = "r", *rest: Any, **more: Any) -> Any:
        file = begun(path, mode, *rest, **more)
        if path.name.startswith("_ots-query") and mode in ("x", "w") and not marked:
            marked.append(second)
            check_folders(second)  # while the file of the first one is empty
        return file

    monkeypatch.setattr(Path, "open", open_and_wait)
    check_folders(first)

    assert marked
    log_a_batch(first)
    with pytest.raises(FileExistsError):
        log_a_batch(second)


def test_a_volume_without_links_has_marks_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    first = config_of(tmp_path, (), ())
    check_folders(first)
    log_a_batch(first)

    check_folders(first)
    with pytest.raises(QueryRefused, match=REFUSED):
        check_folders(of_query(first, tmp_path / "other"))


def test_a_folder_that_a_killed_query_has_marked_alone_is_taken_over(tmp_path: Path) -> None:
    first = config_of(tmp_path, (), ())
    second = of_query(first, tmp_path / "other")
    check_folders(first)

    check_folders(second)
    check_folders(second)

    # should it live, it cannot log a batch any more, so that nothing of its tunnel is lost
    with pytest.raises(FileExistsError):
        log_a_batch(first)
    with pytest.raises(QueryRefused, match=REFUSED):
        check_folders(first)


def test_one_query_alone_takes_a_folder_over(tmp_path: Path) -> None:
    first = config_of(tmp_path, (), ())
    check_folders(first)
    # another one has been killed between its two steps
    mark = (tmp_path / "files" / "_ots-query").read_text()
    second, third = of_query(first, tmp_path / "second"), of_query(first, tmp_path / "third")
    check_folders(second)
    (tmp_path / "files" / "_ots-query").write_text(mark)

    with pytest.raises(QueryRefused, match=REFUSED):
        check_folders(third)
    check_folders(second)


@pytest.mark.parametrize("change", ["gone", "of another", "unnamed"])
def test_a_folder_whose_query_cannot_be_ended_is_not_taken_over(tmp_path: Path, change: str) -> None:
    first = config_of(tmp_path, (), ())
    check_folders(first)
    if change == "gone":
        (tmp_path / "checkpoint").rename(tmp_path / "elsewhere")
    if change == "of another":
        (tmp_path / "checkpoint" / "ots-query").write_text("another")
    if change == "unnamed":
        # of a program that has marked folders by the name alone
        (tmp_path / "files" / "_ots-query").write_text((tmp_path / "checkpoint" / "ots-query").read_text())

    with pytest.raises(QueryRefused, match=REFUSED):
        check_folders(of_query(first, tmp_path / "other"))


def test_a_query_that_has_written_nothing_gives_the_folder_back(tmp_path: Path) -> None:
    first = config_of(tmp_path, (), ())
    second = of_query(first, tmp_path / "other")
    check_folders(first)
    # of somebody else
    leave_folders(second)
    leave_folders(first)
    check_folders(second)
    leave_folders(first)

    config_of(tmp_path, ("0",), ())
    offsets = tmp_path / "other" / "offsets"
    offsets.mkdir()
    (offsets / "0").touch()
    leave_folders(second)
    with pytest.raises(QueryRefused, match="found files of batches up to 0"):
        check_folders(first)
    check_folders(second)


def test_both_folders_may_be_moved_together(tmp_path: Path) -> None:
    check_folders(config_of(tmp_path / "a", ("0",), ("0",)))
    (tmp_path / "a").rename(tmp_path / "b")

    check_folders(config_of(tmp_path / "b", ("0",), ("0",)))
