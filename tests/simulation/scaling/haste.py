"""No number of workers is changed in haste: docs/operations.md says for how long a load has to ask for it.

hasty   Auto has changed the number by the load
            before an operator that was started has seen the load for a whole window
            downwards, although for more than half of the window the fleet was being changed, so that nobody knew what
            the load asked for
            although channels were moving, or pods were coming and going, and had been for a while

What is judged is status.autoscaling.lastDecision beside what the region knows, in looks every few seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from tests.simulation.fleet.evidence import seconds_of

if TYPE_CHECKING:
    from tests.simulation.scaling.fleet import ScalingFleet

#: Reasons of decisions by the load; the others follow from bounds, or take back what was of no use.
BY_LOAD: Final = frozenset({"Backlog", "Busy", "Idle", "FewerChannels", "BaseData"})
#: Default stabilizationSeconds, up and down; at most half of that down may be without figures at a time.
UP_SECONDS, DOWN_SECONDS = 45.0, 600.0
UNKNOWN_SECONDS: Final = DOWN_SECONDS / 2
#: Seconds after which an operator has seen what the region knows, in a look of which the decision is.
PASS_SECONDS: Final = 30.0


class Haste:
    """Judges each decision when it appears in the status."""

    def __init__(self, fleet: ScalingFleet) -> None:
        self._fleet = fleet
        self._judged: Mapping[str, Any] = {}
        #: When the fleet was being changed: begin and end, the last one maybe until now.
        self._unsettled: list[tuple[float, float]] = []
        self._is_unsettled = False

    def look(self, found: Mapping[str, Any], deployment: Mapping[str, Any]) -> None:
        """Judge a decision that is new.

        Args:
            found: the object.
            deployment: of its workers.
        """
        decision = ((found.get("status") or {}).get("autoscaling") or {}).get("lastDecision") or {}
        if decision != self._judged:
            self._judged = decision
            if decision and decision["reason"] in BY_LOAD:
                self._judge(decision)
        self._notice(self._is_changing(deployment))

    def _judge(self, decision: Mapping[str, Any]) -> None:
        # times of a status have whole seconds
        at, is_down = seconds_of(decision["time"]) + 1, decision["to"] < decision["from"]
        led = at - self._fleet.operator.began
        if 0 <= led < (DOWN_SECONDS if is_down else UP_SECONDS):
            self._violate(decision, f"{led:.0f} s after the operator was started")
        unknown = max((self._within_window(stretch, at) for stretch in self._unsettled), default=0.0)
        if is_down and unknown > UNKNOWN_SECONDS + PASS_SECONDS:
            self._violate(decision, f"after {unknown:.0f} s in which the fleet was being changed")
        if self._is_unsettled and (lasts := at - self._unsettled[-1][0]) > PASS_SECONDS:
            self._violate(decision, f"although for {lasts:.0f} s the fleet was being changed")

    def _within_window(self, stretch: tuple[float, float], at: float) -> float:
        """Seconds of a stretch within the window down that ends at a time."""
        begin, end = stretch
        return min(end, at) - max(begin, at - DOWN_SECONDS)

    def _violate(self, decision: Mapping[str, Any], why: str) -> None:
        self._fleet.violate("hasty", f"{decision['to']} workers instead of {decision['from']} {why}: {decision}")

    def _is_changing(self, deployment: Mapping[str, Any]) -> bool:
        """Whether pods come or go, or channels move: then the figures say nothing of the load."""
        fleet, status, wanted = self._fleet, deployment.get("status") or {}, deployment["spec"]["replicas"]
        updated, exist = status.get("updatedReplicas", 0), status.get("replicas", 0)
        is_rolled = status.get("observedGeneration") == deployment["metadata"]["generation"] and updated == exist
        return not is_rolled or fleet.ready_pods() != wanted or bool(fleet.unowned() or fleet.orphaned())

    def _notice(self, is_changing: bool) -> None:
        """Remember what this look has found."""
        now = self._fleet.loop.now
        if is_changing:
            begin = self._unsettled.pop()[0] if self._is_unsettled else now
            self._unsettled.append((begin, now))
        self._is_unsettled = is_changing
