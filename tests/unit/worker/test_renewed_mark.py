"""The read mark of a mounted document follows the operator, and nothing else."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest
import yaml

from ots_tunnel.config import WorkerConfig, load_config
from ots_tunnel.worker.gaps.read_mark import RenewedMark

#: 2023-11-14T22:13:20Z.
TIME = 1_700_000_000


def written(path: Path, *, mark: str | None, tunnel: str = "t-1", changes: int) -> WorkerConfig:
    """A worker's document in a file, and what it says; every change has a time of its own."""
    side = {"endpoint": "http://e", "instance": "demo", "table": "events", "credentials": {"directory": "/keys"}}
    source = {**side, "tunnelName": "t", "tunnelId": tunnel} | ({} if mark is None else {"readUntil": mark})
    path.write_text(yaml.safe_dump({"source": source, "sink": {"stdout": {}}}))
    os.utime(path, (TIME + changes, TIME + changes))
    return load_config(path)


def test_a_mark_is_renewed_by_later_ones_of_its_tunnel(tmp_path: Path) -> None:
    path = tmp_path / "worker.yaml"
    mark = RenewedMark(path, written(path, mark=None, changes=0))
    assert mark() is None

    for changes, (text, tunnel, expected) in enumerate(
        [
            ("2023-11-14T22:13:20Z", "t-1", TIME),
            ("2023-11-14T22:13:30Z", "t-1", TIME + 10),
            (None, "t-1", TIME + 10),
            ("2023-11-14T22:13:25Z", "t-1", TIME + 10),
            ("2023-11-14T22:13:59Z", "another", TIME + 10),
            ("2023-11-15T06:13:40+08:00", "t-1", TIME + 20),
        ],
        start=1,
    ):
        written(path, mark=text, tunnel=tunnel, changes=changes)
        assert mark() == expected


@pytest.mark.parametrize(
    "text",
    [
        "source: {",
        "source: {}",
        "- source",
        "source: {tunnelId: t-1, readUntil: 2023-11-14T22:13:59}",
        "source: {tunnelId: t-1, readUntil: soon}",
        "source: {tunnelId: t-1, readUntil: 1700000039}",
        None,
    ],
)
def test_a_document_that_cannot_be_read_changes_nothing(
    tmp_path: Path, text: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "worker.yaml"
    mark = RenewedMark(path, written(path, mark="2023-11-14T22:13:20Z", changes=0))
    if text is None:
        path.unlink()
    else:
        path.write_text(text)

    with caplog.at_level(logging.WARNING):
        assert mark() == TIME

    assert [record.action for record in caplog.records] == ["retention_unknown"]


def test_a_document_that_is_as_it_was_is_not_read_again(tmp_path: Path) -> None:
    path = tmp_path / "worker.yaml"
    config = written(path, mark="2023-11-14T22:13:20Z", changes=0)
    mark = RenewedMark(path, config, path.stat().st_mtime_ns)
    path.write_text("source: {")
    os.utime(path, (TIME, TIME))

    assert mark() == TIME
    written(path, mark="2023-11-14T22:13:30Z", changes=1)
    assert mark() == TIME + 10
