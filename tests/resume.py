"""A pytest plugin: go on with a run that was interrupted, as long as no file of the project has changed.

    pytest -p tests.resume --resume build/reports/long.passed ...

The file keeps a fingerprint of the project's files and the tests that have passed. A run with the same fingerprint
leaves these tests out and says how many; a run with another one starts from the beginning. A failed test is run again.

With pytest-xdist the controlling process alone reads and writes the file. Its workers, also those that replace a
crashed one later, get what it has read: all of them have to collect the same tests.
"""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
#: Key of the plugin under which pytest keeps the record.
_RECORD = "tests-resume-record"


class Record:
    """The tests that have passed with the present files."""

    def __init__(self, path: Path, fingerprint: str) -> None:
        self._path = path
        found = path.read_text().splitlines() if path.exists() else []
        self.passed = frozenset(found[1:]) if found[:1] == [fingerprint] else frozenset()
        if not self.passed:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{fingerprint}\n")

    def add(self, test: str) -> None:
        """Record a passed test at once: the run may be interrupted at any moment."""
        with self._path.open("a") as lines:
            lines.write(f"{test}\n")

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker of pytest-xdist what has passed."""
        node.workerinput[_RECORD] = sorted(self.passed)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record what passes."""
        if report.when == "call" and report.passed:
            self.add(_without_group(report.nodeid))

    def pytest_report_header(self) -> str:
        """Say how much is left out."""
        return f"resumed: {len(self.passed)} tests have passed before with these files"


class Rest:
    """Leaves out the tests that have passed."""

    def __init__(self, passed: frozenset[str]) -> None:
        self._passed = passed

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Leave out what has passed."""
        done = [item for item in items if _without_group(item.nodeid) in self._passed]
        if done:
            config.hook.pytest_deselected(items=done)
            items[:] = [item for item in items if _without_group(item.nodeid) not in self._passed]


def _without_group(nodeid: str) -> str:
    """Name of a test without the xdist group that pytest-xdist appends.

    >>> _without_group("tests/test_a.py::test_b[x@y]@kafka")
    'tests/test_a.py::test_b[x@y]'
    """
    place = nodeid.rfind("@")
    return nodeid[:place] if place > nodeid.rfind("]") else nodeid


def fingerprint(root: Path = ROOT) -> str:
    """Hash of every file that git knows or would add."""
    names = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=root,
        check=True,
        capture_output=True,
    ).stdout
    digest = hashlib.sha256()
    for name in sorted(filter(None, names.split(b"\0"))):
        path = root / name.decode()
        digest.update(name + b"\0" + (path.read_bytes() if path.is_file() else b"gone") + b"\0")
    return digest.hexdigest()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option that turns it on."""
    parser.addoption("--resume", metavar="FILE", help="leave out the tests that this file records as passed")


def pytest_configure(config: pytest.Config) -> None:
    """Read the record; a worker of pytest-xdist gets its content from the controlling process."""
    path = config.getoption("--resume")
    if not path:
        return
    workerinput = getattr(config, "workerinput", None)
    if workerinput is None:
        record = Record(Path(path), fingerprint())
        config.pluginmanager.register(record, _RECORD)
        passed = record.passed
    else:
        passed = frozenset(workerinput[_RECORD])
    config.pluginmanager.register(Rest(passed), f"{_RECORD}-rest")
