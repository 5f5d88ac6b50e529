"""A missing program: the reason to skip a test by hand, a failure where the test command has installed it."""

from __future__ import annotations

import sys

import pytest

from tests import suite
from tests.support.lacking import INSTALLED, lack


@pytest.mark.parametrize("installed", ["", "go nodejs"])
def test_a_program_that_nobody_installs_skips(monkeypatch: pytest.MonkeyPatch, installed: str) -> None:
    monkeypatch.setenv(INSTALLED, installed)

    with pytest.raises(pytest.skip.Exception, match="no Java here"):
        lack("java", "no Java here")


def test_a_program_that_was_installed_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(INSTALLED, "go java")

    with pytest.raises(pytest.fail.Exception, match="no Java here; the test command installs it"):
        lack("java", "no Java here")


@pytest.mark.parametrize(("status", "found"), [(0, {"java"}), (2, set())], ids=["installed", "lacking"])
def test_the_suite_names_what_it_has_installed(status: int, found: set[str]) -> None:
    command = (sys.executable, "-c", f"raise SystemExit({status})")
    stage = suite.Stage("programs", "Java", (command,), may_lack=True, installs=("java",))
    installed: set[str] = set()

    outcome = suite.run(stage, installed)

    assert (installed, outcome.status) == (found, 0)


def test_every_command_that_installs_says_what() -> None:
    stages = [stage for stage in (*suite.SHORT_RUN, *suite.LONG_RUN) if stage.may_lack]

    assert [len(stage.installs) for stage in stages] == [len(stage.commands) for stage in stages]


def test_the_commands_see_what_earlier_ones_have_installed(capfd: pytest.CaptureFixture[str]) -> None:
    command = (sys.executable, "-c", f"import os; print(os.environ[{INSTALLED!r}])")

    suite.run(suite.Stage("tests", "tests", (command,)), {"java", "go"})

    assert "go java" in capfd.readouterr().out
