"""An interrupted run goes on; a changed file starts it again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.resume import ROOT, fingerprint
from tests.support.programs.processes import unmeasured

#: Seconds for a run of two tests, which takes one or two on an idle machine.
DEADLINE = 150

TESTS = """
import os
import pytest
@pytest.mark.xdist_group("one")
def test_one(): pass
def test_two(): assert os.environ["TWO"] == "passes"
"""


def run(folder: Path, two: str, workers: int = 0) -> str:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-v",
        "-p",
        "tests.resume",
        "--resume",
        "passed",
        "-p",
        "no:cacheprovider",
        *(("-n", str(workers), "--dist", "loadgroup") if workers else ()),
    ]
    # nothing of the packages runs here, and four processes that measure each other's end are one cause of hanging less
    environment = unmeasured({**os.environ, "PYTHONPATH": str(ROOT), "TWO": two})
    arguments = [*command, "--rootdir", str(folder), str(folder)]
    with (folder / "output").open("w+") as output:
        try:
            subprocess.run(
                arguments, cwd=folder, env=environment, stdout=output, stderr=output, timeout=DEADLINE, check=False
            )
        except subprocess.TimeoutExpired:
            pytest.fail(f"not at its end within {DEADLINE} s:\n{(folder / 'output').read_text()}", pytrace=False)
    return (folder / "output").read_text()


@pytest.mark.lasts(8)
@pytest.mark.parametrize("workers", [0, 2])
def test_a_failed_test_runs_again_and_a_passed_one_does_not(tmp_path: Path, workers: int) -> None:
    (tmp_path / "test_here.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = xdist_group")
    assert "1 failed, 1 passed" in run(tmp_path, "fails", workers)
    assert (tmp_path / "passed").read_text().splitlines()[1:] == ["test_here.py::test_one"]
    again = run(tmp_path, "passes", workers)
    assert "resumed: 1 tests have passed before" in again
    assert "1 passed" in again
    assert sorted((tmp_path / "passed").read_text().splitlines()[1:]) == [
        "test_here.py::test_one",
        "test_here.py::test_two",
    ]


def test_a_changed_file_changes_the_fingerprint(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / "one.txt").write_text("1")
    before = fingerprint(tmp_path)
    (tmp_path / "one.txt").write_text("2")
    changed = fingerprint(tmp_path)
    (tmp_path / "two.txt").write_text("")
    assert len({before, changed, fingerprint(tmp_path)}) == 3
