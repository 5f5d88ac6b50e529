"""The program around the vendor's Java SDK: built once into the cache. Its flags are those of the Go program."""

from __future__ import annotations

import subprocess
from pathlib import Path

BUILD = Path(__file__).parent / "build_java.sh"
#: Status of the script when the machine, not the program, is to blame.
UNAVAILABLE = 1


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
