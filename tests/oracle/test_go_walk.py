"""Every call of the vendor's unmodified Go SDK on our emulator: happy paths and each class of error."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from ots_emulator import Settings
from ots_emulator.thread import EmulatorThread
from tests.oracle.go_program import walk_command

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.timeout(600),  # the first test also builds the program
    pytest.mark.xdist_group("go_walk"),  # they look at one walk
]

SECTIONS = [
    "tables",
    "writes",
    "conditions",
    "batches",
    "reads",
    "ranges",
    "auto-increment",
    "transactions",
    "streams",
    "splits",
    "lifetimes",
    "faults",
    "tunnels",
    "channels",
    "security",
    "out-of-scope",
]
#: What the emulator offers, as far as the SDK has a call for it.
CALLS = {
    *("/CreateTable", "/ListTable", "/DescribeTable", "/UpdateTable", "/DeleteTable"),
    *("/PutRow", "/UpdateRow", "/DeleteRow", "/GetRow", "/BatchWriteRow", "/BatchGetRow", "/GetRange"),
    *("/ComputeSplitPointsBySize", "/StartLocalTransaction", "/CommitTransaction", "/AbortTransaction"),
    *("/ListStream", "/DescribeStream", "/GetShardIterator", "/GetStreamRecord"),
    *("/tunnel/create", "/tunnel/list", "/tunnel/describe", "/tunnel/delete"),
    *("/tunnel/connect", "/tunnel/heartbeat", "/tunnel/shutdown"),
    *("/tunnel/getcheckpoint", "/tunnel/checkpoint", "/tunnel/readrecords"),
    *("/tunnel/getrpo", "/tunnel/getrpobyoffset", "/tunnel/schedule"),
}


@dataclass(frozen=True)
class Walk:
    """What one walk reported: per section its steps, with what went wrong, and the calls that were answered."""

    sections: dict[str, dict[str, str | None]]
    calls: set[str]


@pytest.fixture(scope="module")
def walk(go_worker: Path) -> Walk:
    keys = {"test-id": "test-secret"}
    with EmulatorThread({"demo": keys, "second": keys}, settings=Settings(init_delay=0.01)) as emulator:
        command = walk_command(go_worker, emulator.endpoint, emulator.admin_url)
        walked = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert walked.returncode == 0, walked.stderr
    *steps, last = map(json.loads, walked.stdout.splitlines())
    sections: dict[str, dict[str, str | None]] = {}
    for step in steps:
        section, _, name = step["step"].partition("/")
        sections.setdefault(section, {})[name] = None if step["ok"] else step["detail"]
    return Walk(sections, set(last["calls"]))


@pytest.mark.parametrize("section", SECTIONS)
def test_go_walk(walk: Walk, section: str) -> None:
    failed = [f"{name}: {detail}" for name, detail in walk.sections[section].items() if detail is not None]
    assert not failed, "\n".join(["failed steps:", *failed])


def test_go_walk_makes_every_call(walk: Walk) -> None:
    assert sorted(CALLS - walk.calls) == []
    assert list(walk.sections) == SECTIONS
