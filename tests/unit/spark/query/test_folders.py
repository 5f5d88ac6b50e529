"""Files and checkpoints that do not belong together."""

from __future__ import annotations

from pathlib import Path

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


def of_query(config: QueryConfig, checkpoints: Path) -> QueryConfig:
    return config.model_copy(update={"checkpoint_directory": checkpoints})


def test_a_folder_of_files_is_that_of_one_query(tmp_path: Path) -> None:
    """Of two that begin at once, each would leave out the batches that the other one has written."""
    first = config_of(tmp_path, (), ())
    second = of_query(first, tmp_path / "other")
    check_folders(first)

    with pytest.raises(QueryRefused, match=r"another query writes into .*, or, where none does any more, remove "):
        check_folders(second)

    check_folders(first)


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
