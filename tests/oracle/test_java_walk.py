"""Every call of the vendor's unmodified Java SDK on our emulator: happy paths and each class of error."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.oracle.walking import Walk, take_walk

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.timeout(600),  # the first test also builds the program
    pytest.mark.xdist_group("java_walk"),  # they examine one walk
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
    "faults",
    "tunnels",
    "channels",
    "security",
    "compression",
    "out-of-scope",
]
#: Calls that the emulator supports, by their names in the SDK.
ANSWERED = {
    *("createTable", "listTable", "describeTable", "updateTable", "deleteTable"),
    *("putRow", "updateRow", "deleteRow", "getRow", "batchWriteRow", "batchGetRow", "getRange"),
    *("createRangeIterator", "createWideColumnIterator", "computeSplitsBySize"),
    *("startLocalTransaction", "commitTransaction", "abortTransaction"),
    *("listStream", "describeStream", "getShardIterator", "getStreamRecord"),
    *("createTunnel", "listTunnel", "describeTunnel", "deleteTunnel"),
    *("connectTunnel", "heartbeat", "shutdownTunnel", "getCheckpoint", "checkpoint", "readRecords"),
}
#: Calls of the SDK for other products, which are unknown operations here.
OTHER_PRODUCTS = ("GlobalTable", "KnowledgeBase", "Document", "Chunks", "retrieve")


@pytest.fixture(scope="module")
def walk(java_worker: Path) -> Walk:
    return take_walk(java_worker, seconds=240)


@pytest.mark.parametrize("section", SECTIONS)
def test_java_walk(walk: Walk, section: str) -> None:
    walk.check(section)


def test_java_walk_makes_every_call(walk: Walk) -> None:
    assert sorted(ANSWERED - walk.calls) == []
    assert [name for name in walk.summary["left"] if not any(product in name for product in OTHER_PRODUCTS)] == []
    assert list(walk.sections) == SECTIONS
