"""The tree and the tables of CONTRIBUTING.md are those of the repository."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pytest

from ots_tunnel.config import WorkerConfig
from ots_tunnel.config.base import ConfigModel, NonEmptyPath
from ots_tunnel.errors import OwnershipLost, SinkRejected
from ots_tunnel.model import ChannelId, ChannelType
from ots_tunnel.sinks import Batch, Guard, Immediate, Sink
from ots_tunnel.sinks.choice import IMPLEMENTATIONS, Implementation
from tests.docs.pages import ROOT, Page, page
from tests.support.guards import ClosedGuard, OpenGuard
from tests.support.records import numbered_record

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


BATCH = Batch(ChannelId("c"), ChannelType.STREAM, [numbered_record("a", 1), numbered_record("b", 2)])


def sink_of_the_page(path: Path) -> Sink:
    """The sink of the walk-through, made from its section as a worker makes it."""
    blocks = Page(CONTRIBUTING.path, CONTRIBUTING.section("How do I add a sink?")).blocks
    names: dict[str, Any] = {
        "asyncio": asyncio,
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
    }
    for block in blocks:
        exec(compile(block.text, str(CONTRIBUTING), "exec", dont_inherit=True), names)
    assert names["IMPLEMENTATIONS"].keys().isdisjoint(IMPLEMENTATIONS)
    sink: Sink = names["LinesSink"].from_config(None, names["LinesSinkConfig"](path=path))
    return sink


async def test_the_sink_of_the_walk_through_stores_records(tmp_path: Path) -> None:
    sink = sink_of_the_page(tmp_path / "lines")

    await sink.open()
    await sink.begin(BATCH.channel_id, BATCH.channel_type, BATCH.start)
    assert await sink.write(BATCH, OpenGuard()) is None
    await sink.end(BATCH.channel_id, abandoned=False)
    await sink.close()

    assert len((tmp_path / "lines").read_text().splitlines()) == len(BATCH.records)


async def test_the_sink_of_the_walk_through_writes_nothing_for_another_client(tmp_path: Path) -> None:
    sink = sink_of_the_page(tmp_path / "lines")
    await sink.open()

    with pytest.raises(OwnershipLost):
        await sink.write(BATCH, ClosedGuard())

    assert (tmp_path / "lines").read_text() == ""


async def test_the_sink_of_the_walk_through_says_what_it_cannot_write(tmp_path: Path) -> None:
    with pytest.raises(SinkRejected, match=r"sink\.lines\.path"):
        await sink_of_the_page(tmp_path / "missing" / "lines").open()
