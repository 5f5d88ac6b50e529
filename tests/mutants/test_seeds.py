"""The seed that has found a mutant is told first, and it alone where it finds it again; and of which stories."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from threading import Barrier

import pytest

from tests.mutants import __main__ as table
from tests.mutants import measuring, trees
from tests.mutants.findings import Record
from tests.mutants.planted import Mutant, planted
from tests.mutants.trees import Trees
from tests.support.story_kinds import KINDS

OPTIONS = Namespace(start=1, seeds=60, workers=1)
MUTANT = Mutant("no-fence", "fence.py", "a", "b", "writes twice", (), "data_path", seed=7)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """First seed and number of seeds of each campaign; only seed 7 breaks a rule."""
    campaigns: list[tuple[str, str]] = []

    def run(tree: Path, command: tuple[str, ...], seconds: float) -> tuple[int, str]:
        first, count = (command[command.index(name) + 1] for name in ("--start", "--seeds"))
        campaigns.append((first, count))
        return (1, "seed 7: caught up at 3.0 s: late\n") if first == "7" else (0, "")

    monkeypatch.setattr(measuring, "_run", run)
    return campaigns


def test_the_seed_that_found_a_mutant_last_time_is_enough(told: list[tuple[str, str]], tmp_path: Path) -> None:
    assert measuring.simulate(tmp_path, MUTANT, OPTIONS) == "caught up (seed 7)"
    assert told == [("7", "1")]


def test_all_seeds_are_told_where_it_finds_the_mutant_no_more(told: list[tuple[str, str]], tmp_path: Path) -> None:
    mutant = replace(MUTANT, seed=8)

    assert measuring.simulate(tmp_path, mutant, OPTIONS) == ""
    assert told == [("8", "1"), ("1", "60")]


def test_a_seed_that_is_none_of_the_measured_ones_does_not_count(told: list[tuple[str, str]], tmp_path: Path) -> None:
    measuring.simulate(tmp_path, MUTANT, Namespace(start=100, seeds=60, workers=1))

    assert told == [("100", "60")]


def test_the_seeds_of_all_mutants_are_among_those_that_are_measured() -> None:
    assert [mutant.name for mutant in planted() if mutant.seed is not None and not 1 <= mutant.seed <= 60] == []


def test_a_mutant_may_name_the_kind_of_its_stories(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kinds: list[str] = []

    def run(tree: Path, command: tuple[str, ...], seconds: float) -> tuple[int, str]:
        kinds.append(command[command.index("--kind") + 1])
        return 0, ""

    monkeypatch.setattr(measuring, "_run", run)

    for stories in (None, "files"):
        measuring.simulate(tmp_path, replace(MUTANT, seed=None, stories=stories), OPTIONS)

    assert kinds == ["region", "files"]


def test_the_tree_itself_is_measured_with_the_stories_of_every_mutant() -> None:
    chosen = [
        replace(MUTANT, tests=("a",)),
        replace(MUTANT, tests=("b",)),
        replace(MUTANT, tests=("c",), stories="files"),
    ]

    baselines = table.baselines(chosen)

    assert [(mutant.stories, mutant.tests, mutant.file) for mutant in baselines] == [
        ("region", ("a", "b"), ""),
        ("files", ("c",), ""),
    ]


def test_the_kinds_of_stories_that_mutants_name_are_there() -> None:
    assert [mutant.name for mutant in planted() if mutant.stories not in (None, *KINDS)] == []


def test_a_tree_that_fails_is_shown_and_measured_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(tree: Path, command: tuple[str, ...], seconds: float) -> tuple[int, str]:
        return (1, "FAILED test_a: it is late") if "pytest" in command else (0, "")

    record = Record(tmp_path / "known.jsonl")
    monkeypatch.setattr(measuring, "_run", run)
    monkeypatch.setattr(table.Record, "of_tree", lambda options: record)
    monkeypatch.setattr(trees.shutil, "copytree", lambda *_, **__: None)
    monkeypatch.setattr("sys.argv", ["mutants", planted()[0].name])

    assert table.main() == 2
    assert "it is late" in capsys.readouterr().out
    assert record.known == {}


def test_fewer_seeds_are_told_of_stories_that_take_long(told: list[tuple[str, str]], tmp_path: Path) -> None:
    assert measuring.simulate(tmp_path, replace(MUTANT, seed=None, stories="scaling"), OPTIONS) == ""
    assert told == [("1", str(measuring.MOST["scaling"]))]
    assert measuring.MOST.keys() <= set(KINDS)


def test_no_story_is_told_of_a_mutant_that_none_can_show(told: list[tuple[str, str]], tmp_path: Path) -> None:
    assert measuring.simulate(tmp_path, replace(MUTANT, seed=None, hidden="of the kernel"), OPTIONS) == ""
    assert told == []
    assert [mutant.name for mutant in planted() if mutant.hidden and mutant.seed is not None] == []


def test_mutants_are_measured_beside_each_other_each_in_its_own_copy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "original").mkdir()
    (tmp_path / "original" / "fence.py").write_text("a")
    beside, seen = Barrier(2), []

    def run(tree: Path, command: tuple[str, ...], seconds: float) -> tuple[int, str]:
        beside.wait(timeout=30)
        seen.append((tree.name, (tree / "fence.py").read_text()))
        beside.wait(timeout=30)
        return 0, ""

    monkeypatch.setattr(measuring, "_run", run)
    monkeypatch.setattr(trees, "ROOT", tmp_path / "original")
    two = [replace(MUTANT, name=name, new=name, seed=None, hidden="of the kernel") for name in ("one", "two")]
    options = Namespace(start=1, seeds=60, workers=2, without_tests=False)
    record = Record(tmp_path / "known.jsonl")

    found = list(table.measure(record, Trees(tmp_path, 2), two, options))

    assert sorted(seen) == [("tree-0", "one"), ("tree-1", "two")]
    assert sorted(finding.name for finding in found) == sorted(record.known) == ["one", "two"]
