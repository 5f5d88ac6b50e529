"""Starts the command with what it needs from the interpreter: fixed hashes, and virtual clocks before all imports."""

from __future__ import annotations

import os
import sys

from tests.simulation.machine import determinism


def main() -> int:
    """Run the command."""
    if sys.flags.hash_randomization:
        command = [sys.executable, "-m", "tests.simulation", *sys.argv[1:]]
        os.execve(sys.executable, command, {**os.environ, "PYTHONHASHSEED": "0"})
    determinism.install()
    from tests.simulation.command import main as run_command

    return run_command(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
