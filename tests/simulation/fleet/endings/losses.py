"""What takes changes away for good, at the end of a story: the status has to say so, and to go on saying so.

lose_table     the source table is deleted, and its tunnels with it: TunnelNotFound, and no worker is started again
expire         the tunnel expires while the operator does not reach the destination: TunnelExpired comes first, for
               it stops the workers
lose_changes   nobody reads for longer than the retention: PossibleGap with the channels and times of what is missing,
               or TunnelExpired; what the service does then is drawn
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ots_tunnel.protocol import table_pb2
from tests.simulation.fleet.evidence import seconds_of
from tests.simulation.machine.process import EPOCH
from tests.simulation.oracles.history import Place
from tests.simulation.service import COPY, SOURCE, TABLE
from tests.support.emulator.emulator_scene import create_table_request
from tests.support.row_changes import VERSIONS

if TYPE_CHECKING:
    from tests.simulation.fleet.fleet import Fleet

#: Hours for which a stream keeps changes.
RETENTION_HOURS = 1
#: Seconds within which suspended workers end.
DRAINING_SECONDS = 90.0
#: Seconds after which the operator has noticed that it does not reach the destination.
UNSEEN_SECONDS = 120.0
#: Seconds until the status says what is lost, and until no worker is wanted any more.
TOLD_SECONDS = 240.0
#: Seconds for which the status has to go on saying so.
LASTING_SECONDS = 300.0


class Losses:
    """Loses something in every second story that has no end time."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self.is_table_gone = False

    async def happen(self) -> None:
        """Lose something, by the seed."""
        scenario = self._fleet.scenario
        if scenario.end_after:
            return
        if scenario.seed % 6 == 1:
            await self._lose_table()
        elif scenario.seed % 6 == 2:
            await self._expire()
        elif scenario.seed % 6 == 4:
            await self._lose_changes()

    def restore(self) -> None:
        """Make the table again, for what comes afterwards."""
        if self.is_table_gone:
            self._fleet.service.call(SOURCE, "CreateTable", create_table_request(TABLE, max_versions=VERSIONS))

    async def _lose_table(self) -> None:
        fleet = self._fleet
        fleet.story.tell("user", "deletes the source table")
        fleet.service.call(SOURCE, "DeleteTable", table_pb2.DeleteTableRequest(table_name=TABLE))
        self.is_table_gone = True
        await self.expect({"TunnelNotFound"})

    async def _expire(self) -> None:
        fleet = self._fleet
        path = fleet.network.path("operator", f"{COPY}.region")
        until = fleet.loop.now + UNSEEN_SECONDS + TOLD_SECONDS + LASTING_SECONDS
        path.there.dark_until = path.back.dark_until = until
        await asyncio.sleep(UNSEEN_SECONDS)
        fleet.story.tell("region", "the tunnel expires, and the operator does not reach the destination")
        fleet.tunnel().expired = True
        await self.expect({"TunnelExpired"})

    async def _lose_changes(self) -> None:
        fleet = self._fleet
        fleet.edit({"suspend": True})
        await asyncio.sleep(DRAINING_SECONDS)
        fleet.story.tell("region", "nobody reads for longer than the retention")
        before = fleet.loop.now
        for key in fleet.key_names():
            fleet.history.write(key)
        lost = {
            channel: [place for place in places if place.committed >= EPOCH + before]
            for channel, places in fleet.history.entries.items()
        }
        await asyncio.sleep(RETENTION_HOURS * 3600 + 100)
        fleet.edit({"suspend": False})
        await self.expect({"PossibleGap", "TunnelExpired"})
        if fleet.stalled() == "PossibleGap":
            self._judge_gaps(lost)

    async def expect(self, reasons: set[str]) -> None:
        """The status says so after a while and goes on saying so, and no worker runs or is wanted."""
        fleet, began = self._fleet, self._fleet.loop.now
        while fleet.loop.now < began + TOLD_SECONDS + LASTING_SECONDS:
            await asyncio.sleep(5)
            found = fleet.stalled()
            running, wanted = len(fleet.programs()), fleet.epilogues.wanted()
            if fleet.loop.now > began + TOLD_SECONDS and (found not in reasons or running or wanted):
                says = f"Stalled says {found or 'nothing'}, expected is {' or '.join(sorted(reasons))}"
                fleet.violate("loss", f"{says}; {running} workers run, {wanted} are wanted")
                return

    def _judge_gaps(self, lost: dict[str, list[Place]]) -> None:
        """Everything that is lost lies in a gap of the status."""
        status = (self._fleet.stored() or {}).get("status") or {}
        gaps = status.get("possibleGaps") or ()
        for channel, places in lost.items():
            known = [(seconds_of(gap["from"]), seconds_of(gap["to"])) for gap in gaps if gap["channel"] == channel]
            for place in places:
                # times of a status have whole seconds
                if not any(start - 1 < place.committed - EPOCH < end + 1 for start, end in known):
                    number = f"number {place.number} of {place.key}, committed at {place.committed - EPOCH:.0f} s"
                    self._fleet.violate("loss", f"{number}, is lost, and in no gap of channel {channel[:8]}: {known}")
                    return
