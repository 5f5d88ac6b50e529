"""The tree and the tables of CONTRIBUTING.md are those of the repository."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pytest

from ots_tunnel.config import WorkerConfig
from ots_tunnel.config.base import ConfigModel, NonEmptyPath
from ots_tunnel.errors import SinkRejected
from ots_tunnel.sinks import Batch, Guard, Immediate, Sink
from ots_tunnel.sinks.choice import IMPLEMENTATIONS, Implementation
from ots_tunnel.sinks.json_record import json_form
from tests.docs.pages import ROOT, Page, page
from tests.support.sink_kit import NewSink, SinkConformance, Stored, stored_in_json

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


def test_every_target_of_make_is_mentioned() -> None:
    targets = re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE)

    for target in targets:
        assert f"make {target}" in CONTRIBUTING.text, target


def names_of_the_walk_through() -> dict[str, Any]:
    """What the blocks of the walk-through define, run one after the other."""
    names: dict[str, Any] = {
        "asyncio": asyncio,
        "json": json,
        "pytest": pytest,
        "Path": Path,
        "Self": Self,
        "ConfigModel": ConfigModel,
        "NonEmptyPath": NonEmptyPath,
        "WorkerConfig": WorkerConfig,
        "SinkRejected": SinkRejected,
        "Batch": Batch,
        "Guard": Guard,
        "Immediate": Immediate,
        "Implementation": Implementation,
        "SinkConformance": SinkConformance,
        "Stored": Stored,
        "json_form": json_form,
        "stored_in_json": stored_in_json,
    }
    for block in Page(CONTRIBUTING.path, CONTRIBUTING.section("How do I add a sink?")).blocks:
        exec(compile(block.text, str(CONTRIBUTING), "exec", dont_inherit=True), names)
    return names


WALK_THROUGH = names_of_the_walk_through()


def sink_of_the_page(path: Path) -> Sink:
    """The sink of the walk-through, made from its section as a worker makes it."""
    sink: Sink = WALK_THROUGH["LinesSink"].from_config(None, WALK_THROUGH["LinesSinkConfig"](path=path))
    return sink


class TestTheSinkOfTheWalkThrough(WALK_THROUGH["TestLinesSink"]):  # type: ignore[misc]  # a class of the page
    @pytest.fixture
    def new_sink(self, destination: Any) -> NewSink:
        return lambda: sink_of_the_page(Path(destination.section["lines"]["path"]))


def test_the_entry_of_the_walk_through_is_new() -> None:
    assert WALK_THROUGH["IMPLEMENTATIONS"].keys().isdisjoint(IMPLEMENTATIONS)


async def test_the_sink_of_the_walk_through_says_what_it_cannot_write(tmp_path: Path) -> None:
    with pytest.raises(SinkRejected, match=r"sink\.lines\.path"):
        await sink_of_the_page(tmp_path / "missing" / "lines").open()
