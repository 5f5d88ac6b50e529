"""Two problems at once: a spec that no worker can carry out, and a destination that somebody has exchanged.

left       with the first one alone, workers go on with their former settings
stopped    with the second one, every worker is stopped: each row that it writes would go into a table of somebody else
told       the status says the one that a user has to know first, DestinationBehindTunnel
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ots_tunnel.protocol import table_pb2
from tests.simulation.fleet.endings.forestalled import create_their_table
from tests.simulation.fleet.endings.misconfigured import NOWHERE
from tests.simulation.fleet.expecting import expect
from tests.simulation.fleet.newcomers.newcomer import Newcomer
from tests.simulation.service import COPY

if TYPE_CHECKING:
    from tests.simulation.fleet.fleet import Fleet

#: Seconds in which a row arrives, and in which the status says what is wrong with the spec.
COPYING_SECONDS, TOLD_SECONDS = 60.0, 60.0
#: Seconds until the workers are stopped: a look at the destination, and a drain; and for which they stay so.
STOPPING_SECONDS, LASTING_SECONDS = 240.0, 120.0


class TwoProblems:
    """An object in trouble twice."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._object = Newcomer(fleet, "troubled")

    async def happen(self) -> None:
        """Bring the object into trouble, and then again."""
        fleet, new = self._fleet, self._object
        new.apply()
        await new.ready("a new object is not Ready")
        new.write()
        await expect(fleet, new.copied, COPYING_SECONDS, "unstable", "a row is not copied", why=new.conditions)
        new.edit({"delivery": NOWHERE})
        wrong = "a spec that no worker can carry out is not told"
        await expect(fleet, self._is_refused, TOLD_SECONDS, "problems", wrong, why=new.conditions)
        if not new.programs():
            fleet.violate("problems", "no worker runs, because the next one would have a spec that cannot be used")
        self._exchange()
        wrong = "workers run on with the table of somebody else"
        await expect(fleet, self._is_stopped, STOPPING_SECONDS, "problems", wrong, why=new.conditions)
        await asyncio.sleep(LASTING_SECONDS)
        if not self._is_stopped():
            fleet.violate("problems", f"it is no longer told, or workers are wanted again{new.conditions()}")
        await new.gone()

    def _exchange(self) -> None:
        fleet, name = self._fleet, self._object.name
        fleet.story.tell("user", "drops the destination, and creates another table of its name")
        fleet.service.call(COPY, "DeleteTable", table_pb2.DeleteTableRequest(table_name=name))
        create_their_table(fleet, name)

    def _is_refused(self) -> bool:
        return self._object.says("Ready") == ("False", "InvalidSpec")

    def _is_stopped(self) -> bool:
        found = self._object.deployment()
        wanted = 0 if found is None else int(found["spec"].get("replicas", 1))
        is_told = self._object.says("Stalled") == ("True", "DestinationBehindTunnel")
        return is_told and not wanted and not self._object.programs()
