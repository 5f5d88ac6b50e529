"""The number of workers follows the load: stories of the simulation, each an hour of one load with real workers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.scaling.loads import LOADS, chance_of, step_of
from tests.simulation.scaling.lulls import LULLS
from tests.simulation.scaling.scenario import ScalingScenario

ROOT = Path(__file__).parents[3]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a module of the simulation."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=800, check=False)


def test_twenty_seeds_have_each_load_with_and_without_faults() -> None:
    drawn = [ScalingScenario.of(seed) for seed in range(20)]

    assert {(each.load, bool(each.acts)) for each in drawn} == {(load, faults) for load in LOADS for faults in (0, 1)}
    assert all(ScalingScenario.from_json(each.to_json()) == each for each in drawn)


def test_lulls_are_drawn_apart_from_the_stories_of_the_table() -> None:
    lulls = {seed: ScalingScenario.of(seed) for seed in range(20) if seed % 20 in LULLS}

    assert min(lulls) >= 8
    assert {seed: [act.kind for act in each.acts] for seed, each in lulls.items()} == {
        9: ["kill the operator"],
        10: ["the cluster is slow", "edit workers", "edit workers"],
    }
    for seed, each in lulls.items():
        _, sinks = step_of(chance_of(seed))
        assert all(abs(act.at - sinks) < 300 for act in each.acts)
        assert each.length > sinks


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.lasts(60)
@pytest.mark.parametrize("seed", [3, 7])
def test_a_load_is_followed_and_an_idle_fleet_is_quiet(seed: int) -> None:
    done = run("tests.simulation", "verdict", f"scaling:{seed}")

    assert done.stdout, done.stderr
    found = json.loads(done.stdout)
    assert found["rule"] is None, found["text"]


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.lasts(60)
def test_the_comparison_tells_the_same_story_with_each_chooser() -> None:
    done = run("tests.simulation.scaling", "--seeds", "1")

    assert done.returncode == 0, done.stdout + done.stderr
    assert [line.split()[1] for line in done.stdout.splitlines()[-3:]] == ["fixed", "HPA", "Auto"]
