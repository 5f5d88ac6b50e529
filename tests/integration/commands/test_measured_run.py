"""`ots-tunnel run` as the benchmark starts it: when it ends, it reports its marks."""

from __future__ import annotations

import asyncio
import json
from asyncio.subprocess import PIPE
from pathlib import Path

from ots_tunnel.model import TunnelType
from tests.support.emulator.emulator_scene import twenty_rows
from tests.support.programs.processes import module, output_of
from tests.support.programs.run_process import document

ROOT = Path(__file__).parents[3]


async def test_a_measured_worker_reports_its_marks_at_its_end(tmp_path: Path) -> None:
    async with twenty_rows(TunnelType.BaseData) as scene:
        arguments = ("10", "run", "--config", str(document(scene, tmp_path)), "--exit-when-complete")
        process = await asyncio.create_subprocess_exec(
            *module("tests.bench.programs.milestone_worker", *arguments), stdout=PIPE, stderr=PIPE, cwd=ROOT
        )

        code, _, errors = await output_of(process, 30)

    report = [json.loads(line) for line in errors.splitlines() if line.startswith('{"marked"')]
    assert code == 0, errors
    assert [line["marked"][0] for line in report] == [20]
    assert [line["last"][0] for line in report] == [20]
