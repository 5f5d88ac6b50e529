"""Which codec a worker uses: the compiled one if it was built, otherwise Python's; the log says which."""

from __future__ import annotations

import asyncio
import json
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ots_emulator import Emulator
from ots_tunnel.model import TunnelType
from ots_tunnel.protocol.plainbuffer.compiled import native
from ots_tunnel.verify.compare import compare_tables
from tests.support.emulator.emulator_scene import COPY, TABLE, EmulatorScene
from tests.support.lacking import lack
from tests.support.programs.processes import bare_environment, output_of
from tests.support.programs.run_process import command, document, ended, start


@pytest.fixture
async def scene() -> AsyncIterator[EmulatorScene]:
    async with Emulator() as emulator:
        scene = EmulatorScene(emulator)
        await scene.create_table()
        await scene.create_table(table=COPY)
        await scene.put([f"k{number}" for number in range(300)], [1, 2])
        await scene.create_tunnel(TunnelType.BaseData)
        yield scene


def not_built(directory: Path) -> dict[str, str]:
    """An environment in which the compiled codec cannot be imported, as after a build without a compiler."""
    (directory / "sitecustomize.py").write_text(
        "import sys\nsys.modules['ots_tunnel.protocol.plainbuffer._native'] = None\n"
    )
    return bare_environment(directory)


async def lines_until_connected(process: Process) -> list[dict[str, Any]]:
    assert process.stderr is not None
    lines: list[dict[str, Any]] = []
    async with asyncio.timeout(30):
        while not lines or lines[-1].get("action") != "connected":
            text = await process.stderr.readline()
            assert text, f"the log ended before: {lines}"
            lines.append(json.loads(text))
    return lines


@pytest.mark.parametrize("codec", ["Python", "compiled", "not built"])
async def test_tables_are_copied_with_either_and_the_log_says_which(
    scene: EmulatorScene, tmp_path: Path, codec: str
) -> None:
    if native is None and codec == "compiled":
        lack("compiler", "the package was built without a compiler")
    sink = (
        f"tablestore: {{endpoint: {scene.emulator.endpoint}, instance: demo, table: {COPY}, "
        f"credentials: {{directory: {tmp_path}}}}}"
    )
    path = document(scene, tmp_path, sink)
    environment = not_built(tmp_path) if codec == "not built" else bare_environment(OTS_TUNNEL_CODEC=codec.lower())

    process = await start(path, "--exit-when-complete", environment=environment)
    begin = await lines_until_connected(process)
    left = await ended(process, path)

    assert begin[-1]["codec"] == ("Python" if codec == "not built" else codec)
    assert left.code == 0, left
    async with asyncio.timeout(20):
        comparison = await compare_tables(scene.table, TABLE, scene.table, COPY)
    assert (comparison.equal, comparison.rows) == (True, 300)
    lines = [*begin, *left.lines]
    loud = [(line["level"], line["action"], line.get("reason")) for line in lines if line["level"] != "INFO"]
    fallen_back = [("WARNING", "not_compiled", "the package was built without a compiler")]
    assert loud == (fallen_back if codec == "not built" else [])


@pytest.mark.parametrize("asked", [("run", "--config"), ("config", "check")])
async def test_a_wrong_choice_is_named(scene: EmulatorScene, tmp_path: Path, asked: tuple[str, ...]) -> None:
    path = document(scene, tmp_path)

    code, _, errors = await output_of(
        await command(*asked, str(path), environment=bare_environment(OTS_TUNNEL_CODEC="fast"))
    )

    assert code == 2
    assert "OTS_TUNNEL_CODEC: found 'fast', allowed are auto, compiled, python" in errors
    assert "Traceback" not in errors


async def test_a_missing_compiled_codec_on_request_is_an_error(scene: EmulatorScene, tmp_path: Path) -> None:
    path = document(scene, tmp_path)
    environment = {**not_built(tmp_path), "OTS_TUNNEL_CODEC": "compiled"}

    code, _, errors = await output_of(await command("run", "--config", str(path), environment=environment))

    assert code == 2
    assert "OTS_TUNNEL_CODEC: found 'compiled', but the package was built without a compiler" in errors
