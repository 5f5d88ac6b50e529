"""Somebody resets an object whose tunnel has expired, while changes go on, and the operator dies at one of its writes.

stuck      the reset is done, by whichever operator, and the object follows changes again
secret     what is missing afterwards lies in the times of status.lost, and while there are any, caughtUp is not True
twice      the annotation, which stays, makes no second tunnel; nor does an earlier one that GitOps puts back
restless   nor any write once everything is quiet (the fleet's own rule, asked again)

The oracle of the deliveries is told only what status.lost says: a change that is missing outside of it is a gap.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ots_tunnel_operator import names
from tests.simulation.fleet.claims import condition
from tests.simulation.fleet.evidence import seconds_of
from tests.simulation.fleet.expecting import expect
from tests.simulation.fleet.strangers import OBJECT
from tests.simulation.machine.process import EPOCH
from tests.simulation.oracles.history import Place
from tests.simulation.service import SOURCE

if TYPE_CHECKING:
    from tests.simulation.fleet.fleet import Fleet

#: Seconds within which suspended workers end.
DRAINING_SECONDS = 180.0
#: Seconds within which a request is refused.
REFUSING_SECONDS = 120.0
#: Seconds within which a reset is done, with an operator that dies once.
RESETTING_SECONDS = 400.0
#: Seconds within which the object is Ready again, and everything that comes has come.
RESUMING_SECONDS = 600.0
#: Most writes of the operator before the one at which it dies.
WRITES = 9
#: Seconds without anything, in the middle of which the operator may write nothing.
QUIET_SECONDS = 120.0


class Resets:
    """Resets an object whose tunnel has expired."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._chance = random.Random(f"reset:{fleet.scenario.seed}")

    async def happen(self) -> None:
        """Reset it, in every sixth story that has no end time: the one whose tunnel has expired."""
        scenario = self._fleet.scenario
        if scenario.end_after or scenario.seed % 6 != 2:
            return
        form = ("NewBase", "NewTunnel", "Rewind")[scenario.seed // 6 % 3]
        if form == "NewBase" and scenario.tunnel == "Stream":
            form = "Rewind"
        of_git = json.dumps({"token": "of-git", "form": form, "existingTunnel": "Delete"})
        await self._ask_too_early(of_git)
        await self._suspend()
        self._write()
        await self._reset(form)
        if not self._is_done():
            return
        self._write()
        await self._put_back(of_git)
        await self._resume()

    async def _ask_too_early(self, request: str) -> None:
        """Ask for a reset of an object that is not suspended: it is refused for good."""
        self._annotate(request)
        wrong = "a reset of an object that is not suspended is not refused"
        await expect(self._fleet, lambda: self._told().get("state") == "Refused", REFUSING_SECONDS, "reset", wrong)

    async def _put_back(self, request: str) -> None:
        """GitOps applies its annotation again, while the object is still suspended."""
        fleet, after = self._fleet, self._fleet.tunnel().id
        fleet.story.tell("user", "applies what is in Git, with the request that was refused")
        self._annotate(request)
        await asyncio.sleep(REFUSING_SECONDS)
        if (found := fleet.tunnel()) is None or found.id != after:
            fleet.violate("twice", "an annotation that was put back has made another tunnel")

    def _annotate(self, request: str) -> None:
        self._fleet.user("PATCH", OBJECT, {"metadata": {"annotations": {names.ANNOTATION_RESET: request}}})

    async def _suspend(self) -> None:
        fleet = self._fleet
        fleet.edit({"suspend": True})
        wrong = "an object whose tunnel has expired is not suspended"
        await expect(fleet, lambda: self._is("Suspended"), DRAINING_SECONDS, "reset", wrong)

    async def _reset(self, form: str) -> None:
        fleet, chance = self._fleet, self._chance
        former = fleet.tunnel().id
        is_ours = bool((self._status().get("tunnel") or {}).get("createdByOperator"))
        if not is_ours:
            fleet.story.tell("user", "deletes the expired tunnel")
            del fleet.service.emulator.instances[SOURCE].tunnels[former]
        request = {"token": "once", "form": form, "existingTunnel": "Delete"}
        fleet.fates.crash(
            chance.randrange(WRITES),
            before=chance.random() < 0.5,
            away=chance.uniform(2, 18),
            orderly=chance.random() < 0.5,
        )
        fleet.story.tell("user", "asks for a reset: %s", form)
        self._annotate(json.dumps(request))
        wrong = f"the reset {form} is not done: "
        await expect(fleet, self._is_done, RESETTING_SECONDS, "stuck", wrong, why=lambda: str(self._told()))
        self._judge(former)

    def _judge(self, former: str) -> None:
        """The status is about the tunnel that exists now, and tells what is missing."""
        fleet, status, tunnel = self._fleet, self._status(), self._fleet.tunnel()
        recorded = (status.get("tunnel") or {}).get("id")
        if tunnel is None or tunnel.id == former or not tunnel.id == recorded == self._told().get("tunnelId"):
            fleet.violate("stuck", f"the reset is done, and the tunnel is {recorded}, of {former}")
        for place in self._given_up():
            fleet.delivery.give_up(place.key, place.number)

    def _given_up(self) -> Iterator[Place]:
        """Changes that have not taken effect and that status.lost is about."""
        lost = self._status().get("lost")
        if not lost:
            return
        start = seconds_of(lost["from"]) if "from" in lost else 0.0
        for place in self._missing():
            # times of a status have whole seconds
            if start - 1 < place.committed - EPOCH < seconds_of(lost["to"]) + 1:
                yield place

    def _missing(self) -> list[Place]:
        """Changes that have not taken effect."""
        fleet = self._fleet
        return [
            place
            for places in fleet.history.entries.values()
            for place in places
            if fleet.delivery.applied.get(place.key, 0) < place.number
        ]

    async def _resume(self) -> None:
        fleet, after = self._fleet, self._fleet.tunnel().id
        fleet.edit({"suspend": False})
        wrong = "after its reset the object is not as it has to be: "
        await expect(fleet, lambda: not self._unfit(), RESUMING_SECONDS, "stuck", wrong, why=self._unfit)
        fleet.fates.clear()
        await asyncio.sleep(QUIET_SECONDS)
        begun = fleet.loop.now
        await asyncio.sleep(QUIET_SECONDS)
        if later := [at for at in fleet.fates.writes if at > begun]:
            fleet.violate("restless", f"{len(later)} writes to the API server after a reset")
        if (found := fleet.tunnel()) is None or found.id != after:
            fleet.violate("twice", "the annotation that stays has made another tunnel")

    def _unfit(self) -> str:
        """What is not as it has to be; empty once everything that comes has come."""
        status = self._status()
        given_up = {(place.key, place.number) for place in self._given_up()}
        missing = [place for place in self._missing() if (place.key, place.number) not in given_up]
        if missing:
            return f"not copied: {missing[0].key}: {missing[0].number}"
        if not self._is("Ready"):
            return "it is not Ready"
        caught_up = (status.get("lag") or {}).get("caughtUp")
        if caught_up is not (status.get("lost") is None):
            return f"caughtUp is {caught_up}, and lost is {status.get('lost')}"
        return ""

    def _write(self) -> None:
        for key in self._fleet.key_names():
            self._fleet.history.write(key)

    def _status(self) -> Mapping[str, Any]:
        return (self._fleet.stored() or {}).get("status") or {}

    def _told(self) -> Mapping[str, Any]:
        return self._status().get("reset") or {}

    def _is_done(self) -> bool:
        return self._told().get("state") == "Done"

    def _is(self, kind: str) -> bool:
        return condition(self._status(), kind) == "True"
