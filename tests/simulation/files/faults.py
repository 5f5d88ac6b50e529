"""Faults of a disk that the workers of a region share."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from tests.simulation.faults import KINDS, Fault, Kind, draw_faults

if TYPE_CHECKING:
    from tests.simulation.files.region import FilesRegion


def _lose_power(region: FilesRegion, fault: Fault) -> None:
    region.lose_power(fault.seconds)


def _strike(region: FilesRegion, fault: Fault) -> None:
    """A process is killed, or the power is lost, in the middle of a call in a thread, after some calls of the disk."""
    region.strike(fault.count, fault.seconds, power=fault.value == "power")


def _fail(region: FilesRegion, fault: Fault) -> None:
    region.disk.failing += fault.count


_OWN: Mapping[str, Any] = {
    "lose power": Kind(_lose_power, 8, (0.05, 0.5)),
    "strike at the disk": Kind(_strike, 12, (0.02, 0.5), ("kill", "power", "power"), count=40),
    "disk errors": Kind(_fail, 6, count=4),
}
#: Kinds of these stories: what needs a table at the destination is left out.
FILE_KINDS: Final[Mapping[str, Kind]] = {
    **{name: kind for name, kind in KINDS.items() if name not in ("row errors", "held", "frozen", "hold", "vanish")},
    "slow disk": replace(KINDS["slow disk"], weight=6),
    **_OWN,
}


def draw_file_faults(chance: random.Random, length: float, timeout: float, count: int) -> tuple[Fault, ...]:
    """See `draw_faults`."""
    return draw_faults(chance, length, timeout, count, FILE_KINDS)
