"""Scenes with objects of their own, after everything else: one at the end of most stories with an even seed.

They come last, so that they change nothing of what a seed has told before.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from tests.simulation.fleet.newcomers.refused_monitor import RefusedMonitor
from tests.simulation.fleet.newcomers.refused_rollout import RefusedRollout
from tests.simulation.fleet.newcomers.taken_deployment import TakenDeployment
from tests.simulation.fleet.newcomers.two_problems import TwoProblems
from tests.simulation.fleet.newcomers.unasked_sink import UnaskedSink

if TYPE_CHECKING:
    from tests.simulation.fleet.fleet import Fleet

#: One story in so many has a certain scene, and which one by the rest of its seed.
EVERY: Final = 12
SCENES: Final = {0: RefusedMonitor, 2: UnaskedSink, 4: TakenDeployment, 6: TwoProblems, 8: RefusedRollout}


class Afterwards:
    """The scene of a story."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    async def happen(self) -> None:
        """Tell it, by the seed; controllers have to be at rest."""
        fleet, scenario = self._fleet, self._fleet.scenario
        scene = SCENES.get(scenario.seed % EVERY)
        if scene is None or scenario.prefix != "fleet:":
            return
        # rows of other tables are no business of the oracle of deliveries
        fleet.is_delivery_judged = False
        controlling = asyncio.create_task(fleet.controllers.run())
        await scene(fleet).happen()
        controlling.cancel()
