"""The jars of a lake, of the lists of our Spark images."""

from __future__ import annotations

import subprocess
from pathlib import Path

_BUILD = Path(__file__).parents[2] / "spark" / "lake" / "build_jars.sh"
#: Exit code of the script where the machine lacks Java or the network.
_UNAVAILABLE = 1


class JarsUnavailable(Exception):
    """This machine has no Java, or does not reach the artifact repository."""


def lake_jars(name: str = "lake") -> str:
    """The paths of the jars, separated by commas, as Spark takes them; fetched into the cache when need be.

    Args:
        name: `lake` for Delta and buckets, `iceberg` for Iceberg.

    Raises:
        JarsUnavailable: they cannot be fetched here; the text says why.
        RuntimeError: other jars arrived than are listed.
    """
    built = subprocess.run([_BUILD, name], capture_output=True, text=True, check=False)
    if built.returncode == _UNAVAILABLE:
        raise JarsUnavailable(built.stderr.strip().splitlines()[-1])
    if built.returncode:
        raise RuntimeError(built.stderr)
    return ",".join(sorted(map(str, Path(built.stdout.strip()).glob("*.jar"))))
