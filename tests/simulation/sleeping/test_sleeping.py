"""A fleet sleeps and wakes: stories of the simulation, each with several nights and what happens in them."""

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
@pytest.mark.lasts(10)
@pytest.mark.parametrize("seed", range(15))
def test_nothing_is_overslept_and_the_status_knows_what_it_says(seed: int) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    command = [sys.executable, "-m", "tests.simulation", "verdict", f"sleeping:{seed}"]

    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=800, check=False)

    assert done.stdout, done.stderr
    found = json.loads(done.stdout)
    assert found["rule"] is None, found["text"]
