"""The tree's own rules."""

from __future__ import annotations

import ast
import operator
import re
import sysconfig
import tomllib
from collections.abc import Iterator
from pathlib import Path

from ots_tunnel.version import __version__

ROOT = Path(__file__).parents[2]
#: A comment that switches a check off, and the reason that has to follow it.
SUPPRESSION = re.compile(r"# (?:noqa|type: ignore|pragma: no)\b[^#]*?(?P<reason> (?:# |- )\S.*)?$")
#: Most modules of a folder.
MODULES = 20


def sources(*folders: str) -> Iterator[Path]:
    """Our modules in folders of the tree."""
    for folder in folders:
        yield from (path for path in (ROOT / folder).rglob("*.py") if not path.name.endswith("_pb2.py"))


def swallows_anything(handler: ast.ExceptHandler) -> bool:
    """Whether a handler takes every exception, and does not end by raising one."""
    kinds = (
        {node.id for node in ast.walk(handler.type) if isinstance(node, ast.Name)} if handler.type else {"Exception"}
    )
    return bool(kinds & {"Exception", "BaseException"}) and not isinstance(handler.body[-1], ast.Raise)


def test_top_folders_are_no_packages() -> None:
    assert not (ROOT / "operator" / "__init__.py").exists()
    assert not (ROOT / "worker" / "__init__.py").exists()


def test_operator_module_is_the_standard_library() -> None:
    source = Path(operator.__file__ or "")

    assert source.is_relative_to(sysconfig.get_path("stdlib"))
    assert operator.itemgetter(1)("ab") == "b"


def test_the_package_and_its_distribution_have_the_same_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert project["version"] == __version__


def test_who_takes_every_exception_says_why() -> None:
    bare = [
        f"{path.relative_to(ROOT)}:{handler.lineno}"
        for path in sources("operator", "worker", "tests")
        for lines in [path.read_text().splitlines()]
        if any("Exception" in line or "except:" in line for line in lines)
        for handler in ast.walk(ast.parse(path.read_text()))
        if isinstance(handler, ast.ExceptHandler) and swallows_anything(handler)
        if not any("# " in line for line in lines[handler.lineno - 1 : handler.body[0].lineno])
    ]

    assert bare == []


def test_a_check_that_is_switched_off_has_a_reason() -> None:
    bare = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in sources("operator", "worker", "tests")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if (found := SUPPRESSION.search(line)) and found["reason"] is None
        # types of the tests are not checked: there an ignore suppresses nothing
        if not (path.is_relative_to(ROOT / "tests") and "type: ignore" in line)
    ]

    assert bare == []


def test_no_folder_of_the_product_has_more_than_twenty_modules() -> None:
    folders = {path.parent for path in sources("operator", "worker")}

    assert [folder for folder in folders if sum(path.suffix == ".py" for path in folder.iterdir()) > MODULES] == []
