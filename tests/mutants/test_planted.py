from __future__ import annotations

from collections import Counter

import pytest

from tests.mutants.planted import ROOT, Mutant, planted


@pytest.mark.parametrize("mutant", [pytest.param(mutant, id=mutant.name) for mutant in planted()])
def test_a_mutant_fits_to_the_tree_and_changes_it(mutant: Mutant) -> None:
    text = (ROOT / mutant.file).read_text()

    mutated = mutant.mutated(text)

    assert mutated != text
    compile(mutated, mutant.file, "exec")
    missing = [test for test in mutant.tests if not (ROOT / test).exists()]
    assert not missing


def test_names_are_given_once() -> None:
    assert [name for name, times in Counter(mutant.name for mutant in planted()).items() if times > 1] == []
