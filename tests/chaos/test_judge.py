"""The judge finds every kind of violation in a small ledger, and none in a correct one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from tests.chaos.judge import Judge, Strike, Verdict
from tests.support.ledger import Change, Entry, Opened, Read, Reported, Stored, Written

A1, A2, A3 = ("a", "UPDATE", 2), ("a", "UPDATE", 3), ("a", "UPDATE", 4)
B1 = ("b", "UPDATE", 2)
Rows = Sequence[Change]


class LedgerBuilder:
    """Builds a ledger; the channel's tokens are the positions of its log."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.t = 0.0
        self.owner = "w1"

    def header(self, who: str) -> tuple[float, str, float]:
        """A call that is executed when it is sent, a second after the one before."""
        self.t += 1
        return self.t, who, self.t

    def open(self, who: str, token: str = "0") -> LedgerBuilder:
        self.owner = who
        self.entries.append(Opened(*self.header(who), who, "c", token))
        return self

    def read(
        self, who: str, start: int, rows: Rows, following: str | None = None, *, base: bool = False
    ) -> LedgerBuilder:
        following = following or str(start + len(rows))
        position = None if base else start
        page = Read(*self.header(who), who, "c", self.owner, str(start), following, position, tuple(rows))
        self.entries.append(page)
        return self

    def write(self, who: str, *rows: Change) -> LedgerBuilder:
        self.entries.append(Written(*self.header(who), rows))
        return self

    def store(self, who: str, token: str) -> LedgerBuilder:
        self.entries.append(Stored(*self.header(who), who, "c", token))
        return self

    def report(self, who: str, status: str) -> LedgerBuilder:
        self.entries.append(Reported(*self.header(who), who, (("c", status),)))
        return self

    def judged(self, *strikes: Strike, acknowledged: Mapping[str, int] | None = None) -> Verdict:
        return Judge(strikes).judge(self.entries, acknowledged or {})


def kinds(verdict: Verdict) -> set[str]:
    return {violation.partition(":")[0] for violation in verdict.violations}


def first_session() -> LedgerBuilder:
    return LedgerBuilder().open("w1").read("w1", 0, [A1, B1, A2])


def test_an_ordered_session_has_no_violation() -> None:
    ledger = first_session().write("w1", A1, B1).write("w1", A2).store("w1", "3").report("w1", "CLOSE")
    verdict = ledger.open("w2", "3").read("w2", 3, [A3]).write("w2", A3).store("w2", "4").judged(acknowledged={"a": 4})

    assert verdict.violations == []
    assert verdict.counts["rows written"] == 4
    assert verdict.counts["hand-overs to another process"] == 1


def test_a_lost_answer_allows_a_repetition() -> None:
    ledger = first_session().write("w1", A1, B1).write("w1", A1, B1).write("w1", A2)

    verdict = ledger.read("w1", 3, [A3], "lost").read("w1", 3, [A3]).write("w1", A3).judged()
    assert verdict.violations == []
    assert verdict.counts["rows written again at once"] == 2
    assert verdict.counts["pages read again after a lost answer"] == 1


def test_only_entries_of_a_struck_worker_may_be_repeated() -> None:
    ledger = first_session().write("w1", A1, B1).store("w1", "0")
    ledger.open("w2", "0").read("w2", 0, [A1, B1, A2]).write("w2", A1, B1, A2)

    assert ledger.judged(Strike("w1", 4.5)).violations == []
    assert kinds(ledger.judged()) == {"repeat"}
    assert kinds(ledger.judged(Strike("w2", 4.5))) == {"repeat"}


@pytest.mark.parametrize(
    ("ledger", "kind"),
    [
        (first_session().write("w1", B1, A2), "order"),
        (first_session().write("w1", A1, A2, A1, B1), "order"),
        (first_session().write("w1", A1, B1, A2).write("w1", A1), "order"),
        (first_session().write("w1", A1, B1), "lost"),
        (first_session().write("w1", A1, B1).store("w1", "3").write("w1", A2), "checkpoint"),
        (first_session().write("w1", A1, B1, A2).store("w1", "2"), "checkpoint"),
        (first_session().write("w1", A1, B1, A2).report("w1", "TERMINATED"), "terminated"),
        (first_session().write("w1", A1, B1).report("w1", "CLOSE").write("w1", A2), "after close"),
        (first_session().write("w1", A1, B1, A2).open("w2").read("w2", 3, [A3]).write("w2", A3), "start"),
        (first_session().write("w1", A1, B1, A2).write("w2", A2), "foreign"),
    ],
)
def test_each_violation_is_named(ledger: LedgerBuilder, kind: str) -> None:
    assert kind in kinds(ledger.judged())


def test_an_old_write_over_a_new_one_is_found() -> None:
    ledger = first_session().write("w1", A1, B1).open("w2").read("w2", 0, [A1, B1, A2]).write("w2", A1, B1, A2)
    struck = Strike("w1", 3.5)

    assert ledger.judged(struck).violations == []
    assert "old over new" in kinds(ledger.write("w1", A2).judged(struck))


def test_a_checkpoint_after_the_hand_over_is_found() -> None:
    ledger = first_session().write("w1", A1, B1, A2).open("w2").read("w2", 0, [A1, B1, A2]).write("w2", A1, B1, A2)

    assert "old checkpoint" in kinds(ledger.store("w1", "3").judged(Strike("w1", 3.5)))


def test_reading_without_owning_is_harmless_and_writing_is_not() -> None:
    ledger = first_session().write("w1", A1, B1, A2).store("w1", "3").open("w2", "3").read("w2", 3, [])
    ledger.read("w1", 3, [A3]).read("w2", 3, [A3]).write("w2", A3)

    assert ledger.judged().violations == []
    assert kinds(ledger.write("w1", A3).judged()) == {"old over new", "order"}


def test_an_entry_that_was_never_read_is_lost() -> None:
    ledger = first_session().write("w1", A1, B1, A2)

    assert ledger.judged(acknowledged={"a": 3, "b": 2}).violations == []
    assert kinds(ledger.judged(acknowledged={"a": 4})) == {"lost"}
    assert kinds(ledger.judged(acknowledged={"b": 8})) == {"lost"}


def test_a_row_of_base_data_that_was_removed_before_it_was_read_again_is_not_lost() -> None:
    ledger = LedgerBuilder().open("w1").read("w1", 0, [A1, B1], base=True).write("w1", A1)
    ledger.open("w2").read("w2", 0, [A1], base=True).write("w2", A1).store("w2", "1")

    assert ledger.judged(Strike("w1", 3.5)).violations == []
    ledger.open("w1", "1").read("w1", 1, [B1], base=True)
    assert kinds(ledger.judged(Strike("w1", 3.5))) == {"lost"}


def test_a_row_of_base_data_that_was_removed_before_its_lost_page_was_read_again_is_not_lost() -> None:
    ledger = LedgerBuilder().open("w1").read("w1", 0, [A1, B1], "lost", base=True)
    ledger.read("w1", 0, [A1], base=True).write("w1", A1).store("w1", "1")

    verdict = ledger.judged()
    assert verdict.violations == []
    assert verdict.counts["pages read again after a lost answer"] == 1
