"""At the end of every third story an object is applied while the operator is newer than its CRD.

The definition that is served lacks a record, without which nothing may be created, and a field that is only told. Then
it gets the record, and at last it is the one of this release.

created    while the record is dropped, nothing is created that has to be recorded there
unsaid     the status says CrdOutdated, and names what is dropped; an event names the field
restless   an operator whose writes change nothing does not write in every pass
unstable   with the record the object becomes ready, and with the field it is complete
deletion   the object is released, and its tunnel with it: what had been dropped is known again
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tests.simulation.apiserver.admission import definition
from tests.simulation.fleet.claims import condition
from tests.simulation.fleet.expecting import expect
from tests.simulation.service import COPY, SOURCE
from tests.support.emulator.emulator_scene import create_table_request
from tests.support.row_changes import VERSIONS

if TYPE_CHECKING:
    from tests.simulation.fleet.fleet import Fleet

NAME = "newcomer"
OBJECT = f"/apis/ots-tunnel.dev/v1alpha1/namespaces/shop/tablestoretunnels/{NAME}"
#: Records that an older definition lacks: fields of the status.
RECORDS = (
    ("destination",),
    ("destination.endpoint", "destination.instance", "destination.table"),
    ("destination.createIntentTime",),
    ("tunnel",),
    # nothing is left of the record of an intent
    ("tunnel.createIntentTime", "tunnel.endpoint"),
    ("tunnel.id",),
)
#: Fields that are told, and that nothing relies on; a change of each of them is written at once.
TOLD = ("phase", "selector", "readyReplicas")
#: Seconds until the status tells what is dropped, and until a field that is no longer dropped is stored.
TELLING_SECONDS = 30.0
#: Seconds after which passes that fail are far apart, and figures have settled.
RESTING_SECONDS = 60.0
#: Most passes that fail in two minutes: each may tell when it looked, and one whose record is kept in half writes it
#: with a new time.
CHANGING_SECONDS, MOST_PASSES = 120.0, 3
#: Fields of a record without which nothing of it changes.
TIMED = frozenset({"destination", "destination.createIntentTime", "tunnel", "tunnel.createIntentTime"})
#: Most writes in a minute of passes that succeed: the event.
MOST_WRITES = 2
#: Seconds until an object is ready that can go on: a pass, which comes after up to a minute, and workers that start.
READY_SECONDS = 180.0
#: Seconds until it is gone.
DELETING_SECONDS = 300.0


class OlderCrd:
    """An older definition, and the object that is applied while it is served."""

    def __init__(self, fleet: Fleet) -> None:
        chance = random.Random(f"older crd:{fleet.scenario.seed}")
        self._fleet = fleet
        self._record, self._told = chance.choice(RECORDS), chance.choice(TOLD)
        self._is_forgotten = chance.random() < 0.5

    async def happen(self) -> None:
        """Serve it, by the seed; controllers have to be at rest."""
        fleet = self._fleet
        if fleet.scenario.seed % 3 != 2:
            return
        controlling = asyncio.create_task(fleet.controllers.run())
        fleet.story.tell("region", "the definition lacks %s and %s", ", ".join(self._record), self._told)
        fleet.api.definition = definition(*self._record, self._told)
        self._apply()
        await self._stand_still()
        fleet.story.tell("region", "the definition has the record")
        fleet.api.definition = definition(self._told)
        await self._go_on()
        fleet.story.tell("region", "the definition is that of the operator")
        fleet.api.definition = definition()
        await self._complete()
        fleet.user("DELETE", OBJECT)
        await self._expect(lambda: self._stored() is None, DELETING_SECONDS, "deletion", "the object is not released")
        if self._tunnels():
            fleet.violate("deletion", "the tunnel that was created for the object is left behind")
        controlling.cancel()

    async def _stand_still(self) -> None:
        """A record is dropped."""
        await self._expect(self._says_what_is_dropped, TELLING_SECONDS, "unsaid", "the status does not say CrdOutdated")
        if self._is_forgotten:
            # the next operator knows nothing but what is stored
            self._fleet.operator.kill(5.0)
        await self._change_little()
        if not self._says_what_is_dropped():
            self._fleet.violate("unsaid", "the status says CrdOutdated no longer, although the record is still dropped")
        if made := self._made():
            self._fleet.violate("created", f"{', '.join(made)}: without the record of {', '.join(self._record)}")

    async def _go_on(self) -> None:
        """A field is dropped that nothing relies on."""
        await self._expect(self._is_ready, READY_SECONDS, "unstable", "the object does not become ready")
        await self._stay_quiet()
        if not self._is_ready():
            self._fleet.violate("unstable", "without any fault the object is no longer ready")
        if not any(f"status.{self._told}" in message for message in self._events()):
            self._fleet.violate("unsaid", f"no event CrdOutdated names {self._told}")

    async def _complete(self) -> None:
        """Nothing is dropped any more: the next write, which an edit makes, stores everything."""
        self._fleet.user("PATCH", OBJECT, {"spec": {"deletionPolicy": "Delete"}})
        message = f"status.{self._told} is not stored"
        await self._expect(lambda: self._told in self._status(), TELLING_SECONDS, "unstable", message)

    async def _change_little(self) -> None:
        """No two writes of a pass undo each other."""
        await asyncio.sleep(RESTING_SECONDS)
        store, before = self._fleet.store, self._fleet.store.version
        await asyncio.sleep(CHANGING_SECONDS)
        key = ("TablestoreTunnel", "shop", NAME)
        changes = sum(event.version > before and event.key == key for event in store.log)
        if changes > MOST_PASSES * (1 if TIMED.intersection(self._record) else 2):
            self._fleet.violate("restless", f"{changes} changes of an object whose record is dropped")

    async def _stay_quiet(self) -> None:
        await asyncio.sleep(RESTING_SECONDS)
        begun = self._fleet.loop.now
        await asyncio.sleep(60)
        later = sum(at > begun for at in self._fleet.fates.writes)
        if later > MOST_WRITES:
            self._fleet.violate("restless", f"{later} writes in a minute for an object whose {self._told} is dropped")

    async def _expect(self, holds: Callable[[], bool], seconds: float, rule: str, otherwise: str) -> None:
        await expect(self._fleet, holds, seconds, rule, f"{otherwise}: ", why=self._conditions)

    # What is

    def _says_what_is_dropped(self) -> bool:
        stalled = [one for one in self._status().get("conditions") or () if one["type"] == "Stalled"]
        return any(
            one["status"] == "True" and one["reason"] == "CrdOutdated" and f"status.{self._record[0]}" in one["message"]
            for one in stalled
        )

    def _is_ready(self) -> bool:
        return condition(self._status(), "Ready") == "True"

    def _made(self) -> list[str]:
        """What exists of the object that may not be created before the dropped record is stored."""
        instances = self._fleet.service.emulator.instances
        has_workers = self._fleet.store.peek(("Deployment", "shop", NAME)) is not None
        made = ["the workers"] if has_workers else []
        # the tunnel's id is recorded after its creation, which the intent announces
        if self._record != ("tunnel.id",) and self._tunnels():
            made.append("the tunnel")
        if self._record[0].startswith("destination") and NAME in instances[COPY].tables:
            made.append("the destination")
        return made

    def _tunnels(self) -> list[str]:
        """Tunnels of the object's table."""
        found = self._fleet.service.emulator.instances[SOURCE].tunnels.values()
        return [tunnel.name for tunnel in found if tunnel.name == NAME]

    def _events(self) -> list[str]:
        """Messages of the events CrdOutdated of the object."""
        events = self._fleet.store.all("Event", "shop")
        return [
            event["message"]
            for event in events
            if event["reason"] == "CrdOutdated" and event["involvedObject"]["name"] == NAME
        ]

    def _stored(self) -> Mapping[str, Any] | None:
        return self._fleet.store.peek(("TablestoreTunnel", "shop", NAME))

    def _status(self) -> Mapping[str, Any]:
        return (self._stored() or {}).get("status") or {}

    def _conditions(self) -> str:
        found = self._status().get("conditions") or ()
        return ", ".join(f"{one['type']}={one['status']} ({one['reason']})" for one in found)

    # What users do

    def _apply(self) -> None:
        """Apply an object with tables of its own, of which the source is empty."""
        fleet = self._fleet
        fleet.service.call(SOURCE, "CreateTable", create_table_request(NAME, max_versions=VERSIONS))
        credentials = {"secretRef": {"name": "ots-credentials"}}
        tunnel = {"name": NAME, "type": fleet.scenario.tunnel}
        place = {"table": NAME, "credentials": credentials}
        fleet.apply(
            NAME,
            source={"endpoint": f"http://{SOURCE}.region", "instance": SOURCE, **place, "tunnel": tunnel},
            sink={"tablestore": {"endpoint": f"http://{COPY}.region", "instance": COPY, **place}},
            replicas=1,
            deletionPolicy="Retain",
        )
