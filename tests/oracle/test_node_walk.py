"""Every table and row call of the vendor's unmodified Node SDK on our emulator."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.oracle.walking import Walk, take_walk

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.timeout(300),  # the first test also installs the program
    pytest.mark.xdist_group("node_walk"),  # they examine one walk
]

SECTIONS = ["tables", "rows", "ranges", "batches", "transactions", "out-of-scope", "end"]
#: Calls that both the emulator and the SDK support, by their names in the SDK.
CALLS = {
    *("createTable", "listTable", "describeTable", "updateTable", "deleteTable"),
    *("putRow", "updateRow", "deleteRow", "getRow", "getRange", "batchWriteRow", "batchGetRow"),
    *("startLocalTransaction", "commitTransaction", "abortTransaction"),
}


@pytest.fixture(scope="module")
def walk(node_walk: Path) -> Walk:
    return take_walk(node_walk, seconds=120)


@pytest.mark.parametrize("section", SECTIONS)
def test_node_walk(walk: Walk, section: str) -> None:
    walk.check(section)


def test_node_walk_makes_every_call(walk: Walk) -> None:
    assert walk.calls == CALLS
    assert list(walk.sections) == SECTIONS
