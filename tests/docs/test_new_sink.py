"""The sink that CONTRIBUTING.md adds keeps the guarantees of a sink, with the code of the page."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pydantic import create_model

from ots_tunnel.config import WorkerConfig
from ots_tunnel.config.sinks import SinkConfig
from ots_tunnel.errors import SinkRejected
from ots_tunnel.sinks import choice
from ots_tunnel.sinks.choice import Implementation
from tests.docs.pages import Page, page
from tests.support import sink_kit

CONTRIBUTING = page("CONTRIBUTING.md")
STEPS = Page(CONTRIBUTING.path, CONTRIBUTING.section("How do I add a sink?")).blocks
#: The promise: a sink is at most three files and 150 lines.
MOST_LINES = 150


#: What the files of the walk-through import, which the page leaves out.
IMPORTS = """
import asyncio
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

import pytest

from ots_tunnel.config import SinkDocument
from ots_tunnel.config.base import ConfigModel, NonEmptyPath
from ots_tunnel.errors import SinkRejected
from ots_tunnel.model import ChannelId
from ots_tunnel.sinks import Batch, Guard, Immediate
from ots_tunnel.sinks.choice import Implementation
from ots_tunnel.sinks.json_record import json_form
from tests.support.sink_kit import SinkConformance, Stored, stored_in_json
"""


def code_of_the_page() -> dict[str, Any]:
    """What the blocks of the walk-through define."""
    names: dict[str, Any] = {}
    for text in (IMPORTS, *(block.text for block in STEPS)):
        exec(compile(text, str(CONTRIBUTING), "exec", dont_inherit=True), names)
    return names


CODE = code_of_the_page()
TestLinesSink = CODE["TestLinesSink"]


@pytest.fixture(autouse=True)
def _added(monkeypatch: pytest.MonkeyPatch) -> None:
    """The three files of the walk-through: the section, the module, the entry."""
    implementation: Implementation = CODE["IMPLEMENTATIONS"]["lines"]
    module = ModuleType(implementation.location.partition(":")[0])
    vars(module).update(CODE)
    with_lines = create_model("WithLines", __base__=SinkConfig, lines=(CODE["LinesSinkConfig"] | None, None))
    document = create_model("Document", __base__=WorkerConfig, sink=(with_lines, ...))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(choice, "IMPLEMENTATIONS", {**choice.IMPLEMENTATIONS, **CODE["IMPLEMENTATIONS"]})
    monkeypatch.setattr(sink_kit, "WorkerConfig", document)


async def test_it_says_what_it_cannot_write(tmp_path: Path) -> None:
    sink = CODE["LinesSink"](tmp_path / "missing" / "lines")

    with pytest.raises(SinkRejected, match=r"sink\.lines\.path"):
        await sink.open()


def test_it_is_short() -> None:
    assert sum(len(block.text.splitlines()) for block in STEPS) <= MOST_LINES
