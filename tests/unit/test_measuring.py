"""Which tests are measured, and that what was measured is not lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.measuring import unmeasured

PROGRAM = """
from measured import function, other
from tests.support.measuring import unmeasured
with unmeasured():
    function()
other()
"""
MEASURED = """
def function():
    return 1

def other():
    return 2
"""

#: xdist kills a worker that does not end in time, and this one takes a minute.
SLOW_END = """
import atexit, time
from measured import function
def test_one():
    atexit.register(time.sleep, 60)
    function()
"""
CONFTEST = """
from xdist.workermanage import NodeManager
from tests.support.measuring import save_measures as pytest_sessionfinish
NodeManager.EXIT_TIMEOUT = 0.1
"""
SETTINGS = """
[run]
parallel = true
patch = subprocess
source_pkgs = measured, never_imported
"""


class Folder:
    """Runs `coverage` where no test is measured from outside."""

    def __init__(self, path: Path) -> None:
        self._path = path
        (path / "measured.py").write_text(MEASURED)
        outer = {name: value for name, value in os.environ.items() if not name.startswith(("COVERAGE_", "PYTEST_"))}
        self._environment = outer | {"PYTHONPATH": os.pathsep.join((str(Path(__file__).parents[2]), str(path)))}

    def coverage(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "coverage", *arguments]
        subprocess.run(command, cwd=self._path, env=self._environment, check=True, timeout=60)

    def missing_lines(self) -> list[int]:
        self.coverage("json", "-q", "-o", "found.json")
        (found,) = json.loads((self._path / "found.json").read_text())["files"].values()
        return list(found["missing_lines"])


def test_child_processes_are_not_measured_in_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COVERAGE_PROCESS_CONFIG", "a configuration")

    with unmeasured():
        assert not [name for name in os.environ if name.startswith("COVERAGE_")]

    assert os.environ["COVERAGE_PROCESS_CONFIG"] == "a configuration"


def test_only_the_block_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    folder = Folder(tmp_path)
    folder.coverage("run", "--include", "measured.py", "program.py")

    assert folder.missing_lines() == [3]


@pytest.mark.lasts(4)
def test_what_a_killed_worker_has_measured_is_kept(tmp_path: Path) -> None:
    for name, text in (("test_here.py", SLOW_END), ("conftest.py", CONFTEST), (".coveragerc", SETTINGS)):
        (tmp_path / name).write_text(text)
    (tmp_path / "pytest.ini").write_text("[pytest]\nfilterwarnings = error")
    folder = Folder(tmp_path)
    folder.coverage("run", "-m", "pytest", "-q", "-n", "1", "-p", "no:cacheprovider")
    folder.coverage("combine", "-q")

    assert folder.missing_lines() == [6]
