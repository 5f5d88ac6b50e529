"""The simulation itself: the same seed tells the same story, and every regression file keeps its promises."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
#: A story takes seconds; on a machine that does other work as well, longer.
pytestmark = pytest.mark.timeout(300)
REGRESSIONS = sorted((Path(__file__).parent / "regressions").glob("*.json"))
#: Files that one interpreter tells one after the other: each one begins with seconds of imports.
TOGETHER = 3


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command of the simulation, in an interpreter of its own: it replaces clocks and chance."""
    # Without coverage: it would be most of the time, and the product is measured by its other tests.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    command = [sys.executable, "-m", "tests.simulation", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=280, check=False)


@cache
def verdicts(*whats: str) -> dict[str, dict[str, Any]]:
    """The verdicts about seeds or files, by what they are about."""
    done = run("verdict", *whats)
    found = {line["what"]: line for line in map(json.loads, done.stdout.splitlines())}
    assert list(found) == list(whats), done.stderr
    return found


def verdict(seed: str) -> dict[str, Any]:
    """The verdict about a seed."""
    return verdicts(seed)[seed]


def _known(path: Path) -> Any:
    """A regression file as a parameter; a defect that stands has the rule that it breaks, and the reason."""
    document = json.loads(path.read_text())
    group = pytest.mark.xdist_group(f"stories {_place(path)}")
    stands = [pytest.mark.xfail(strict=True, reason=document["why"])] if document.get("stands") else []
    return pytest.param(path, marks=[group, *stands], id=path.stem)


def _place(path: Path) -> int:
    return REGRESSIONS.index(path) // TOGETHER


@pytest.mark.parametrize("path", [_known(path) for path in REGRESSIONS])
@pytest.mark.lasts(9)
def test_a_story_that_once_broke_a_promise_keeps_it(path: Path) -> None:
    begin = _place(path) * TOGETHER
    found = verdicts(*map(str, REGRESSIONS[begin : begin + TOGETHER]))[str(path)]

    assert found["rule"] is None, found["text"]


@pytest.mark.lasts(18)
def test_the_same_seed_tells_the_same_story_byte_by_byte() -> None:
    first, second = (json.loads(run("verdict", "3").stdout) for _ in range(2))

    assert first == second
    assert first["digest"] != verdict("4")["digest"]


@pytest.mark.lasts(6)
@pytest.mark.parametrize("seed", ["files:3", "replicate:8", "spark:2", "leases:3"])
def test_stories_of_the_other_kinds_are_the_same_as_well(seed: str) -> None:
    first, second = (json.loads(run("verdict", seed).stdout) for _ in range(2))

    assert first == second
    assert first["rule"] is None, first["text"]


def test_a_replay_tells_time_actor_and_event() -> None:
    story = run("replay", "4", "--steps", "1", "--whole").stdout

    assert "  w0.1         connected" in story
    assert "no promise is broken" in story
