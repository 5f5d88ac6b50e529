"""What goes wrong in a worker's pod, at the end of every third story without an end time: the status says so at once.

refuse_records   the destination refuses rows for good: SinkRejected at the first end of a worker, every worker is
                 stopped, and none is started again until a user has corrected it; then every row arrives
break_image      a user names an image that no registry has: ImagePullFailed, while the workers that run go on, and
                 without a write for each try of the kubelet
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from ots_emulator.server.faults import FaultRule
from ots_tunnel_operator.names import ANNOTATION_RESTARTED_AT
from tests.simulation.fleet.expecting import expect
from tests.simulation.fleet.strangers import DEPLOYMENT
from tests.simulation.service import KEY

if TYPE_CHECKING:
    from tests.simulation.fleet.fleet import Fleet

#: Seconds in which the status says what is wrong, and in which every worker is told to end.
TOLD_SECONDS = 60.0
#: Seconds in which the workers end: a drain, and the grace period of a pod.
STOPPING_SECONDS = 90.0
#: Seconds after which a worker that has started is available: more than three heartbeats.
SETTLING_SECONDS = 60.0
#: Seconds for which nothing may change, and the writes to the API server in them: figures may settle.
LASTING_SECONDS, LASTING_WRITES = 400.0, 2
#: Seconds after the correction in which everything is as it has to be.
RECOVERING_SECONDS = 400.0
MISSING_IMAGE = "worker:missing"
#: A number that no other act of a story asks for: an edit that changes nothing starts no worker.
CORRECTED_LANES = 9


class PodTrouble:
    """Brings the workers of a story into trouble, and corrects it."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    async def happen(self) -> None:
        """Bring trouble, by the seed."""
        scenario = self._fleet.scenario
        if scenario.end_after or scenario.seed % 3 != 1:
            return
        await self._refuse_records()
        await self._break_image()

    async def _refuse_records(self) -> None:
        fleet, before = self._fleet, self._fleet.starts
        fleet.story.tell("region", "the destination refuses rows for good")
        rule = FaultRule(operation="BatchWriteRow", code="OTSOutOfRowSizeLimit", access_key_id=KEY.access_key_id)
        fleet.service.emulator.add_fault(rule)
        fleet.history.write(fleet.key_names()[0])
        await self._expect(lambda: fleet.stalled() == "SinkRejected", TOLD_SECONDS, "Stalled is not SinkRejected")
        await self._expect(lambda: not fleet.programs() and not fleet.pods(), STOPPING_SECONDS, "workers run on")
        # one that had ended may have been started again before it was told to go
        replicas = (fleet.stored() or {})["spec"].get("replicas", 1)
        if (starts := fleet.starts - before) > replicas:
            fleet.violate("trouble", f"{starts} starts of {replicas} workers, which only end again")
        starts = fleet.starts
        await asyncio.sleep(LASTING_SECONDS)
        if fleet.stalled() != "SinkRejected" or fleet.starts > starts or fleet.epilogues.wanted():
            says = f"Stalled says {fleet.stalled() or 'nothing'}, {fleet.starts - starts} workers were started"
            fleet.violate("trouble", f"a verdict does not last: {says}")
        fleet.service.emulator.clear_faults()
        if fleet.scenario.seed % 2:
            fleet.story.tell("user", "restarts the workers")
            annotations = {ANNOTATION_RESTARTED_AT: "2026-11-20T08:15:30Z"}
            spec = {"template": {"metadata": {"annotations": annotations}}}
            fleet.user("PATCH", DEPLOYMENT, {"spec": spec})
        else:
            fleet.edit({"workers": {"lanesPerChannel": CORRECTED_LANES}})
        await self._recovered()

    async def _break_image(self) -> None:
        fleet = self._fleet
        # a worker counts as available once it has been ready for a while, and one that is not is replaced first
        await asyncio.sleep(SETTLING_SECONDS)
        fleet.kubelet.unfetchable.add(MISSING_IMAGE)
        fleet.edit({"workers": {"image": MISSING_IMAGE}})
        await self._expect(
            lambda: fleet.reason("Degraded") == "ImagePullFailed", TOLD_SECONDS, "Degraded is not ImagePullFailed"
        )
        await asyncio.sleep(TOLD_SECONDS)
        writes = len(fleet.fates.writes)
        await asyncio.sleep(LASTING_SECONDS)
        if fleet.reason("Degraded") != "ImagePullFailed":
            fleet.violate("trouble", f"Degraded says {fleet.reason('Degraded') or 'nothing'} of a missing image")
        if not fleet.programs():
            fleet.violate("trouble", "no worker runs, because the next one has no image")
        self._stay_quiet(writes)
        fleet.edit({"workers": {"image": ""}})
        await self._recovered()

    def _stay_quiet(self, before: int) -> None:
        if (count := len(self._fleet.fates.writes) - before) > LASTING_WRITES:
            self._fleet.violate("restless", f"{count} writes to the API server while a worker is in trouble")

    async def _recovered(self) -> None:
        fleet = self._fleet
        wrong = "after a correction: "
        await expect(
            fleet, lambda: not fleet.unfit(), RECOVERING_SECONDS, "trouble", wrong, why=lambda: "; ".join(fleet.unfit())
        )

    async def _expect(self, holds: Callable[[], object], seconds: float, otherwise: str) -> None:
        await expect(self._fleet, holds, seconds, "trouble", otherwise, why=self._why)

    def _why(self) -> str:
        status = (self._fleet.stored() or {}).get("status") or {}
        found = {one["type"]: one["reason"] for one in status.get("conditions") or ()}
        return f": {found}"
