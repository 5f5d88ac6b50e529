"""The course of the number of workers in one story: its figures, and what is judged of it while the load lasts.

spec        the operator never writes spec.replicas
bounds      the Deployment asks for at least one worker, and never for more than maxReplicas or the channels that can be
            read: a child comes after its parents
hasty       what a number needs before it is changed (`haste`)
blind       nothing is decided while no worker can be asked
unsteady    the number is changed, or changes its direction, too often, or rows wait for too much of the time

Lateness is that of the source: a look is late where a row waits that was committed more than a minute ago.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ots_tunnel.model import ChannelStatus
from tests.simulation.machine.process import EPOCH
from tests.simulation.scaling.haste import Haste

if TYPE_CHECKING:
    from tests.simulation.scaling.fleet import ScalingFleet

#: Seconds after which a row that waits is late.
LATE = 60.0
#: Seconds between two looks at the fleet.
LOOK_SECONDS = 5.0
#: Seconds for which what a worker has told may still be decided on: a pass that is under way.
PASS_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Bounds:
    """The most that Auto may do in one hour of a load."""

    changes: int
    turns: int
    """Changes of the direction."""
    late: float
    """Share of the looks; in a story with faults `LATE_BY_FAULTS` more."""


BOUNDS = {
    "steady": Bounds(4, 2, 0.05),
    "sine": Bounds(12, 4, 0.12),
    "bursts": Bounds(12, 5, 0.16),
    "step": Bounds(8, 3, 0.16),
}
LATE_BY_FAULTS = 0.15


class Course:
    """Looks at the fleet every few seconds, and counts in `figures` while the load lasts."""

    def __init__(self, fleet: ScalingFleet) -> None:
        self._fleet = fleet
        self._haste = Haste(fleet)
        self.figures: Counter[str] = Counter()
        self.is_loaded = True
        self._oldest: dict[str, int] = {}
        self._number = 0
        self._direction = 0
        self._silent_since: float | None = None

    async def watch(self) -> None:
        """Look at the fleet until it is cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            found, deployed = self._fleet.stored(), self._fleet.deployed
            if found is not None and deployed is not None:
                self.look(found, deployed)
                if self._fleet.scenario.chooser == "Auto":
                    self._haste.look(found, self._fleet.deployment or {})

    def look(self, found: Mapping[str, Any], deployed: int) -> None:
        """Judge and count what is there now.

        Args:
            found: the object.
            deployed: workers that the Deployment asks for.
        """
        scenario = self._fleet.scenario
        if scenario.chooser != "HPA" and found["spec"]["replicas"] != scenario.replicas:
            self._fleet.violate("spec", f"spec.replicas is {found['spec']['replicas']}")
        if scenario.chooser == "Auto":
            self._judge_bounds(deployed)
        # a smaller number is one decision, which the operator carries out worker by worker
        scaling = (found.get("status") or {}).get("autoscaling") or {}
        number = int(scaling.get("desiredReplicas") or deployed)
        if number != self._number and self._number:
            self._changed(number, (scaling.get("lastDecision") or {}).get("message", ""))
        self._number = number
        self._notice_silence()
        if self.is_loaded:
            self.figures["looks at the load"] += 1
            self.figures["workers in looks"] += deployed
            self.figures["late looks"] += self._is_late()

    def judge(self) -> None:
        """Judge all of it, after the load."""
        scenario, figures = self._fleet.scenario, self.figures
        bounds = BOUNDS[scenario.load]
        late = figures["late looks"] / max(1, figures["looks at the load"])
        most = bounds.late + (LATE_BY_FAULTS if scenario.acts else 0.0)
        if figures["changes"] > bounds.changes or figures["turns"] > bounds.turns or late > most:
            text = f"{figures['changes']} changes, {figures['turns']} turns, late for {late:.0%} of the time"
            self._fleet.violate("unsteady", f"{text}; allowed are {bounds.changes}, {bounds.turns} and {most:.0%}")

    def _judge_bounds(self, deployed: int) -> None:
        tunnel = self._fleet.tunnel()
        channels = {} if tunnel is None else tunnel.channels
        left = (name for name, channel in channels.items() if channel.status is not ChannelStatus.TERMINATED)
        live = sum(self._fleet.is_readable(name) for name in left)
        if live and not 1 <= deployed <= min(self._fleet.scenario.most, live):
            self._fleet.violate("bounds", f"{deployed} workers, and {live} channels can be read")

    def _changed(self, number: int, why: str) -> None:
        self._fleet.story.tell("region", "%s workers instead of %s: %s", number, self._number, why)
        now, silent = self._fleet.loop.now, self._silent_since
        if self._fleet.scenario.chooser == "Auto" and silent is not None and now - silent > PASS_SECONDS:
            self._fleet.violate("blind", f"for {now - silent:.0f} s no worker could be asked, and {number} are wanted")
        if self.is_loaded:
            direction = 1 if number > self._number else -1
            self.figures["changes"] += 1
            self.figures["turns"] += direction == -self._direction
            self._direction = direction

    def _notice_silence(self) -> None:
        now = self._fleet.loop.now
        if now >= self._fleet.unreachable_until:
            self._silent_since = None
        elif self._silent_since is None:
            self._silent_since = now

    def _is_late(self) -> bool:
        """Whether a row waits that was committed long ago."""
        applied, before = self._fleet.delivery.applied, EPOCH + self._fleet.loop.now - LATE
        is_late = False
        for channel, places in self._fleet.history.entries.items():
            oldest = self._oldest.get(channel, 0)
            while oldest < len(places) and applied.get(places[oldest].key, 0) >= places[oldest].number:
                oldest += 1
            self._oldest[channel] = oldest
            is_late = is_late or (oldest < len(places) and places[oldest].committed < before)
        return is_late
