"""The judge of the moves objects to each one without a cause, and to nothing else."""

from __future__ import annotations

from ots_tunnel.stream.lease.row import COUNTER, OWNER, STEALER
from tests.simulation.leases.ledger import LeaseWritten
from tests.simulation.leases.moving import Cause, Moving

DURATION, TAKE = 20.0, 6.0


class Scene:
    """Writes to the leases, at the times of a clock."""

    def __init__(self, **owners: str) -> None:
        self.broken: list[str] = []
        self.judge = Moving(self.violate, DURATION, TAKE)
        self.now = 0.0
        for shard, owner in owners.items():
            self.write("region", shard, is_whole=True, owner="", stealer="", counter=0)
            self.take(owner, shard)

    def violate(self, rule: str, text: str) -> None:
        self.broken.append(rule)

    def write(self, who: str, shard: str, *, is_whole: bool = False, late: float = 0.0, **values: str | int) -> None:
        names = {"owner": OWNER, "stealer": STEALER, "counter": COUNTER}
        written = {names[name]: value for name, value in values.items()}
        self.judge.take(LeaseWritten(self.now, who, self.now - late, shard, written, is_whole))

    def take(self, who: str, shard: str) -> None:
        self.write(who, shard, counter=1, owner=who, stealer="")

    def ask(self, who: str, shard: str, late: float = 0.0) -> None:
        self.write(who, shard, stealer=who, late=late)

    def transfer(self, who: str, shard: str, thief: str) -> None:
        self.write(who, shard, counter=1, owner=thief)

    def causes(self) -> list[Cause]:
        return [move.cause for move in self.judge.moves if move.cause is not Cause.FREE]


def test_a_lease_that_is_asked_for_and_one_that_has_expired() -> None:
    scene = Scene(s1="w1", s2="w1", s3="w3")
    scene.ask("w2", "s1")
    scene.transfer("w1", "s1", "w2")
    scene.take("w2", "s1")
    scene.now = 21.0
    scene.take("w2", "s3")

    assert scene.broken == []
    assert scene.causes() == [Cause.ASKED, Cause.EXPIRED]
    assert scene.judge.counts()["moves in the worst minute"] == 5


def test_a_lease_is_taken_from_an_owner_that_lives() -> None:
    scene = Scene(s1="w1")
    scene.now = 15.0
    scene.write("w1", "s1", counter=2)
    scene.now = 34.0
    scene.take("w2", "s1")

    assert scene.broken == ["early"]


def test_two_workers_exchange_their_leases() -> None:
    scene = Scene(s1="w1", s2="w1", s3="w2")
    scene.now = 60.0
    scene.ask("w2", "s1")

    assert scene.broken == ["vain"]


def test_a_lease_on_its_way_counts_for_the_worker_that_has_asked() -> None:
    scene = Scene(s1="w1", s2="w1", s3="w1", s4="w1", s5="w2")
    scene.now = 60.0
    scene.write("w1", "s1", counter=2)
    scene.ask("w2", "s1")
    scene.now = 66.0
    scene.ask("w2", "s2")

    assert scene.broken == []  # the table of before is not too old

    scene.now = 90.0
    scene.write("w1", "s1", counter=3)
    scene.write("w1", "s2", counter=3)
    scene.now = 100.0
    scene.ask("w2", "s3")

    assert scene.broken == ["vain"]


def test_a_worker_of_the_library_forgets_what_is_on_its_way() -> None:
    scene = Scene(s1="w1", s2="w1", s3="w1")
    for at, shard in ((60.0, "s1"), (66.0, "s2"), (72.0, "s3")):
        scene.now = at
        scene.ask("j1", shard)

    assert scene.broken == []


def test_a_worker_asks_twice_in_one_round() -> None:
    scene = Scene(s1="w1", s2="w1", s3="w1", s4="w1")
    scene.ask("w2", "s1")
    scene.now = 5.0
    scene.ask("w2", "s2")

    assert scene.broken == ["hasty"]


def test_a_late_try_of_an_earlier_round_is_no_second_one() -> None:
    scene = Scene(s1="w1", s2="w1", s3="w1", s4="w1")
    scene.ask("w2", "s1")
    scene.now = 12.0
    scene.ask("w2", "s2", late=5.9)

    assert scene.broken == []


def test_a_lease_is_handed_to_another_worker_than_its_thief() -> None:
    scene = Scene(s1="w1", s2="w1", s3="w3")
    scene.ask("w2", "s1")
    scene.transfer("w1", "s1", "w3")

    assert scene.broken == ["unasked"]


def test_a_worker_that_has_given_its_leases_away_takes_another_one() -> None:
    scene = Scene(s1="w1", s2="w2")
    scene.write("w1", "s1", counter=2, owner="w2", stealer="w2")
    assert scene.causes() == [Cause.GIVEN]
    scene.now = 30.0
    scene.take("w1", "s2")

    assert scene.broken == ["unasked"]


def test_leases_are_handed_to_and_fro_without_end() -> None:
    """One worker asks again and again at the times of its rounds, and others hand over more than it asks for."""
    scene = Scene(s1="j1", s2="j2")
    scene.now = 100.0
    for _ in range(40):
        scene.now += 1.0
        for owner, thief in (("j1", "j2"), ("j2", "j1")):
            scene.write(thief, "s1", stealer=thief)
            scene.transfer(owner, "s1", thief)
            scene.take(thief, "s1")

    assert set(scene.broken) == {"war"}
    assert scene.judge.most_in_a_minute(scene.now - 60) == 2 * 5 + 2 * 11
