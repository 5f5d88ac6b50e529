"""Starts the comparison with what it needs of the interpreter: fixed hashes, virtual clocks before all imports."""

from __future__ import annotations

import sys

from tests.simulation.machine import determinism


def main() -> int:
    """Run the comparison."""
    determinism.fix_hashes("tests.simulation.scaling")
    determinism.install()
    from tests.simulation.scaling.comparison import main as compare

    return compare(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
