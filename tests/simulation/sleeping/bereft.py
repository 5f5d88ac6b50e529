"""An object loses its tunnel while no worker runs, and somebody resets it: status.lost says what that costs.

At the end of two stories of three (`WAYS`), which way decides the seed:

deleted       somebody deletes the tunnel at the service, right after rows were written that nobody has read
given up      the user suspends the object right after rows were written, and gives up the tunnel, which is there; the
              clock of the operator's node is some minutes ahead, since before the object fell asleep

secret        a change that never comes lies in the times of status.lost
exaggerated   a change that was delivered does not: without a worker the begin of the loss comes from the read mark that
              the last worker left, and from the looks since then
stuck         the reset is done, and what is written afterwards is copied
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from tests.simulation.fleet.endings.resets import RESETTING_SECONDS, RESUMING_SECONDS, Resets
from tests.simulation.fleet.evidence import seconds_of
from tests.simulation.fleet.expecting import expect
from tests.simulation.machine.process import EPOCH
from tests.simulation.service import SOURCE

if TYPE_CHECKING:
    from tests.simulation.oracles.history import Place
    from tests.simulation.sleeping.fleet import SleepingFleet

#: Seconds by which the clock is ahead: more than between two looks, and less than the service accepts.
AHEAD: Final = (200.0, 300.0)
#: Seconds within which the status says that the tunnel is gone.
TOLD_SECONDS: Final = 240.0
#: Forms of a reset; of a rewind everything comes that the stream keeps, and so what nobody had read.
FORMS: Final = ("Rewind", "NewTunnel")


class Bereft(Resets):
    """Takes the tunnel of a fleet that sleeps, and judges what the status says is lost by that."""

    def __init__(self, fleet: SleepingFleet) -> None:
        super().__init__(fleet)
        self._sleeping = fleet

    async def happen(self) -> None:
        """Lose the tunnel, by the seed."""
        if way := WAYS.get(self._fleet.scenario.seed % 3):
            await way(self)
            await self._reset_it()

    async def delete(self) -> None:
        """Somebody deletes the tunnel at the service."""
        fleet = self._fleet
        await self._doze()
        fleet.story.tell("user", "writes rows, and deletes the tunnel of an object that sleeps")
        self._write()
        del fleet.service.emulator.instances[SOURCE].tunnels[fleet.tunnel().id]
        wrong = "a tunnel that was deleted while no worker ran is not missed"
        await expect(fleet, lambda: fleet.stalled() == "TunnelNotFound", TOLD_SECONDS, "loss", wrong)
        await self._suspend()

    async def give_up(self) -> None:
        """The user suspends the object to give up its tunnel, and the operator's clock is ahead."""
        fleet, operator = self._sleeping, self._fleet.operator.process
        assert operator is not None
        operator.ahead = self._chance.uniform(*AHEAD)
        fleet.story.tell("region", "the clock of the operator is %.0f s ahead", operator.ahead)
        await fleet.wake_by_rows()
        await fleet.fall_asleep()
        await self._doze()
        self._write()
        await self._suspend()

    async def _doze(self) -> None:
        """Let some time pass in which the operator looks at the channels, as it does all the time."""
        await asyncio.sleep(self._chance.uniform(0.2, 2.0) * self._sleeping.scenario.peek)

    async def _reset_it(self) -> None:
        fleet, form = self._fleet, FORMS[self._fleet.scenario.seed // 3 % 2]
        fleet.story.tell("user", "asks for a reset: %s", form)
        self._annotate(json.dumps({"token": "bereft", "form": form, "existingTunnel": "Delete"}))
        wrong = "the reset is not done: "
        await expect(fleet, self._is_done, RESETTING_SECONDS, "stuck", wrong, why=lambda: str(self._told()))
        self._judge_loss(form, self._status().get("lost") or {})
        for place in self._given_up():
            fleet.delivery.give_up(place.key, place.number)
        fleet.edit({"suspend": False})
        wrong = "after the reset no worker runs"
        await expect(fleet, lambda: bool(fleet.programs()), RESUMING_SECONDS, "stuck", wrong)
        self._write()
        wrong = "after the reset the object is not as it has to be: "
        await expect(fleet, lambda: not self._uncopied(), RESUMING_SECONDS, "stuck", wrong, why=self._uncopied)

    def _judge_loss(self, form: str, lost: Mapping[str, Any]) -> None:
        """Nothing was written since the tunnel was lost: what is missing now never comes but by a rewind."""
        fleet, given_up = self._fleet, list(self._given_up())
        secret = [place for place in self._missing() if place not in given_up]
        if form == "Rewind" and lost:
            fleet.violate("exaggerated", f"the stream keeps everything, and lost is {dict(lost)}")
        if form != "Rewind" and secret:
            fleet.violate("secret", f"{_named(secret[0])}, never comes, and lost is {dict(lost)}")
        told = [place for place in self._delivered() if self._is_told_as_lost(place, lost)]
        if told:
            fleet.violate("exaggerated", f"{_named(told[0])}, was delivered, and lost is {dict(lost)}")

    def _delivered(self) -> list[Place]:
        """Changes that have taken effect."""
        applied, entries = self._fleet.delivery.applied, self._fleet.history.entries
        return [place for places in entries.values() for place in places if applied.get(place.key, 0) >= place.number]

    def _is_told_as_lost(self, place: Place, lost: Mapping[str, Any]) -> bool:
        """Whether a change lies certainly in the times of a loss, which have whole seconds."""
        if not lost:
            return False
        start = seconds_of(lost["from"]) if "from" in lost else -1.0
        return start + 1 < place.committed - EPOCH < seconds_of(lost["to"]) - 1

    def _uncopied(self) -> str:
        """What was not given up and is not copied; empty once everything that comes has come."""
        given_up = list(self._given_up())
        missing = [place for place in self._missing() if place not in given_up]
        return f"{_named(missing[0])}, is not copied" if missing else ""


#: Rest of the seed divided by three -> what happens; nothing with the others.
WAYS: Final[Mapping[int, Callable[[Bereft], Awaitable[None]]]] = {0: Bereft.delete, 1: Bereft.give_up}


def _named(place: Place) -> str:
    return f"number {place.number} of {place.key}, committed at {place.committed - EPOCH:.0f} s"
