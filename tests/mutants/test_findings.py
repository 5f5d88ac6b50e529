from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest

from tests.mutants.findings import Finding, Record

OPTIONS = Namespace(seeds=60, start=1, without_tests=False)
FOUND = Finding("no-fence", "overtaken (seed 4)", "", 12.5)


def tree(folder: Path) -> Path:
    (folder / "worker").mkdir()
    (folder / "worker" / "fence.py").write_text("open = True\n")
    return folder


def test_an_interrupted_measurement_goes_on_where_it_was(tmp_path: Path) -> None:
    root = tree(tmp_path)
    Record.of_tree(OPTIONS, root).keep(FOUND)

    assert Record.of_tree(OPTIONS, root).known == {"no-fence": FOUND}


def test_findings_about_another_tree_or_with_other_options_do_not_count(tmp_path: Path) -> None:
    root = tree(tmp_path)
    Record.of_tree(OPTIONS, root).keep(FOUND)

    assert not Record.of_tree(Namespace(seeds=5, start=1, without_tests=False), root).known
    (root / "worker" / "fence.py").write_text("open = False\n")
    assert not Record.of_tree(OPTIONS, root).known


@pytest.mark.parametrize("name", ["_native.pyx", "native/page.pxi", "_native.so"])
def test_the_compiled_codec_is_a_part_of_the_tree(name: str, tmp_path: Path) -> None:
    root = tree(tmp_path)
    Record.of_tree(OPTIONS, root).keep(FOUND)

    (root / "worker" / name).parent.mkdir(exist_ok=True)
    (root / "worker" / name).write_text("changed")

    assert not Record.of_tree(OPTIONS, root).known


def test_a_file_that_has_another_name_is_another_tree(tmp_path: Path) -> None:
    root = tree(tmp_path)
    Record.of_tree(OPTIONS, root).keep(FOUND)

    (root / "worker" / "fence.py").rename(root / "worker" / "gate.py")

    assert not Record.of_tree(OPTIONS, root).known


def test_a_fresh_measurement_begins_from_nothing(tmp_path: Path) -> None:
    root = tree(tmp_path)
    record = Record.of_tree(OPTIONS, root)
    record.keep(FOUND)

    record.forget()

    assert not record.known
    assert not Record.of_tree(OPTIONS, root).known


def test_a_row_says_who_has_missed_a_mutant() -> None:
    assert FOUND.row().split() == ["no-fence", "overtaken", "(seed", "4)", "MISSED", "12", "s"]
