"""A new release of the operator, with other workers, meets six objects, in every eighth story.

budget     never more than ROLLOUT_BUDGET objects replace their workers at once, an edited one apart
edit       an object that a user edits meanwhile is carried out at once
pinned     the workers of an object that names its own image are not replaced
served     an object that waits keeps its workers, and is Ready
goes on    an operator that is killed in between is followed by one that ends it
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ots_tunnel_operator import names
from tests.simulation.fleet.claims import condition
from tests.simulation.fleet.expecting import expect
from tests.simulation.fleet.operator_process import ROLLOUT_BUDGET
from tests.simulation.service import COPY, SOURCE
from tests.support.emulator.emulator_scene import create_table_request
from tests.support.row_changes import VERSIONS

if TYPE_CHECKING:
    from tests.simulation.fleet.fleet import Fleet

OBJECTS = "/apis/ots-tunnel.dev/v1alpha1/namespaces/shop/tablestoretunnels"
NAMES = tuple(f"fleet{number}" for number in range(6))
EDITED, PINNED = NAMES[0], NAMES[1]
RELEASE = "worker:2"
#: Seconds in which six objects become ready.
STARTING_SECONDS = 300.0
#: Seconds after which a worker counts as available: three heartbeats.
AVAILABLE_SECONDS = 40.0
#: Seconds in which all of them have rolled: in each turn two, with three heartbeats of ten seconds and a poll.
ROLLING_SECONDS = 900.0
#: Seconds after which an edit is carried out, also by an operator that has just started.
EDIT_SECONDS = 60.0
#: Seconds between two looks.
LOOK_SECONDS = 0.2
#: Seconds in which they are gone.
DELETING_SECONDS = 300.0


class Upgraded:
    """Upgrades the operator, and judges who rolls."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._chance = random.Random(f"upgraded:{fleet.scenario.seed}")
        self._edited: float | None = None
        self._before: dict[str, set[str]] = {}
        self._is_done = False

    async def happen(self) -> None:
        """Upgrade it, by the seed."""
        fleet, scenario = self._fleet, self._fleet.scenario
        if scenario.prefix != "fleet:" or scenario.seed % 8 != 2:
            return
        fleet.epilogues.clear()
        for name in NAMES:
            fleet.service.call(SOURCE, "CreateTable", create_table_request(name, max_versions=VERSIONS))
            self._apply(name)
        await expect(fleet, self._are_ready, STARTING_SECONDS, "unstable", "six objects are not ready")
        # a worker that is not available yet would be replaced at once
        await asyncio.sleep(AVAILABLE_SECONDS)
        self._before = {name: set(self._pods(name)) for name in NAMES}
        fleet.story.tell("user", "upgrades the operator to a release with %s", RELEASE)
        fleet.operator.worker_image = RELEASE
        fleet.operator.kill(5.0)
        fleet.loop.after(self._chance.uniform(20, 60), self._edit)
        for at in (self._chance.uniform(30, 90), self._chance.uniform(90, 200)):
            fleet.loop.after(at, self._kill)
        wrong = "not every object has the workers of the new release"
        await expect(fleet, self._is_over, ROLLING_SECONDS, "unstable", wrong, every=LOOK_SECONDS)
        self._is_done = True
        await self._delete()

    def _kill(self) -> None:
        if not self._is_done:
            self._fleet.operator.kill(5.0)

    def _is_over(self) -> bool:
        """Judge who rolls; whether everybody has."""
        fleet = self._fleet
        rolling = [name for name in NAMES if name != EDITED and self._rolls(name)]
        if len(rolling) > ROLLOUT_BUDGET:
            fleet.violate("budget", f"{', '.join(rolling)} roll at once")
        if set(self._pods(PINNED)) != self._before[PINNED]:
            fleet.violate("pinned", "the workers of an object that names its own image were replaced")
        if self._edited is not None and fleet.loop.now > self._edited + EDIT_SECONDS and not self._has(EDITED):
            fleet.violate("edit", "an edit waits for its turn")
        for name in NAMES:
            if self._waits(name) and not self._is_ready(name):
                fleet.violate("served", f"{name} waits for its turn and is not Ready")
        return all(self._has(name) and not self._rolls(name) for name in NAMES if name != PINNED) and self._are_ready()

    def _edit(self) -> None:
        self._edited = self._fleet.loop.now
        self._fleet.user("PATCH", f"{OBJECTS}/{EDITED}", {"spec": {"workers": {"lanesPerChannel": 3}}})

    async def _delete(self) -> None:
        fleet = self._fleet
        for name in NAMES:
            fleet.user("DELETE", f"{OBJECTS}/{name}")
        wrong = "six objects are not released"
        await expect(fleet, lambda: not any(map(self._stored, NAMES)), DELETING_SECONDS, "deletion", wrong)
        # garbage collection takes their children
        await asyncio.sleep(30)
        fleet.operator.worker_image = "worker:1"
        fleet.operator.kill(2.0)

    # What is

    def _stored(self, name: str) -> Mapping[str, Any] | None:
        return self._fleet.store.peek(("TablestoreTunnel", "shop", name))

    def _is_ready(self, name: str) -> bool:
        return condition((self._stored(name) or {}).get("status") or {}, "Ready") == "True"

    def _are_ready(self) -> bool:
        return all(self._is_ready(name) for name in NAMES)

    def _waits(self, name: str) -> bool:
        conditions = ((self._stored(name) or {}).get("status") or {}).get("conditions") or ()
        return any((one["type"], one["reason"]) == ("Progressing", "RolloutWaiting") for one in conditions)

    def _has(self, name: str) -> bool:
        """Whether the Deployment is of the new release."""
        found = self._fleet.store.peek(("Deployment", "shop", name))
        return found is not None and _image(found["spec"]["template"]) == RELEASE

    def _rolls(self, name: str) -> bool:
        """Whether the Deployment is of the new release, and a pod of the former one stays."""
        return self._has(name) and any(image != RELEASE for image in self._pods(name).values())

    def _pods(self, name: str) -> dict[str, str]:
        """The pods of an object that are not leaving, with their images."""
        return {pod["metadata"]["name"]: _image(pod) for pod in self._living(name)}

    def _living(self, name: str) -> Iterator[Mapping[str, Any]]:
        for pod in self._fleet.store.all("Pod", "shop"):
            metadata = pod["metadata"]
            if metadata["labels"].get(names.LABEL_NAME) == name and not metadata.get("deletionTimestamp"):
                yield pod

    # What users do

    def _apply(self, name: str) -> None:
        """Apply an object with an empty table of its own."""
        credentials = {"secretRef": {"name": "ots-credentials"}}
        source = {"endpoint": f"http://{SOURCE}.region", "instance": SOURCE, "table": name, "credentials": credentials}
        sink = {"endpoint": f"http://{COPY}.region", "instance": COPY, "table": name, "credentials": credentials}
        workers = {"heartbeatIntervalSeconds": 10, "heartbeatTimeoutSeconds": 60}
        self._fleet.apply(
            name,
            source=source | {"tunnel": {"name": name, "type": "Stream"}},
            sink={"tablestore": sink},
            replicas=1,
            workers=workers | ({"image": "mine:1"} if name == PINNED else {}),
            deletionPolicy="Delete",
        )


def _image(of: Mapping[str, Any]) -> str:
    return str(of["spec"]["containers"][0]["image"])
