"""A test with the mark `unmeasured` is left out of the coverage, and the next one is measured again."""

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


def test_child_processes_are_not_measured_in_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COVERAGE_PROCESS_CONFIG", "a configuration")

    with unmeasured():
        assert not [name for name in os.environ if name.startswith("COVERAGE_")]

    assert os.environ["COVERAGE_PROCESS_CONFIG"] == "a configuration"


def test_only_the_block_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "measured.py").write_text(MEASURED)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    environment["PYTHONPATH"] = os.pathsep.join((str(Path(__file__).parents[2]), str(tmp_path)))

    def coverage(*arguments: str) -> None:
        command = [sys.executable, "-m", "coverage", *arguments]
        subprocess.run(command, cwd=tmp_path, env=environment, check=True, timeout=60)

    coverage("run", "--include", "measured.py", "program.py")
    coverage("json", "-q", "-o", "found.json")
    (found,) = json.loads((tmp_path / "found.json").read_text())["files"].values()
    assert found["missing_lines"] == [3]
