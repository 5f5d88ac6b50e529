"""Every test belongs to a stage: those that name folders to collect have all tests of their marks there."""

from __future__ import annotations

import re

import pytest

from tests import suite


@pytest.mark.parametrize(
    ("stage", "marks"), [(suite.API, "api|spark"), (suite.E2E, "cluster")], ids=lambda value: getattr(value, "name", "")
)
def test_no_test_of_a_stage_is_outside_of_its_folders(stage: suite.Stage, marks: str) -> None:
    folders = [suite.ROOT / folder for folder in stage.folders]
    marked = [
        path for path in (suite.ROOT / "tests").rglob("test_*.py") if re.search(rf"mark\.({marks})\b", path.read_text())
    ]

    assert all(folder.is_dir() for folder in folders)
    assert marked
    assert [path for path in marked if not any(path.is_relative_to(folder) for folder in folders)] == []
