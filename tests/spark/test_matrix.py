"""The minors of PySpark: what is left out is there to be left out, and the stage has every minor."""

from __future__ import annotations

import re

from tests import suite
from tests.spark import matrix


def test_the_stage_has_every_minor() -> None:
    assert list(suite.MINORS) == list(matrix.MINORS)


def test_what_a_minor_runs_and_leaves_out_exists() -> None:
    modules = {f"tests/spark/{module}" for minor in matrix.MINORS.values() for module in minor.modules}
    left_out = [test.split("::") for test in matrix.LEFT_OUT]

    assert [module for module in modules if not (matrix.ROOT / module).is_file()] == []
    assert [module for module, _ in left_out if module not in modules] == []
    for module, name in left_out:
        assert re.search(rf"^def {name}\(", (matrix.ROOT / module).read_text(), re.MULTILINE), name
