"""The program around the vendor's Java SDK: built once into the cache. It has the flags of the Go program."""

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
    """Path of the program.

    Raises:
        JavaUnavailable: it cannot be built here; the text says why.
        RuntimeError: it does not compile.
    """
    built = subprocess.run([BUILD], capture_output=True, text=True, check=False)
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
