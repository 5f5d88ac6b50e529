"""Every edge has a test named after it, or a reason why it needs none."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

from tests.sharp_edges.edges import EDGES, Applies

NAME = re.compile(r"test_([gj])(\d\d)_[a-z0-9_]+")


def documented_tests() -> dict[str, list[str]]:
    """Edge -> names of its tests, those without a docstring left out."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (match := NAME.fullmatch(node.name)):
                edge = f"{match[1].upper()}{int(match[2])}"
                if ast.get_docstring(node):
                    found[edge].append(node.name)
    return found


def test_the_table_lists_every_edge() -> None:
    assert list(EDGES) == [f"G{number}" for number in range(1, 25)] + [f"J{number}" for number in range(1, 21)]


@pytest.mark.parametrize("edge", EDGES)
def test_an_edge_has_a_test_or_a_reason(edge: str) -> None:
    tests = documented_tests()[edge]
    entry = EDGES[edge]

    if isinstance(entry, Applies):
        assert tests, f"{edge}, {entry.defect}: no test_{edge[0].lower()}{int(edge[1:]):02}_... with a docstring"
    else:
        assert entry.reason
        assert not tests, f"{edge} cannot apply because {entry.reason}, but there is {tests}"


def test_no_test_is_named_after_an_edge_that_does_not_exist() -> None:
    assert set(documented_tests()) <= set(EDGES)
