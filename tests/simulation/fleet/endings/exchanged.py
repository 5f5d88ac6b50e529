"""Somebody exchanges the destination of an object that has copied to it, at the end of every sixth story.

exchange_table   the table is dropped, and one of its name is created that has a row: DestinationBehindTunnel, and it
                 goes on saying so; no worker runs or is wanted
unseen_place     a user edits the endpoint of the destination, and the operator does not reach the new one: the workers
                 go on with the former one, until somebody has looked
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.simulation.fleet.endings.forestalled import create_their_table
from tests.simulation.service import ServiceHost

if TYPE_CHECKING:
    from tests.simulation.fleet.fleet import Fleet

#: Another endpoint at which the service answers.
ELSEWHERE = "elsewhere.region"
#: Seconds for which the operator does not reach it.
UNSEEN_SECONDS = 150.0


class Exchanged:
    """Exchanges the destination in every sixth story that has no end time."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    async def happen(self) -> None:
        """Exchange it, by the seed."""
        scenario = self._fleet.scenario
        if scenario.end_after or scenario.seed % 6 != 5:
            return
        await (self._exchange_table() if scenario.seed % 12 == 5 else self._unseen_place())

    async def _exchange_table(self) -> None:
        fleet = self._fleet
        fleet.story.tell("user", "drops the destination, and creates another table of its name")
        fleet.epilogues.drop_table()
        create_their_table(fleet)
        await fleet.losses.expect({"DestinationBehindTunnel"})

    async def _unseen_place(self) -> None:
        fleet = self._fleet
        fleet.network.hosts[ELSEWHERE] = ServiceHost(ELSEWHERE, fleet.service)
        path = fleet.network.path("operator", ELSEWHERE)
        path.there.dark_until = path.back.dark_until = fleet.loop.now + UNSEEN_SECONDS
        fleet.edit({"sink": {"tablestore": {"endpoint": f"http://{ELSEWHERE}"}}})
        while fleet.loop.now < path.there.dark_until - 1:
            await asyncio.sleep(1)
            if ELSEWHERE in str(fleet.store.peek(("ConfigMap", "shop", "orders-config"))):
                fleet.violate("unseen", "workers are sent to a table at which nobody has looked")
                return
        if not fleet.programs():
            fleet.violate("unseen", "no worker runs, because a table elsewhere cannot be looked at")
        fleet.edit({"sink": {"tablestore": {"endpoint": "http://copy.region"}}})
