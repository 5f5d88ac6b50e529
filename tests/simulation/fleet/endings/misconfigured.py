"""A user edits a running object to a spec that no worker could carry out, and corrects it.

In every seventh story without an end time:

said        the object is not Ready, with InvalidSpec
left        while it is so, no child is changed and no worker is replaced: one with these settings would keep what it
            writes in its container, beneath checkpoints that remain
corrected   what the correction asks for is carried out, and the object is Ready
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.simulation.fleet.expecting import expect
from tests.simulation.fleet.strangers import OBJECT

if TYPE_CHECKING:
    from tests.simulation.fleet.fleet import Fleet

#: Seconds in which the object is Ready, also after a correction, and in which it says what is wrong.
READY_SECONDS, TOLD_SECONDS = 400.0, 60.0
#: Seconds for which nothing may change.
LASTING_SECONDS = 120.0
#: A place for refused records in a folder, for which the pod has no volume.
NOWHERE = {"onPermanentError": "DeadLetter", "deadLetter": {"files": {"url": "file:///refused"}}}
CORRECTED = {"onPermanentError": "Skip", "deadLetter": None}


class Misconfigured:
    """Edits the object of a story, and judges what its workers get."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    async def happen(self) -> None:
        """Edit it, by the seed."""
        fleet, scenario = self._fleet, self._fleet.scenario
        if scenario.end_after or scenario.prefix != "fleet:" or scenario.seed % 7 != 3:
            return
        fleet.epilogues.apply_anew()
        await self._ready("an object is not Ready")
        before = self._children()
        fleet.edit({"delivery": NOWHERE})
        told = "a spec that no worker can carry out is not told: "
        await expect(fleet, self._is_refused, TOLD_SECONDS, "misconfigured", told, why=lambda: f"{self._says()}")
        await asyncio.sleep(LASTING_SECONDS)
        if self._children() != before:
            fleet.violate("misconfigured", "workers got the settings of a spec that none of them can carry out")
        fleet.edit({"delivery": CORRECTED})
        await self._ready("after its correction, an object is not Ready")
        if self._children() == before:
            fleet.violate("misconfigured", "a correction is not carried out")
        fleet.user("DELETE", OBJECT)
        await fleet.epilogues.gone()

    async def _ready(self, otherwise: str) -> None:
        await expect(self._fleet, lambda: self._says()[0] == "True", READY_SECONDS, "misconfigured", otherwise)

    def _is_refused(self) -> bool:
        return self._says() == ("False", "InvalidSpec")

    def _says(self) -> tuple[str, str]:
        """Status and reason of the condition Ready, about the spec as it is; empty where there is none."""
        found = self._fleet.stored() or {}
        for one in (found.get("status") or {}).get("conditions") or ():
            if one["type"] == "Ready" and one.get("observedGeneration") == found["metadata"]["generation"]:
                return one["status"], one["reason"]
        return "", ""

    def _children(self) -> tuple[object, ...]:
        """What the workers get, and the pods that they are."""
        store = self._fleet.store
        deployment = store.peek(("Deployment", "shop", "orders")) or {"spec": {}}
        settings = store.peek(("ConfigMap", "shop", "orders-config")) or {}
        pods = sorted(str(pod["metadata"]["uid"]) for pod in self._fleet.pods())
        return deployment["spec"], settings.get("data"), pods
