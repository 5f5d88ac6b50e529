"""An object is applied again in the middle of a copy, whose table somebody has dropped and created meanwhile.

In every fourth story. The record of the copy is that of an earlier release, which names no table: nothing tells whether
the splits that it has as done were ever in this one. A copy of the others alone would have holes, so the object has to
say so, and nothing may be written.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ots_tunnel.snapshot.record import read_progress
from ots_tunnel_operator import names
from tests.simulation.fleet.endings.forestalled import create_fitting_table
from tests.simulation.fleet.expecting import expect
from tests.simulation.service import COPY, TABLE

if TYPE_CHECKING:
    from tests.simulation.spark.fleet import SparkFleet

RECORD = f"/api/v1/namespaces/shop/configmaps/{names.snapshot_name('orders')}"
#: Seconds in which a first split is recorded.
COPYING_SECONDS = 400.0
#: Seconds in which the object says what is wrong, and for which nothing is written.
TOLD_SECONDS, LASTING_SECONDS = 150.0, 60.0


class Emptied:
    """Takes the table away from a copy that is under way."""

    def __init__(self, fleet: SparkFleet) -> None:
        self._fleet = fleet

    async def happen(self) -> None:
        """Drop it, by the seed."""
        fleet = self._fleet
        if fleet.scenario.seed % 4 != 2:
            return
        fleet.epilogues.clear()
        fleet.begin_another_copy()
        fleet.apply(deletionPolicy="Retain")
        await expect(fleet, self._done, COPYING_SECONDS, "emptied", "no split is recorded", every=0.5)
        fleet.user("DELETE", fleet.path)
        await fleet.epilogues.gone()
        await asyncio.sleep(fleet.write_deadline + 1)  # what Spark has sent takes effect in the former table
        fleet.story.tell("user", "drops the destination, creates it, and applies the object again")
        fleet.user("PATCH", RECORD, {"metadata": {"annotations": {names.ANNOTATION_DESTINATION: None}}})
        fleet.epilogues.drop_table()
        create_fitting_table(fleet)
        fleet.apply(deletionPolicy="Retain")
        wrong = "an object says nothing of recorded splits that its table may lack"
        await expect(fleet, self._is_told, TOLD_SECONDS, "emptied", wrong, why=lambda: f": {fleet.stalled()}")
        await asyncio.sleep(LASTING_SECONDS)
        if not self._is_told() or len(fleet.service.emulator.instances[COPY].tables[TABLE]):
            fleet.violate("emptied", "an object goes on with a copy whose recorded splits its table may lack")
        fleet.user("DELETE", fleet.path)
        await fleet.epilogues.gone()
        fleet.epilogues.clear()

    def _done(self) -> int:
        """Splits that are recorded."""
        fleet, tunnel = self._fleet, self._fleet.tunnel()
        record = fleet.store.peek(("ConfigMap", "shop", names.snapshot_name("orders")))
        if record is None or tunnel is None:
            return 0
        progress = read_progress(record)
        return progress.done if progress is not None and progress.label == tunnel.id else 0

    def _is_told(self) -> bool:
        return self._fleet.stalled() == "DestinationBehindTunnel"
