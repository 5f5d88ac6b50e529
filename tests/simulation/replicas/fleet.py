"""A fleet whose operator has two replicas (`replicas` says what is judged)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from tests.simulation.fleet.acts import Kind
from tests.simulation.fleet.fleet import Fleet
from tests.simulation.fleet.reports import Reports
from tests.simulation.replicas.acts import REPLICA_KINDS
from tests.simulation.replicas.by_hand import ByHand
from tests.simulation.replicas.replicas import Replicas
from tests.simulation.replicas.scenario import ReplicatedScenario


class ReplicatedFleet(Fleet):
    """Everything of one story."""

    kinds: ClassVar[Mapping[str, Kind]] = REPLICA_KINDS
    scenario: ReplicatedScenario
    operator: Replicas

    def _build_cluster(self, seed: str) -> None:
        super()._build_cluster(seed)
        self.operator = Replicas(self, seed, self._reports)

    def _reports(self) -> Reports:
        return Reports(
            lambda address, path: self.page(address, path, self.evidence),
            lambda address: self.page_seconds(address, self.evidence),
        )

    def counts(self) -> dict[str, int]:
        return {**super().counts(), "fail-overs in time": self.operator.judged}

    @property
    def disturbed_until(self) -> float:
        """Until when something else disturbs the calls to the API server."""
        return self.loop.now if self.fates.lost else max(self.fates.busy_until, self.late_events_until)

    async def tell(self) -> None:
        looking = await self._come_to_rest()
        await ByHand(self).happen()
        looking.cancel()
        await self._delete()
        self.stop_controllers()
