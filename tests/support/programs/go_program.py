"""The program around the vendor's Go SDK: built once into the cache, started with flags."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

BUILD = Path(__file__).parents[2] / "oracle" / "build_go_worker.sh"
#: Exit code of the script when the machine cannot build the program.
UNAVAILABLE = 1
#: Flags with the AccessKey of the programs.
ACCOUNT = {"instance": "demo", "key-id": "test-id", "key-secret": "test-secret"}


class GoUnavailable(Exception):
    """This machine has no Go, or does not reach the module proxy."""


def build_go_worker() -> Path:
    """Path of the program.

    Raises:
        GoUnavailable: it cannot be built here; the text says why.
        RuntimeError: it does not compile.
    """
    built = subprocess.run([BUILD], capture_output=True, text=True, check=False)
    if built.returncode == UNAVAILABLE:
        raise GoUnavailable(built.stderr.strip().splitlines()[-1])
    if built.returncode:
        raise RuntimeError(built.stderr)
    return Path(built.stdout.strip())


def go_command(program: Path, endpoint: str, tunnel_id: str, mode: str, **flags: object) -> list[str]:
    """Command line of one worker; `flags` such as `rows=100` become `-rows=100`."""
    given = {
        **ACCOUNT,
        "endpoint": endpoint,
        "tunnel": tunnel_id,
        "mode": mode,
    }
    return [str(program), "worker", *_flags({**given, **flags})]


def walk_command(program: Path, endpoint: str, admin: str, **flags: object) -> list[str]:
    """Command line of the walk through every call of the SDK, on an emulator of its own."""
    return [str(program), "walk", *_flags({**ACCOUNT, "endpoint": endpoint, "admin": admin, **flags})]


def _flags(values: Mapping[str, object]) -> list[str]:
    return [f"-{name.replace('_', '-')}={value}" for name, value in values.items()]
