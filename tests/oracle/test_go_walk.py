"""Every call of the vendor's unmodified Go SDK on our emulator: happy paths and each class of error."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.oracle.walking import Walk, take_walk

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.timeout(600),  # the first test also builds the program
    pytest.mark.xdist_group("go_walk"),  # they examine one walk
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
#: Calls that both the emulator and the SDK support.
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


@pytest.fixture(scope="module")
def walk(go_worker: Path) -> Walk:
    return take_walk(go_worker, seconds=120)


@pytest.mark.parametrize("section", SECTIONS)
def test_go_walk(walk: Walk, section: str) -> None:
    walk.check(section)


def test_go_walk_makes_every_call(walk: Walk) -> None:
    assert sorted(CALLS - walk.calls) == []
    assert list(walk.sections) == SECTIONS
