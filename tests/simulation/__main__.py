"""Starts the command with what it needs from the interpreter: fixed hashes, and virtual clocks before all imports."""

from __future__ import annotations

import sys

from tests.simulation.machine import determinism


def main() -> int:
    """Run the command."""
    determinism.fix_hashes("tests.simulation")
    determinism.install()
    from tests.simulation.command import main as run_command

    return run_command(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
