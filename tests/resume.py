"""A pytest plugin: go on with a run that was interrupted, as long as no file of the project has changed.

    pytest -p tests.resume --resume build/reports/long.passed ...

The file keeps a fingerprint of the project's files and the tests that have passed. A run with the same fingerprint
leaves these tests out and says how many; a run with another one starts from the beginning. A failed test is run again.
"""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
#: Key of the plugin under which pytest keeps the record.
_RECORD = "tests-resume-record"


class Record:
    """The tests that have passed with the present files."""

    def __init__(self, path: Path, fingerprint: str) -> None:
        self._path = path
        found = path.read_text().splitlines() if path.exists() else []
        self.passed = set(found[1:]) if found[:1] == [fingerprint] else set()
        if not self.passed:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{fingerprint}\n")

    def add(self, test: str) -> None:
        """Record a passed test at once: the run may be interrupted at any moment."""
        with self._path.open("a") as lines:
            lines.write(f"{test}\n")

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Leave out what has passed."""
        done = [item for item in items if item.nodeid in self.passed]
        if done:
            config.hook.pytest_deselected(items=done)
            items[:] = [item for item in items if item.nodeid not in self.passed]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record what passes."""
        if report.when == "call" and report.passed:
            self.add(report.nodeid)

    def pytest_report_header(self) -> str:
        """Say how much is left out."""
        return f"resumed: {len(self.passed)} tests have passed before with these files"


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
    """Read the record."""
    path = config.getoption("--resume")
    if path:
        config.pluginmanager.register(Record(Path(path), fingerprint()), _RECORD)
