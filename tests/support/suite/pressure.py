"""How long programs waited for the machine: pressure stall information, as the Linux kernel tells it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

FOLDER = Path("/proc/pressure")
RESOURCES = ("cpu", "io", "memory")


@dataclass(frozen=True)
class Pressure:
    """Seconds since the start of the machine in which at least one task waited, by resource; empty if not told."""

    seconds: dict[str, float]

    def since(self, earlier: Pressure, seconds: float) -> str:
        """Shares of a time in which something waited, as "waited for cpu 82 %, io 3 %, memory 0 %"; may be empty.

        Args:
            seconds: that the time between both readings lasted; above 0.
        """
        both = [name for name in self.seconds if name in earlier.seconds]
        shares = [f"{name} {100 * (self.seconds[name] - earlier.seconds[name]) / seconds:.0f} %" for name in both]
        return f"waited for {', '.join(shares)}" if shares else ""


def read_pressure(folder: Path = FOLDER) -> Pressure:
    """Read the present totals; a kernel may tell none of them."""
    found = {}
    for name in RESOURCES:
        try:
            lines = (folder / name).read_text().splitlines()
        except OSError:  # not built in, or switched off
            continue
        some = next(line for line in lines if line.startswith("some "))
        found[name] = int(some.rpartition("total=")[2]) / 1e6
    return Pressure(found)
