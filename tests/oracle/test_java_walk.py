"""Every call of the vendor's unmodified Java SDK on our emulator: happy paths and each class of error."""

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
    pytest.mark.xdist_group("java_walk"),  # they look at one walk
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
#: What the emulator offers, as the SDK calls it.
ANSWERED = {
    *("createTable", "listTable", "describeTable", "updateTable", "deleteTable"),
    *("putRow", "updateRow", "deleteRow", "getRow", "batchWriteRow", "batchGetRow", "getRange"),
    *("createRangeIterator", "createWideColumnIterator", "computeSplitsBySize"),
    *("startLocalTransaction", "commitTransaction", "abortTransaction"),
    *("listStream", "describeStream", "getShardIterator", "getStreamRecord"),
    *("createTunnel", "listTunnel", "describeTunnel", "deleteTunnel"),
    *("connectTunnel", "heartbeat", "shutdownTunnel", "getCheckpoint", "checkpoint", "readRecords"),
    *("listSearchIndex", "listDeliveryTask"),
}
#: What the SDK also has and no emulated table does: products of their own, whose calls are unknown operations.
OTHER_PRODUCTS = ("GlobalTable", "KnowledgeBase", "Document", "Chunks", "retrieve")


@dataclass(frozen=True)
class Walk:
    """What one walk reported: per section its steps, with what went wrong, and which methods of the SDK it called."""

    sections: dict[str, dict[str, str | None]]
    answered: set[str]
    never_called: list[str]


@pytest.fixture(scope="module")
def walk(java_worker: Path) -> Walk:
    keys = {"test-id": "test-secret"}
    with EmulatorThread({"demo": keys, "second": keys}, settings=Settings(init_delay=0.01)) as emulator:
        command = walk_command(java_worker, emulator.endpoint, emulator.admin_url)
        walked = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert walked.returncode == 0, walked.stderr
    *steps, last = map(json.loads, walked.stdout.splitlines())
    sections: dict[str, dict[str, str | None]] = {}
    for step in steps:
        section, _, name = step["step"].partition("/")
        sections.setdefault(section, {})[name] = None if step["ok"] else step["detail"]
    return Walk(sections, set(last["calls"]), last["left"])


@pytest.mark.parametrize("section", SECTIONS)
def test_java_walk(walk: Walk, section: str) -> None:
    failed = [f"{name}: {detail}" for name, detail in walk.sections[section].items() if detail is not None]
    assert not failed, "\n".join(["failed steps:", *failed])


def test_java_walk_makes_every_call(walk: Walk) -> None:
    assert sorted(ANSWERED - walk.answered) == []
    assert [name for name in walk.never_called if not any(product in name for product in OTHER_PRODUCTS)] == []
    assert list(walk.sections) == SECTIONS
