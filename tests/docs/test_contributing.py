"""The tree and the tables of CONTRIBUTING.md are those of the repository."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.docs.pages import ROOT, page

CONTRIBUTING = page("CONTRIBUTING.md")
PACKAGES = ("worker/ots_tunnel", "worker/ots_emulator", "operator/ots_tunnel_operator")


def named_folders() -> Iterator[Path]:
    """Folders of the tree: unindented lines are roots, names that end in a slash below them are their packages."""
    root = Path()
    for line in CONTRIBUTING.block("Where does what go?", "").splitlines():
        if not line.startswith(" "):
            names = re.findall(r"(?:^|\s)([\w/]+/)(?=\s|$)", line)
            yield from (Path(name) for name in names)
            root = Path(names[0])
        else:
            yield from (root / name for name in re.findall(r"(?<![\w:])(\w+)/(?=\s|$)", line))


def packages_below(folder: Path) -> set[Path]:
    return {path.parent.relative_to(ROOT) for path in (ROOT / folder).glob("*/__init__.py")}


def test_the_tree_names_folders_that_exist() -> None:
    missing = [
        str(folder)
        for folder in named_folders()
        if not (ROOT / folder).is_dir() and not (ROOT / "worker/ots_tunnel/sinks" / folder.name).is_dir()
    ]

    assert missing == []


def test_the_tree_names_every_package() -> None:
    named = set(named_folders())

    for package in PACKAGES:
        assert packages_below(Path(package)) <= named


def test_the_table_names_every_folder_of_the_tests() -> None:
    section = CONTRIBUTING.section("Which tests are there, and how long do they take?")
    folders = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir() and not path.name.startswith("_")}
    named = {
        name for row in re.findall(r"^\| (`[^|]+) \|", section, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)
    }

    assert folders <= named
