"""Every test belongs to a stage: those that name folders to collect have all tests of their marks there."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests import suite


@pytest.mark.parametrize(
    ("stage", "marks"),
    [(suite.API, "api"), (suite.SPARK, "spark"), (suite.E2E, "cluster")],
    ids=lambda value: getattr(value, "name", ""),
)
def test_no_test_of_a_stage_is_outside_of_its_folders(stage: suite.Stage, marks: str) -> None:
    folders = [suite.ROOT / folder for folder in stage.folders]
    marked = [
        path for path in (suite.ROOT / "tests").rglob("test_*.py") if re.search(rf"mark\.({marks})\b", path.read_text())
    ]

    assert all(folder.is_dir() for folder in folders)
    assert marked
    assert [path for path in marked if not any(path.is_relative_to(folder) for folder in folders)] == []


def test_what_a_stage_starts_compiles_its_modules_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setattr(suite, "REPORTS", tmp_path)
    keeps = "import sys; sys.exit(sys.dont_write_bytecode or sys.pycache_prefix is None)"

    assert suite.run(suite.Stage("keeps", "compiled modules", ((sys.executable, "-c", keeps),)), set()).status == 0
