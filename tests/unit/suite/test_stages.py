"""Every test belongs to a stage: those that name folders to collect have all tests of their marks there."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests import suite


@pytest.mark.parametrize(
    ("stage", "marks"),
    [(suite.API, "api"), (suite.SPARK, "spark"), (suite.LEASES, "leases"), (suite.E2E, "cluster")],
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


def test_only_a_run_that_ends_with_the_gate_measures_coverage() -> None:
    measured = [stage.name for stage in suite.chosen(["--only", "coverage", "fast", "lint"]) if stage.is_measured]

    assert measured == ["fast"]
    assert [stage.name for stage in suite.chosen(["--only", "coverage", "fast"])] == ["fast", "coverage"]
    assert not any(stage.is_measured for stage in (*suite.chosen([]), *suite.chosen(["--only", "fast", "api"])))


def test_what_a_stage_starts_compiles_its_modules_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setattr(suite, "REPORTS", tmp_path)
    keeps = "import sys; sys.exit(sys.dont_write_bytecode or sys.pycache_prefix is None)"

    assert suite.run(suite.Stage("keeps", "compiled modules", ((sys.executable, "-c", keeps),)), set()).status == 0


def test_stages_run_beside_what_they_do_not_wait_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(suite, "REPORTS", tmp_path)
    monkeypatch.setattr(suite, "ROOT", tmp_path)
    monkeypatch.setattr(suite, "end_orphans", list)  # it would end the children of this process

    def stage(name: str, body: str, *waits_for: str, is_beside: bool = False) -> suite.Stage:
        has = "has = lambda name: pathlib.Path(name).exists()"
        code = f"import pathlib, time\n{has}\n{body}\nprint('ran {name}')"
        return suite.Stage(name, name, ((sys.executable, "-c", code),), is_beside=is_beside, waits_for=waits_for)

    # each waits for what the other one does: one behind the other they would never end
    meets = "pathlib.Path({0!r}).touch()\nwhile not has({1!r}): time.sleep(0.02)"
    stages = (
        stage("install", meets.format("a", "b") + "\npathlib.Path('done').touch()", is_beside=True),
        stage("simulate", meets.format("c", "d") + "\npathlib.Path('told').touch()", is_beside=True),
        stage("light", meets.format("b", "a")),
        stage("heavy", "assert has('done')\n" + meets.format("d", "c"), "install"),
        stage("alone", "assert has('told')", "install", "simulate"),
    )
    outcomes = suite.run_all(stages, set())

    names = ["light", "install", "heavy", "simulate", "alone"]
    assert [(outcome.stage, outcome.status) for outcome in outcomes] == [(name, 0) for name in names]
    ran = [line for line in capfd.readouterr().out.splitlines() if line.startswith("ran")]
    assert ran == [f"ran {name}" for name in names]


def test_what_runs_beside_others_is_shown_where_no_stage_waits_for_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(suite, "REPORTS", tmp_path)
    stages = (suite.Stage("simulate", "fails", ((sys.executable, "-c", "raise SystemExit(3)"),), is_beside=True),)

    assert [(outcome.stage, outcome.status) for outcome in suite.run_all(stages, set())] == [("simulate", 3)]


def test_a_stage_waits_for_one_that_runs_beside_others() -> None:
    beside = {stage.name for stage in (*suite.SHORT_RUN, *suite.LONG_RUN) if stage.is_beside}

    assert {name for stage in (*suite.SHORT_RUN, *suite.LONG_RUN) for name in stage.waits_for} <= beside
    assert set(suite.ALONE.waits_for) == beside
