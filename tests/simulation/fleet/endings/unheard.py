"""Something between the operator and the API server takes every watch, and cuts it before it has delivered a word.

In every tenth story without an end time, for minutes, while a user goes on editing the object; after that watches last,
and what they deliver is late:

unheard     an edit is carried out, and the status tells of the workers that there are: what no watch says, a list tells
outdated    what was decided from a copy that nobody has told of an edit is refused, and not sent again (`outdated`)
backwards   the operator's page never shows the object as it was before what the page has shown already: an event may be
            overtaken by the answer to a write
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

from tests.simulation.fleet.expecting import expect, is_ready
from tests.simulation.fleet.strangers import OBJECT

if TYPE_CHECKING:
    from tests.simulation.fleet.fleet import Fleet

#: Seconds in which a new object is Ready.
READY_SECONDS = 400.0
#: Seconds after which a watch is cut.
CUT_SECONDS = (0.2, 2.0)
#: Seconds for which watches are cut before anything happens: by then nobody relies on what one has told before.
BEFORE_SECONDS = 30.0
#: Seconds in which another worker runs, and the status says so.
TOLD_SECONDS = 120.0
#: Seconds for which a user edits, and between two edits.
EDITING_SECONDS, EDIT_SECONDS = 20.0, (0.05, 0.6)
#: Seconds in which the last edit is seen.
SEEN_SECONDS = 60.0
#: Seconds for which events are late, and between two looks at the page, some of which follow an edit.
LATE_SECONDS, PAGE_SECONDS, EDIT_CHANCE = 40.0, 0.1, 0.1


class Unheard:
    """Cuts the watches of a story."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._chance = random.Random(f"unheard:{fleet.scenario.seed}")
        self._edits = 0

    async def happen(self) -> None:
        """Cut them for minutes, by the seed."""
        fleet, scenario = self._fleet, self._fleet.scenario
        if scenario.end_after or scenario.prefix != "fleet:" or scenario.seed % 10 != 7:
            return
        fleet.epilogues.apply_anew()
        await expect(fleet, lambda: is_ready(fleet), READY_SECONDS, "unheard", "an object is not Ready")
        fleet.story.tell("region", "every watch is cut")
        fleet.watches.cut_after = lambda: self._chance.uniform(*CUT_SECONDS)
        fleet.watches.break_all()
        await asyncio.sleep(BEFORE_SECONDS)
        await self._scale()
        await self._edit()
        fleet.watches.cut_after = None
        fleet.story.tell("region", "watches last, and are late")
        await self._overtake()
        fleet.user("DELETE", OBJECT)
        await fleet.epilogues.gone()

    async def _scale(self) -> None:
        """A user wants another worker."""
        fleet = self._fleet
        wanted = fleet.ready_pods() + 1
        fleet.edit({"replicas": wanted})

        def is_told() -> bool:
            status = (fleet.stored() or {}).get("status") or {}
            return fleet.ready_pods() == status.get("readyReplicas") == wanted

        wrong = f"while every watch is cut, the status does not come to {wanted} workers"
        await expect(fleet, is_told, TOLD_SECONDS, "unheard", wrong)

    async def _edit(self) -> None:
        """A user edits again and again."""
        fleet, until = self._fleet, self._fleet.loop.now + EDITING_SECONDS
        while fleet.loop.now < until:
            self._change()
            await asyncio.sleep(self._chance.uniform(*EDIT_SECONDS))

        def is_seen() -> bool:
            found = fleet.stored() or {}
            return (found.get("status") or {}).get("observedGeneration") == found["metadata"]["generation"]

        await expect(fleet, is_seen, SEEN_SECONDS, "unheard", "while every watch is cut, an edit is not seen")

    async def _overtake(self) -> None:
        """A user edits, and looks at the page, while events are late."""
        fleet, until, shown = self._fleet, self._fleet.loop.now + LATE_SECONDS, 0
        fleet.late_events_until = until
        fleet.disturb(until)
        while fleet.loop.now < until:
            if self._chance.random() < EDIT_CHANCE:
                self._change()
            await asyncio.sleep(PAGE_SECONDS)
            before, shown = shown, fleet.operator.shown((fleet.stored() or {})["metadata"]["uid"])
            if shown < before:
                fleet.violate("backwards", f"the page shows version {shown} of the object, and showed {before} before")

    def _change(self) -> None:
        """An edit of the user."""
        self._edits += 1
        self._fleet.edit({"monitoring": {"lagDegradedSeconds": 600 + self._edits}})
