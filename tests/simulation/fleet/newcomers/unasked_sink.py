"""Records go to a web service, and there is none yet: only workers can tell about such a sink.

Its first batch is the first call of the service, so until then nobody has asked whether it answers: SinkReady may not
be True, however long the workers run well.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.simulation.fleet.newcomers.newcomer import Newcomer

if TYPE_CHECKING:
    from tests.simulation.fleet.fleet import Fleet

#: Seconds for which nothing is written.
UNASKED_SECONDS = 180.0
#: Nobody answers there, and with nothing written nobody asks.
WEB_SERVICE = {"http": {"url": "http://web.region/changes"}}


class UnaskedSink:
    """An object with a sink that the operator cannot reach."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._object = Newcomer(fleet, "unasked")

    async def happen(self) -> None:
        """Apply the object, and write nothing."""
        fleet, new = self._fleet, self._object
        new.apply(sink=WEB_SERVICE)
        await new.ready("an object whose records go to a web service is not Ready")
        until = fleet.loop.now + UNASKED_SECONDS
        while fleet.loop.now < until:
            if (says := new.says("SinkReady"))[0] not in ("Unknown", "False"):
                fleet.violate("unasked", f"nobody has called the sink, and SinkReady is {' '.join(says)}")
                return
            await asyncio.sleep(1)
        await new.gone()
