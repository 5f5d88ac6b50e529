"""The operator loses the right to read objects, and gets it back; it may write their status all the time.

In every sixth story without an end time:

unobserved  within a minute the object claims nothing any more that somebody would have to look at; so it does when the
            right is lost again right after the object was Ready
claim       of an object that another operator serves, nothing is written, not even that it cannot be read (`strangers`)
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.simulation.apiserver.refusal import injected
from tests.simulation.fleet.claims import condition
from tests.simulation.fleet.expecting import expect, is_ready
from tests.simulation.fleet.strangers import OBJECT, PASS_SECONDS, TAKE_OVER_SECONDS

if TYPE_CHECKING:
    from tests.simulation.fleet.fleet import Fleet

#: Seconds in which a new object is Ready, and one whose right is back.
READY_SECONDS, BACK_SECONDS = 400.0, 180.0
#: Seconds after which an object claims nothing that nobody can look at.
UNKNOWN_SECONDS = 60.0
#: Seconds between two looks whether the object is Ready: the right is lost before the next pass.
LOOK_SECONDS = 0.05
#: Seconds for which the right is gone while another operator serves the object: kopf ends after 54 s.
UNSERVED_SECONDS = 40.0


class Revoked:
    """Takes the right to read objects from the operator of a story."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    async def happen(self) -> None:
        """Take it three times, by the seed."""
        fleet, scenario = self._fleet, self._fleet.scenario
        if scenario.end_after or scenario.prefix != "fleet:" or scenario.seed % 12 not in (0, 7):
            return
        fleet.epilogues.apply_anew()
        await self._ready(READY_SECONDS)
        for _ in range(2):
            self._revoke()
            wrong = "the operator must not read objects, and Ready is True"
            await expect(fleet, self._claims_nothing, UNKNOWN_SECONDS, "unobserved", wrong)
            self._give_back()
            await self._ready(BACK_SECONDS)
        await self._serve_elsewhere()
        fleet.user("DELETE", OBJECT)
        await fleet.epilogues.gone()

    async def _serve_elsewhere(self) -> None:
        """It is taken while another operator serves the object."""
        fleet = self._fleet
        fleet.strangers.claim(PASS_SECONDS + 2 * UNSERVED_SECONDS)
        await asyncio.sleep(PASS_SECONDS + 1)
        self._revoke()
        await asyncio.sleep(UNSERVED_SECONDS)
        self._give_back()
        wrong = "nobody serves an object whose other operator has gone"
        seconds = UNSERVED_SECONDS + TAKE_OVER_SECONDS
        await expect(fleet, lambda: not fleet.strangers.is_claimed and is_ready(fleet), seconds, "unstable", wrong)

    async def _ready(self, seconds: float) -> None:
        fleet = self._fleet
        wrong = "an object that can be read is not Ready"
        await expect(fleet, lambda: is_ready(fleet), seconds, "unstable", wrong, every=LOOK_SECONDS)

    def _claims_nothing(self) -> bool:
        status = (self._fleet.stored() or {}).get("status") or {}
        return all(condition(status, kind) != "True" for kind in ("Ready", "TunnelReady", "SinkReady"))

    def _revoke(self) -> None:
        fleet = self._fleet
        fleet.story.tell("user", "takes the right to read objects from the operator")
        fleet.disturb(fleet.loop.now + UNKNOWN_SECONDS)
        fleet.fates.refuse_reads(injected(403), fleet.loop.now + UNKNOWN_SECONDS, "tablestoretunnels")
        fleet.watches.break_all()

    def _give_back(self) -> None:
        self._fleet.story.tell("user", "gives the right back")
        self._fleet.fates.clear()
