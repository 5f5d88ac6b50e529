"""Files and checkpoints that do not belong together."""

from __future__ import annotations

from pathlib import Path

import pytest

from ots_tunnel.errors import QueryRefused
from ots_tunnel.query.document import QueryConfig
from ots_tunnel.spark.query.folders import check_folders
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
        ((), ("0", "1")),
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
