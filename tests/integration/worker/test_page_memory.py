"""Every built-in sink stays within the budget with pages of many small cells as with pages of large ones.

Kafka's queue comes on top of the budget (docs/guarantees.md).
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.programs.page_program import KINDS
from tests.support.programs.processes import inherited_environment, module, unmeasured
from tests.support.sinks.page_places import SINKS, section_of

BUDGET = 64 << 20
#: Memory of a worker without records, beside libraries, and of Kafka's queue.
ALLOWANCE, QUEUE = 60_000_000, 32 << 20
CHANNELS, PAGES = 8, 2
#: Seconds of an answer of the destination.
SLOW = 0.1


def _cases() -> list[Any]:
    usual = {(sink, "wide") for sink in ("http", "tablestore", "typed", "stdout", "python")} | {("count", "narrow")}
    return [
        pytest.param(sink, kind, marks=() if (sink, kind) in usual else (pytest.mark.long,))
        for sink in SINKS
        for kind in KINDS
    ]


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("sink", "kind"), _cases())
async def test_memory_stays_within_the_budget(sink: str, kind: str, tmp_path: Path) -> None:
    # the worker's image has neither, and Arrow imports what is installed
    for package in ("numpy", "pandas"):
        (tmp_path / f"{package}.py").write_text("raise ImportError")
    async with section_of(sink, tmp_path, SLOW) as section:
        order = {"sink": section, "kind": kind, "budget": BUDGET, "channels": CHANNELS, "pages": PAGES}
        order["folder"] = str(tmp_path)
        program = await asyncio.create_subprocess_exec(
            *module("tests.support.programs.page_program", json.dumps(order)),
            env=unmeasured(inherited_environment(tmp_path)),
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        _, said = await asyncio.wait_for(program.communicate(), 280)
    assert program.returncode == 0, said.decode()
    found = json.loads(said.splitlines()[-1])
    of_its_own = found["peak"] - found["mapped"]
    print(f"{sink} {kind}: {of_its_own / 1e6:.0f} of {found['peak'] / 1e6:.0f} MB, {found['longest'] * 1e3:.0f} ms")

    assert of_its_own < BUDGET + ALLOWANCE + (QUEUE if sink == "kafka" else 0)
