"""A fleet whose existing rows Spark copies.

late copy   no write of a snapshot takes effect once a worker has read a change: it could bring a row back
holes       once the status says that the snapshot is completed, each row that nobody has changed since there is a
            tunnel is in the copy as it is at the source: no change would bring what the snapshot has left out
unlike      once everything is copied, both tables are equal
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from ots_emulator.tables.keys import BOTTOM_KEY, TOP_KEY
from ots_tunnel_operator.assess.spark.snapshot import COMPLETED
from tests.simulation.fleet.acts import Kind, happen
from tests.simulation.fleet.fleet import Fleet
from tests.simulation.service import COPY, SOURCE, TABLE
from tests.simulation.spark.acts import APPLICATION, SPARK_KINDS
from tests.simulation.spark.attempt import LABEL
from tests.simulation.spark.emptied import Emptied
from tests.simulation.spark.operator import SparkOperator
from tests.simulation.spark.scenario import SparkScenario

#: Seconds between two looks of a user at the status.
OBEYING = 30.0


class SparkFleet(Fleet):
    """Everything of one story."""

    kinds: ClassVar[Mapping[str, Kind]] = SPARK_KINDS
    #: The name of a snapshot's record is needed.
    foreign_name: ClassVar[str] = "somebody-else"
    scenario: SparkScenario

    def __init__(self, scenario: SparkScenario, folder: Path) -> None:
        super().__init__(scenario, folder)
        self.spark = SparkOperator(self, str(scenario.seed))
        self.slow_until = 0.0
        self._copied_rows = 0
        #: Pages that workers had read when the copy began.
        self._pages_before = 0

    def counts(self) -> dict[str, int]:
        return {**super().counts(), "rows copied by Spark": self._copied_rows}

    @property
    def write_deadline(self) -> float:
        """D: seconds within which a write takes effect."""
        return (self.scenario.timeout - self.scenario.interval) / 3

    @property
    def is_at_rest(self) -> bool:
        """As that of a fleet; an application whose operator is away still says what it did before.

        An executor that is shown as running on a lost node may still write.
        """
        return super().is_at_rest and self.loop.now >= self.spark.away_until and not self._is_executor_shown

    @property
    def _is_executor_shown(self) -> bool:
        """Whether a pod of an application is shown as running."""
        return any(
            LABEL in (pod["metadata"].get("labels") or {}) and pod["status"]["phase"] == "Running"
            for pod in self.store.all("Pod")
        )

    @property
    def is_slow(self) -> bool:
        """Whether tasks take long."""
        return self.loop.now < self.slow_until

    def judge_copy(self, rows: int) -> None:
        """Judge a write of a snapshot in the moment in which it takes effect."""
        self._copied_rows += rows
        if self.delivery.counts["pages"] > self._pages_before:
            self.violate("late copy", f"{rows} rows of a snapshot are written after a worker has read the stream")

    def begin_another_copy(self) -> None:
        """Another tunnel is copied from now on: no worker has read it."""
        self._pages_before = self.delivery.counts["pages"]

    async def tell(self) -> None:
        scenario = self.scenario
        self._prepare()
        self._controlling = asyncio.create_task(self.controllers.run())
        looking, sparking = asyncio.create_task(self._look()), asyncio.create_task(self.spark.run())
        self.operator.start()
        for act in scenario.acts:
            self.loop.after(act.at, happen, self, act)
        await self._write(scenario.length)
        self._end_faults()
        self.spark.away_until, self.spark.refused = 0.0, 0
        obeying = asyncio.create_task(self._obey())
        await self._settle()
        obeying.cancel()
        await self._stay_quiet()
        looking.cancel()
        await self._delete()
        await Emptied(self).happen()
        sparking.cancel()
        self.stop_controllers()

    async def _obey(self) -> None:
        """Do what the status tells a user to do where the application has failed for good: delete it."""
        while True:
            await asyncio.sleep(OBEYING)
            if self.stalled() == "SnapshotFailed":
                self.story.tell("user", "deletes the application")
                self.user("DELETE", APPLICATION)

    def apply(self, name: str = "orders", **changes: Any) -> None:
        super().apply(name, **{"engine": {"baseData": self.scenario.engine}, **changes})

    def look(self) -> None:
        super().look()
        status = (self.stored() or {}).get("status") or {}
        if (status.get("snapshot") or {}).get("state") != COMPLETED:
            return
        if holes := [key for key in self._different_keys() if key not in self.history.first_in_stream]:
            self.violate("holes", f"the snapshot is completed, and without a change in the stream differ {holes[:5]}")

    def unfit(self) -> list[str]:
        unfit = super().unfit()
        return unfit if unfit else self._unlike()

    def _unlike(self) -> list[str]:
        keys = self._different_keys()
        return [f"unlike the source: {', '.join(keys[:5])}"] if keys else []

    def _different_keys(self) -> list[str]:
        """Keys whose rows differ between source and copy."""
        now_ms = int(self.service.clock.now() * 1000)
        instances = self.service.emulator.instances
        source, copy = (
            dict(instances[name].tables[TABLE].scan(BOTTOM_KEY, TOP_KEY, now_ms)) for name in (SOURCE, COPY)
        )
        return sorted(key[0].decode() for key in source.keys() | copy.keys() if source.get(key) != copy.get(key))
