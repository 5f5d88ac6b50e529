"""The sink refuses records of an object whose policy is Skip: the status has each of them once, and says so.

count it once   some are refused; nobody can ask the workers for a while; the operator and a worker die; some more are
                refused. status.refused is what the workers have counted, and stays that while nothing is refused
say so          the object is Degraded with RecordsRefused, until a user accepts the number

What is left out is missing at the destination on purpose, so the oracle of the data path does not judge this scene.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ots_emulator.server.faults import FaultRule
from ots_tunnel_operator import names
from tests.simulation.fleet.expecting import expect
from tests.simulation.fleet.strangers import OBJECT

if TYPE_CHECKING:
    from tests.simulation.fleet.fleet import Fleet

#: Seconds until workers read, and until the status has what they have counted.
STARTING_SECONDS, TOLD_SECONDS = 300.0, 120.0
#: Seconds until a worker writes a change, also after the death of another one.
READING_SECONDS = 300.0
#: Seconds for which nobody can ask the workers, longer than a report is kept; and for which the number has to stay.
SILENT_SECONDS, QUIET_SECONDS = 120.0, 60.0
#: Records that are refused before and after the deaths.
BEFORE, AFTER = 3, 2


class LeftOut:
    """Refuses records in every sixth story that has no end time."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    async def happen(self) -> None:
        """Refuse them, by the seed."""
        fleet = self._fleet
        if fleet.scenario.end_after or fleet.scenario.seed % 6 != 4:
            return
        fleet.is_delivery_judged = False
        fleet.epilogues.apply_anew(delivery={"onPermanentError": "Skip"})
        await expect(fleet, lambda: self._says("Ready"), STARTING_SECONDS, "unstable", "it is not Ready")
        await self._refuse(BEFORE)
        fleet.story.tell("region", "no worker can be asked")
        fleet.unreachable_until = fleet.loop.now + SILENT_SECONDS
        await asyncio.sleep(SILENT_SECONDS + QUIET_SECONDS)
        self._judge_told()
        fleet.story.tell("region", "the operator and a worker die")
        fleet.operator.kill(5.0)
        for program in fleet.programs()[:1]:
            program.kill()
        await self._refuse(BEFORE + AFTER)
        await asyncio.sleep(QUIET_SECONDS)
        self._judge_told()
        await self._accept()
        fleet.user("DELETE", OBJECT)
        await fleet.epilogues.gone()

    async def _refuse(self, goal: int) -> None:
        """Refuse records until the workers have counted that many, and wait until the status has them."""
        fleet, keys = self._fleet, self._fleet.key_names()
        for number in range(fleet.refused() + 1, goal + 1):
            fleet.history.write(keys[number % len(keys)])
            # the next call that writes is a worker's
            refusing = FaultRule(operation="BatchWriteRow", row_code="OTSParameterInvalid", count=1)
            fleet.service.emulator.add_fault(refusing)
            enough = f"the workers have not counted {number} refused records"
            await expect(fleet, lambda n=number: fleet.refused() == n, READING_SECONDS, "unstable", enough)
        wrong = f"{goal} records were refused, the status has "
        await expect(fleet, self._is_told, TOLD_SECONDS, "refused", wrong, why=lambda: f"{self._told()}")
        if not self._says("Degraded"):
            fleet.violate("refused", "records were left out, and the object is not Degraded")

    async def _accept(self) -> None:
        fleet = self._fleet
        accepted = {names.ANNOTATION_ACCEPT_REFUSED: str(fleet.refused())}
        fleet.user("PATCH", OBJECT, {"metadata": {"annotations": accepted}})
        wrong = "a user has accepted what was left out, and the object is still Degraded"
        await expect(fleet, lambda: not self._says("Degraded"), TOLD_SECONDS, "refused", wrong)
        self._judge_told()

    def _judge_told(self) -> None:
        if not self._is_told():
            text = f"{self._fleet.refused()} records were refused, the status has {self._told()}"
            self._fleet.violate("refused", text)

    def _is_told(self) -> bool:
        return self._told() == self._fleet.refused()

    def _told(self) -> int:
        return int((self._status().get("refused") or {}).get("records") or 0)

    def _says(self, kind: str) -> bool:
        conditions = self._status().get("conditions") or ()
        return any(each["type"] == kind and each["status"] == "True" for each in conditions)

    def _status(self) -> dict[str, object]:
        return dict((self._fleet.stored() or {}).get("status") or {})
