"""The number of workers follows the load: stories of the simulation, each an hour of one load with real workers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.lasts(60)
@pytest.mark.parametrize("seed", [3])
def test_a_load_is_followed_and_an_idle_fleet_is_quiet(seed: int) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    command = [sys.executable, "-m", "tests.simulation", "verdict", f"scaling:{seed}"]

    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=800, check=False)

    assert done.stdout, done.stderr
    found = json.loads(done.stdout)
    assert found["rule"] is None, found["text"]
