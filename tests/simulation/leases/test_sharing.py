"""The judge of stories with leases objects to every broken promise, and to nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from ots_tunnel.stream.lease.lease import SHARD_END
from ots_tunnel.stream.lease.row import CHECKPOINT, COUNTER, OWNER, PARENTS, STEALER
from tests.simulation.leases.ledger import LeaseWritten, ShardRead
from tests.simulation.leases.sharing import Sharing
from tests.support.ledger import Written
from tests.support.row_changes import action_of

#: Seconds after a reset in which two workers may own a lease.
RESETS_COUNT = 60.0


@dataclass
class Place:
    key: str
    number: int


@dataclass
class Log:
    """What was written at the source: numbers of one key, in the order of the shards' logs."""

    due: dict[str, int] = field(default_factory=lambda: {"k": 4})
    first_in_stream: dict[str, int] = field(default_factory=lambda: {"k": 1})

    def place(self, shard: str, position: int) -> Place:
        """A parent has the first two changes of the key, its child has the next ones."""
        return Place("k", position + (1 if shard == "parent" else 3))


class Scene:
    """The calls of a story, at the times of a clock."""

    def __init__(self) -> None:
        self.broken: list[str] = []
        self.judge = Sharing(Log(), self.violate, lambda who: True, RESETS_COUNT, lambda who: who == "java")
        self.now = 0.0
        self.counters: dict[str, int] = {}
        self.create("parent")
        self.create("child", "parent\n")

    def violate(self, rule: str, text: str) -> None:
        self.broken.append(rule)

    def create(self, shard: str, parents: str = "") -> None:
        self.counters[shard] = 0
        whole = {COUNTER: 0, OWNER: "", STEALER: "", CHECKPOINT: "TRIM_HORIZON", PARENTS: parents}
        self.judge.take(LeaseWritten(self.now, "a", self.now, shard, whole, is_whole=True))

    def change(self, who: str, shard: str, **values: str) -> None:
        self.counters[shard] += 1
        names = {"owner": OWNER, "stealer": STEALER, "checkpoint": CHECKPOINT}
        written = {COUNTER: self.counters[shard], **{names[name]: value for name, value in values.items()}}
        self.judge.take(LeaseWritten(self.now, who, self.now, shard, written))

    def take(self, who: str, shard: str) -> None:
        self.change(who, shard, owner=who, stealer="")

    def read(self, who: str, shard: str, position: int, count: int, *, ends: bool = False) -> None:
        following = None if ends else position + count
        self.judge.take(ShardRead(self.now, who, self.now, shard, position, count, following))

    def write(self, who: str, *numbers: int) -> None:
        for number in numbers:
            self.judge.take(Written(self.now, who, self.now, (("k", action_of(number).name, number),)))


def test_a_parent_and_its_child_are_read_by_two_workers() -> None:
    scene = Scene()
    scene.take("a", "parent")
    scene.read("a", "parent", 0, 2, ends=True)
    scene.write("a", 1, 2, 2)
    scene.change("a", "parent", checkpoint=SHARD_END)
    scene.take("b", "child")
    scene.read("b", "child", 0, 2)
    scene.read("b", "child", 0, 2)  # the first answer was lost
    scene.write("b", 3, 4)
    scene.change("b", "child", checkpoint="child:2")

    assert scene.broken == []
    assert scene.judge.missing() == []
    assert len(scene.judge.moves) == 2


def test_a_checkpoint_of_the_place_where_a_reading_begins_says_nothing_of_what_follows() -> None:
    """An empty page gives a shard's oldest record a position, and the next page may be read before it is stored."""
    scene = Scene()
    scene.take("a", "parent")
    scene.read("a", "parent", 0, 0)
    scene.read("a", "parent", 0, 2)
    scene.change("a", "parent", checkpoint="parent:0")

    assert scene.broken == []


def test_a_worker_that_dies_is_followed_by_another_one_from_the_checkpoint_on() -> None:
    scene = Scene()
    scene.take("a", "parent")
    scene.read("a", "parent", 0, 1)
    scene.write("a", 1)
    scene.change("a", "parent", checkpoint="parent:1")
    scene.read("a", "parent", 1, 1)
    scene.write("a", 2)
    scene.now = 30.0
    scene.take("b", "parent")
    scene.read("b", "parent", 1, 1)
    scene.write("b", 2)

    assert scene.broken == []
    assert scene.judge.missing() == ["k: 2 of 4"]


def test_a_write_of_a_former_owner() -> None:
    scene = Scene()
    scene.take("a", "parent")
    scene.read("a", "parent", 0, 1)
    scene.take("b", "parent")
    scene.now = 2.0
    scene.write("a", 1)

    assert scene.broken == ["owner"]


def test_a_write_after_the_lease_was_given_away() -> None:
    scene = Scene()
    scene.take("a", "parent")
    scene.read("a", "parent", 0, 1)
    scene.change("a", "parent", owner="b")
    scene.now = 2.0
    scene.write("a", 1)

    assert scene.broken == ["owner"]


@pytest.mark.parametrize(("later", "broken"), [(30.0, []), (70.0, ["owner"])])
def test_a_lease_that_was_written_anew_may_have_two_owners_for_a_while(later: float, broken: list[str]) -> None:
    scene = Scene()
    scene.take("a", "parent")
    scene.create("parent")
    scene.take("b", "parent")
    scene.read("b", "parent", 0, 1)
    scene.take("c", "parent")
    scene.now = later
    scene.write("b", 1)

    assert scene.broken == broken


def test_a_checkpoint_before_its_records() -> None:
    scene = Scene()
    scene.take("a", "parent")
    scene.read("a", "parent", 0, 2)
    scene.write("a", 1)
    scene.change("a", "parent", checkpoint="parent:2")

    assert scene.broken == ["checkpoint"]


def test_a_checkpoint_that_was_not_read() -> None:
    scene = Scene()
    scene.take("a", "parent")
    scene.read("a", "parent", 0, 1)
    scene.write("a", 1)
    scene.change("a", "parent", checkpoint="parent:7")

    assert scene.broken == ["checkpoint"]


def test_a_reading_that_begins_elsewhere() -> None:
    scene = Scene()
    scene.take("a", "parent")
    scene.read("a", "parent", 1, 1)

    assert scene.broken == ["start"]


@pytest.mark.parametrize(("who", "broken"), [("java", []), ("a", ["start"])])
@pytest.mark.parametrize("has_begun", [False, True])
def test_a_read_that_outlives_its_holding(who: str, broken: list[str], has_begun: bool) -> None:
    """It was under way when the lease was lost, and is executed when the worker holds the lease again."""
    scene = Scene()
    scene.take(who, "parent")
    scene.read(who, "parent", 0, 0)
    scene.take("b", "parent")
    scene.read("b", "parent", 0, 1)
    scene.write("b", 1)
    scene.change("b", "parent", checkpoint="parent:1")
    scene.take(who, "parent")
    if has_begun:
        scene.read(who, "parent", 1, 0)
    scene.read(who, "parent", 0, 1)
    if not broken:
        scene.read(who, "parent", 1, 1)
        scene.write(who, 2)
        scene.write(who, 1)

    assert scene.broken == broken


def test_a_child_before_its_parent() -> None:
    scene = Scene()
    scene.take("a", "child")
    scene.read("a", "child", 0, 1)

    assert scene.broken == ["parents"]


def test_a_change_that_was_left_out() -> None:
    scene = Scene()
    scene.take("a", "parent")
    scene.change("a", "parent", checkpoint=SHARD_END)
    scene.broken.clear()
    scene.take("b", "child")
    scene.read("b", "child", 0, 1)
    scene.write("b", 3)

    assert scene.broken == ["gap"]


def test_changes_that_are_exchanged() -> None:
    scene = Scene()
    scene.take("a", "parent")
    scene.read("a", "parent", 0, 2)
    scene.write("a", 2)

    assert scene.broken == ["order"]


def test_a_write_of_what_was_not_read() -> None:
    scene = Scene()
    scene.take("a", "parent")
    scene.write("a", 1)

    assert scene.broken == ["foreign"]
