"""The programs around the vendor's Java SDK and its Stream Client library: built once into the cache.

The first has the flags of the Go program.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.support.programs.go_program import go_command

BUILD = Path(__file__).parents[2] / "oracle" / "build_java.sh"
#: Exit code of the script when the machine cannot build the program.
UNAVAILABLE = 1


#: Fastest settings of the program: a heap that is large from the start, and a few threads instead of 32 and 32.
QUICKEST_JVM = "-Xms1g -Xmx1g -Xmn700m"
QUICKEST_FLAGS = {"pool": 4}


class JavaUnavailable(Exception):
    """This machine has no Java to build with, or does not reach the artifact repository."""


def build_java_worker() -> Path:
    """Path of the program around the SDK.

    Raises:
        JavaUnavailable: it cannot be built here; the text says why.
        RuntimeError: it does not compile.
    """
    return _build("java")


def build_java_sinks() -> Path:
    """Path of the program around the SDK's worker that takes records to other places; raises as `build_java_worker`."""
    return _build("javasinks")


def build_stream_client() -> Path:
    """Path of the program around the Stream Client library.

    Raises:
        JavaUnavailable: it cannot be built here; the text says why.
        RuntimeError: it does not compile.
    """
    return _build("streamclient")


def _build(folder: str) -> Path:
    built = subprocess.run([BUILD, folder], capture_output=True, text=True, check=False)
    if built.returncode == UNAVAILABLE:
        raise JavaUnavailable(built.stderr.strip().splitlines()[-1])
    if built.returncode:
        raise RuntimeError(built.stderr)
    return Path(built.stdout.strip())


def quickest_command(program: Path, endpoint: str, tunnel_id: str, mode: str, **flags: object) -> list[str]:
    """Command line of one worker in its best configuration; see `go_command`.

    The script replaces itself with the virtual machine.
    """
    command = go_command(program, endpoint, tunnel_id, mode, **QUICKEST_FLAGS, **flags)
    return ["env", f"JAVA_OPTIONS={QUICKEST_JVM}", *command]
