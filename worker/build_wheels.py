"""Build a compiled wheel for each supported Python, and try each in an environment of its own.

    python worker/build_wheels.py [--folder dist] [--python 3.12 ...]

An interpreter is one that uv finds, one of pyenv, or one that uv fetches. Where there is none the line of this Python
says why, the other wheels are built, and the exit code is 2. A wheel that cannot be built or does not work is 1.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ("3.11", "3.12", "3.13")
MISSING = 2
#: Run outside of the source tree: imports the installed package, and decodes a row by the compiled codec alone.
TRIAL = """
import sys
from pathlib import Path
import ots_tunnel
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.plainbuffer.compiled import native
from ots_tunnel.protocol.plainbuffer.tags import INTEGER, STRING

assert Path(ots_tunnel.__file__).is_relative_to(sys.prefix), ots_tunnel.__file__
row = encode_row((("id", 7),), [Column("name", "seven", 1)])
rows, (number, name) = native.typed_columns(row, ((b"id", INTEGER), (b"name", STRING)))
assert (rows, bytes(number[1]), bytes(name[2])) == (1, (7).to_bytes(8, "little"), b"seven"), "decoded wrongly"
"""


class Failed(Exception):
    """A command failed; the last line of what it printed."""


def run(*command: str, environment: dict[str, str] | None = None, folder: Path = ROOT) -> str:
    """What a command prints.

    Raises:
        Failed: it ends with another exit code than 0, or there is no such program.
    """
    try:
        ended = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=folder, env={**os.environ, **(environment or {})}
        )
    except OSError as error:
        raise Failed(str(error)) from error
    if ended.returncode:
        lines = [line.strip() for line in (ended.stderr or ended.stdout).splitlines() if line.strip()]
        raise Failed(lines[-1] if lines else f"{command[0]} ended with {ended.returncode}")
    return ended.stdout.strip()


def interpreter(uv: str, python: str) -> str:
    """Path of an interpreter of this version; fetched where none is found.

    Raises:
        Failed: there is none, and none can be fetched.
    """
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    folders = [str(folder / "bin") for folder in sorted(pyenv.glob(f"{python}.*"), reverse=True)]
    path = {"PATH": os.pathsep.join([*folders, os.environ.get("PATH", "")])}
    find = (uv, "python", "find", "--system", "--no-project", "--no-python-downloads", python)
    try:
        return run(*find, environment=path)
    except Failed:
        run(uv, "python", "install", "--quiet", "--no-bin", python)
        return run(*find, environment=path)


def build(uv: str, python: str, folder: Path) -> Path:
    """Build the wheel for one interpreter.

    Raises:
        Failed: it cannot be built, or something in it is not for this interpreter.
    """
    with tempfile.TemporaryDirectory(prefix="ots-tunnel-wheel-") as fresh:
        run(
            uv, "build", "--quiet", "--wheel", "--python", python, "--out-dir", fresh, str(ROOT),
            environment={"OTS_TUNNEL_BUILD": "compiled"},
        )  # fmt: skip
        [built] = Path(fresh).glob("*.whl")
        folder.mkdir(parents=True, exist_ok=True)
        wheel = folder / built.name
        wheel.write_bytes(built.read_bytes())
    return wheel


def try_out(uv: str, python: str, wheel: Path) -> None:
    """Install a wheel into an environment of its own, import it, and decode a row.

    Raises:
        Failed: one of these does not work.
    """
    with tempfile.TemporaryDirectory(prefix="ots-tunnel-trial-") as fresh:
        folder = Path(fresh)
        run(uv, "venv", "--quiet", "--python", python, str(folder / "venv"))
        program = str(folder / "venv" / "bin" / "python")
        run(uv, "pip", "install", "--quiet", "--python", program, str(wheel))
        run(program, "-I", "-c", TRIAL, environment={"OTS_TUNNEL_CODEC": "compiled"}, folder=folder)


def main() -> int:
    """Build and try the wheels; the exit code."""
    parser = argparse.ArgumentParser(description="Build and try a compiled wheel for each Python.")
    parser.add_argument("--folder", type=Path, default=ROOT / "dist")
    parser.add_argument("--python", nargs="+", default=PYTHONS, metavar="VERSION")
    options = parser.parse_args()
    uv, code = os.environ.get("UV", "uv"), 0
    for python in options.python:
        try:
            found = interpreter(uv, python)
        except Failed as error:
            print(f"Python {python}: no interpreter here, and uv can fetch none: {error}", file=sys.stderr, flush=True)
            code = code or MISSING
            continue
        try:
            wheel = build(uv, found, options.folder)
            try_out(uv, found, wheel)
        except Failed as error:
            print(f"Python {python}: {error}", file=sys.stderr, flush=True)
            code = 1
            continue
        print(f"Python {python}: {wheel} works ({found})", flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
