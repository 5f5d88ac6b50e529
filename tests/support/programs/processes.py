"""Python programs of this repository as processes: command line, environment, output and end."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[3]
#: Folders of the packages.
SOURCES = (ROOT / "operator", ROOT / "worker")
#: Seconds within which a process ends after a signal.
ENDING = 30.0


def module(name: str, *arguments: str) -> list[str]:
    """The command line that runs a module."""
    return [sys.executable, "-m", name, *arguments]


def python_path(*folders: Path) -> str:
    """PYTHONPATH of the packages; `folders` are searched before them."""
    return os.pathsep.join(map(str, (*folders, *SOURCES)))


def bare_environment(*folders: Path, **variables: str) -> dict[str, str]:
    """An environment without the caller's variables, except those of coverage and of compiled modules."""
    kept = {name: value for name, value in os.environ.items() if name.startswith(("COVERAGE_", "PYTHONPYCACHEPREFIX"))}
    return {"PYTHONPATH": python_path(*folders), **kept, **variables}


def inherited_environment(*folders: Path, **variables: str) -> dict[str, str]:
    """The caller's environment with the packages on its path."""
    return {**os.environ, "PYTHONPATH": python_path(*folders), **variables}


def unmeasured(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment without coverage: for processes whose memory is read, or whose data a kill would lose."""
    return {name: value for name, value in environment.items() if not name.startswith("COVERAGE_")}


async def output_of(process: Process, seconds: float = ENDING) -> tuple[int, str, str]:
    """Wait for the end of a process; return its exit code, standard output and standard error."""
    async with asyncio.timeout(seconds):
        output, errors = await process.communicate()
    assert process.returncode is not None
    return process.returncode, (output or b"").decode(), (errors or b"").decode()


async def end(process: Process, number: signal.Signals = signal.SIGTERM, seconds: float = ENDING) -> int:
    """Send a signal that ends a process; return its exit code."""
    process.send_signal(number)
    code, _, _ = await output_of(process, seconds)
    return code


async def kill_all(processes: list[Process]) -> None:
    """Kill the processes that still run."""
    for process in processes:
        if process.returncode is None:
            process.kill()
        await process.wait()
