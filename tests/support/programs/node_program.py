"""The walk through the vendor's Node SDK: installed once into the cache. It has the flags of the Go program."""

from __future__ import annotations

import subprocess
from pathlib import Path

BUILD = Path(__file__).parents[2] / "oracle" / "build_node.sh"
#: Exit code of the script when the machine does not reach a package registry.
UNAVAILABLE = 1


class NodeUnavailable(Exception):
    """This machine has no Node and does not reach the registry that has one, or not the registry of the SDK."""


def build_node_walk() -> Path:
    """Path of the program.

    Raises:
        NodeUnavailable: it cannot be installed here; the text says why.
        RuntimeError: the packages are not the expected ones.
    """
    built = subprocess.run([BUILD], capture_output=True, text=True, check=False)
    if built.returncode == UNAVAILABLE:
        raise NodeUnavailable(built.stderr.strip().splitlines()[-1])
    if built.returncode:
        raise RuntimeError(built.stderr)
    return Path(built.stdout.strip())
