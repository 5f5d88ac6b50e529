"""The scene: the leader of two replicas ends in each way, one after the other, and the work moves in time each time."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.replicas.by_hand import DELETIONS

ROOT = Path(__file__).parents[3]
#: A story takes seconds; on a machine that does other work as well, longer.
pytestmark = pytest.mark.timeout(300)

#: Second, kind, target and duration of each end; in between the former leader stands by again.
ENDS = (
    (100.0, "kill the leader", 0, 20.0),
    (250.0, "freeze the leader", 0, 60.0),
    (400.0, "freeze the leader", 1, 60.0),
    (550.0, "cut the leader off", 0, 60.0),
    (700.0, "end the leader in order", 0, 20.0),
)


def told(*arguments: str) -> str:
    """What the simulation tells, in an interpreter of its own: it replaces clocks and chance."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    command = [sys.executable, "-m", "tests.simulation", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=250, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.lasts(12)
def test_the_work_moves_in_time_whatever_ends_the_leader(tmp_path: Path) -> None:
    acts = [{"at": at, "kind": kind, "target": target, "seconds": seconds} for at, kind, target, seconds in ENDS]
    scenario = {"seed": 1, "plot": "replicas", "standbys": 1, "length": 900.0, "acts": acts}
    path = tmp_path / "ends.json"
    path.write_text(json.dumps(scenario))

    story = told("replay", str(path), "--whole", "--shrink-seconds", "0")

    # after that the Lease was deleted, and given to another holder (`by_hand`), and an edit was in time each time
    assert f", {len(ENDS) + DELETIONS + 1} fail-overs in time," in story
    # each end made the other one lead, and the last one did not have to wait for the Lease; so did the other holder
    leading = [(60 * int(m) + float(s), who) for m, s, who in re.findall(r"(\d+):([\d.]+)  (\S+) +leads$", story, re.M)]
    assert len(leading) == len(ENDS) + 2
    assert leading[-2][0] - ENDS[-1][0] < 10


@pytest.mark.lasts(9)
@pytest.mark.parametrize("seed", [3, 5])
def test_seeds_with_two_replicas_keep_every_promise(seed: int) -> None:
    assert json.loads(told("verdict", f"replicas:{seed}"))["rule"] is None
