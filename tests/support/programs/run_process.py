"""`ots-tunnel` as a process: its document, its start, its exit code, log and termination message."""

from __future__ import annotations

import asyncio
import json
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.support.emulator.emulator_scene import TABLE, EmulatorScene
from tests.support.programs.processes import bare_environment, module, output_of

#: Name of the file for the termination message.
TERMINATION_LOG = "termination-log"


def document(
    scene: EmulatorScene, directory: Path, sink: str = "count: {}", tunnel_id: str = "", **changes: Any
) -> Path:
    """A worker's document beside its keys.

    Args:
        sink: YAML of the sink's member.
        changes: settings that are merged into the document, by their path with `__` for dots.
    """
    (directory / "accessKeyId").write_text("test-id")
    (directory / "accessKeySecret").write_text("test-secret")
    settings: dict[str, Any] = {
        "source": {
            "endpoint": scene.emulator.endpoint,
            "instance": "demo",
            "table": TABLE,
            "tunnelName": "t",
            "tunnelId": tunnel_id or scene.tunnel_id,
            "credentials": {"directory": str(directory)},
        },
        "sink": yaml.safe_load(sink),
        "client": {"heartbeatIntervalSeconds": 5, "heartbeatTimeoutSeconds": 15},
        "http": {"port": 0},
    }
    for path, value in changes.items():
        *above, last = path.split("__")
        place = settings
        for name in above:
            place = place.setdefault(name, {})
        place[last] = value
    path = directory / "worker.yaml"
    path.write_text(yaml.safe_dump(settings))
    return path


async def start(path: Path, *options: str, environment: Mapping[str, str] | None = None) -> Process:
    """`ots-tunnel run` of a document, with a termination log beside it."""
    log = path.parent / TERMINATION_LOG
    log.touch()
    return await command("run", "--config", str(path), "--termination-log", str(log), *options, environment=environment)


async def command(*arguments: str, environment: Mapping[str, str] | None = None) -> Process:
    """`ots-tunnel` with these arguments."""
    return await asyncio.create_subprocess_exec(
        *module("ots_tunnel", *arguments), stdout=PIPE, stderr=PIPE, env=environment or bare_environment()
    )


@dataclass(frozen=True)
class Left:
    """Exit code, log lines and termination message of an ended `run`."""

    code: int | None
    lines: list[dict[str, Any]]
    termination_message: str

    @property
    def error(self) -> str:
        """The error in the last line of its log."""
        assert self.lines[-1]["action"] == "terminal_error", self.lines[-1]
        return str(self.lines[-1]["error"])


async def ended(process: Process, path: Path, seconds: float = 30) -> Left:
    """Wait for the end of a `run` of the document at `path`."""
    code, _, errors = await output_of(process, seconds)
    return Left(
        code,
        [json.loads(line) for line in errors.splitlines()],
        (path.parent / TERMINATION_LOG).read_text(),
    )


async def line_with(process: Process, action: str) -> dict[str, Any]:
    """The next line of the log with this action."""
    assert process.stderr is not None
    async with asyncio.timeout(30):
        while text := await process.stderr.readline():
            line: dict[str, Any] = json.loads(text)
            if line.get("action") == action:
                return line
    raise AssertionError(f"the log ended without {action}")
