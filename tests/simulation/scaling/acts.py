"""What happens beside the load: workers are killed, reports get lost or come late, and the operator is away."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tests.simulation.fleet.acts import KINDS, Act, Kind
from tests.simulation.fleet.operator_process import TAKE_OVER

if TYPE_CHECKING:
    from tests.simulation.fleet.fleet import Fleet
    from tests.simulation.scaling.fleet import ScalingFleet

#: Seconds for which reports are disturbed: long enough for some evaluations without them.
DISTURBED = (60.0, 300.0)


def _slow_pages(fleet: Fleet, act: Act) -> None:
    scaling: ScalingFleet = fleet  # type: ignore[assignment]  # - only that kind of fleet has this kind of event
    scaling.slow_pages_until = fleet.loop.now + act.seconds


#: What may happen to each part of the region.
OPERATOR: Final[Mapping[str, Kind]] = {
    "kill the operator": replace(KINDS["kill the operator"], seconds=TAKE_OVER),
    "the operator stays away": KINDS["the operator stays away"],
}
WORKERS: Final[Mapping[str, Kind]] = {name: KINDS[name] for name in ("kill a worker", "delete a pod")}
REPORTS: Final[Mapping[str, Kind]] = {
    "pages are unreachable": replace(KINDS["pages are unreachable"], seconds=DISTURBED),
    "one page is unreachable": replace(KINDS["one page is unreachable"], seconds=DISTURBED),
    "pages get lost": replace(KINDS["pages get lost"], seconds=DISTURBED),
    "pages are slow": Kind(_slow_pages, 0, DISTURBED),
}
#: How many of each a story with faults has.
PARTS: Final = ((OPERATOR, 1), (WORKERS, 2), (REPORTS, 2))


def draw(chance: random.Random, length: float) -> tuple[Act, ...]:
    """The events of one story, in order of time."""
    acts = []
    for kinds, count in PARTS:
        for _ in range(count):
            name = chance.choice(list(kinds))
            acts.append(kinds[name].draw(chance, name, chance.uniform(0.1, 0.8) * length))
    return tuple(sorted(acts, key=lambda act: act.at))
