"""Tests import from their own folder and from `tests.support`; programs that tests examine are named here."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]
#: Folder -> folders that it may import, with the reason.
ALLOWED = {
    "unit": {"bench"},  # tests of the parts of the benchmark
    # the operator's process; the broker that sinks are measured with; the images whose parts are measured
    "bench": {"operator", "kafka", "cluster"},
    "oracle": {
        "bench",
        "kafka",
    },  # the benchmark's programs around the vendor's SDKs, one of which writes to the broker
    "docs": {"bench", "sharp_edges"},  # the pages show the benchmark's table and the list of edges
    "chart": {"docs", "operator"},  # the page of its values; the operator runs under its roles
    "operator": {"simulation", "kafka"},  # the model of the API server; the broker behind an object
    "integration": {"docs"},  # the snippets of the pages are run
    "cluster_scenarios": {"demo", "cluster"},  # the demo's parts, in small and for longer
    "golden": {"simulation"},  # the model of the vendor's library sends what was recorded of it
    "demo": {"cluster"},  # a program on the local cluster
}


def imported(path: Path) -> Iterator[str]:
    """Folders below `tests` that a module imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
            names = [node.module] if node.module != "tests" else [f"tests.{each.name}" for each in node.names]
        elif isinstance(node, ast.Import):
            names = [each.name for each in node.names]
        else:
            continue
        yield from (name.split(".")[1] for name in names if name.startswith("tests."))


def test_folders_of_tests_import_support_alone() -> None:
    found = {
        f"{path.relative_to(TESTS)} imports tests.{folder}"
        for path in TESTS.rglob("*.py")
        for folder in imported(path)
        if folder
        not in {path.relative_to(TESTS).parts[0], "support"} | ALLOWED.get(path.relative_to(TESTS).parts[0], set())
        and (TESTS / folder).is_dir()
    }

    assert found == set()


def test_no_folder_of_tests_has_more_than_twenty_modules() -> None:
    sizes = Counter(path.parent.relative_to(TESTS) for path in TESTS.rglob("*.py"))

    assert {str(folder): size for folder, size in sizes.items() if size > 20} == {}
