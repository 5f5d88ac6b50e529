"""An object with tables of its own, which is applied when the story of the other one is over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ots_tunnel.client.table_calls import RowChange, batch_write_request
from ots_tunnel.model import Action
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel_operator import names
from tests.simulation.fleet.expecting import expect
from tests.simulation.fleet.strangers import OBJECTS, SHOP
from tests.simulation.service import COPY, SOURCE
from tests.support.emulator.emulator_scene import create_table_request
from tests.support.row_changes import VERSIONS

if TYPE_CHECKING:
    from tests.simulation.fleet.fleet import Fleet
    from tests.simulation.fleet.worker_program import WorkerProgram

#: Seconds in which a new object is Ready, or is it again.
READY_SECONDS = 300.0
#: Seconds in which a deleted object is gone; then garbage collection takes what is its own.
DELETING_SECONDS, COLLECTING_SECONDS = 300.0, 30.0


class Newcomer:
    """One such object; its tables and its tunnel have its name.

    Args:
        name: of an object that the story has not had.
    """

    def __init__(self, fleet: Fleet, name: str) -> None:
        self._fleet = fleet
        self._rows = 0
        self.name = name
        self.path = f"{OBJECTS}/{name}"
        self.deployment_path = f"/apis/apps/v1{SHOP}/deployments/{name}"

    # What is

    @property
    def stored(self) -> Mapping[str, Any] | None:
        """The object as the API server has it; it must not be changed."""
        return self._fleet.store.peek(("TablestoreTunnel", "shop", self.name))

    def says(self, kind: str) -> tuple[str, str]:
        """Status and reason of a condition about the spec as it is; empty where there is none."""
        found = self.stored or {}
        for one in (found.get("status") or {}).get("conditions") or ():
            if one["type"] == kind and one.get("observedGeneration") == found["metadata"]["generation"]:
                return one["status"], one["reason"]
        return "", ""

    def is_ready(self) -> bool:
        """Whether it says that it is Ready."""
        return self.says("Ready")[0] == "True"

    def conditions(self) -> str:
        """The conditions that are not False, for the text of a violation."""
        found = ((self.stored or {}).get("status") or {}).get("conditions") or ()
        shown = [f"{one['type']}={one['status']} ({one['reason']})" for one in found if one["status"] != "False"]
        return f": {', '.join(shown)}"

    def deployment(self) -> Mapping[str, Any] | None:
        """What has the name of its Deployment."""
        return self._fleet.store.peek(("Deployment", "shop", self.name))

    def programs(self) -> list[WorkerProgram]:
        """Its workers that run."""
        found = self._fleet.kubelet.processes.values()
        return [one for one in found if getattr(one, "labels", {}).get(names.LABEL_NAME) == self.name]

    def images(self) -> dict[str, str]:
        """Its pods that are not leaving, with their images."""
        pods = [pod for pod in self._fleet.store.all("Pod", "shop") if not pod["metadata"].get("deletionTimestamp")]
        own = [pod for pod in pods if pod["metadata"]["labels"].get(names.LABEL_NAME) == self.name]
        return {pod["metadata"]["name"]: str(pod["spec"]["containers"][0]["image"]) for pod in own}

    # What users do

    def apply(self, **changes: Any) -> None:
        """Apply it on an empty table, with one worker; `changes` are fields of its spec."""
        fleet, name = self._fleet, self.name
        fleet.service.call(SOURCE, "CreateTable", create_table_request(name, max_versions=VERSIONS))
        place = {"table": name, "credentials": {"secretRef": {"name": "ots-credentials"}}}
        source = {"endpoint": f"http://{SOURCE}.region", "instance": SOURCE, **place}
        sink = {"endpoint": f"http://{COPY}.region", "instance": COPY, **place}
        spec = {
            "source": {**source, "tunnel": {"name": name, "type": "Stream"}},
            "sink": {"tablestore": sink},
            "replicas": 1,
            "deletionPolicy": "Delete",
        }
        fleet.apply(name, **(spec | changes))

    def edit(self, spec: Mapping[str, Any]) -> None:
        """Change its spec."""
        self._fleet.story.tell("user", "edits %s of %s", spec, self.name)
        self._fleet.user("PATCH", self.path, {"spec": spec})

    def write(self) -> None:
        """Write a row into the source."""
        self._rows += 1
        row = encode_row((("pk", f"row {self._rows}"),), (Column("n", self._rows),))
        request = batch_write_request(self.name, [RowChange(Action.PUT, row)])
        self._fleet.service.call(SOURCE, "BatchWriteRow", request)

    def copied(self) -> int:
        """Number of rows in the destination."""
        table = self._fleet.service.emulator.instances[COPY].tables.get(self.name)
        return 0 if table is None else len(table)

    async def ready(self, otherwise: str) -> None:
        """Wait until it is Ready."""
        await expect(self._fleet, self.is_ready, READY_SECONDS, "unstable", otherwise, why=self.conditions)

    async def gone(self) -> None:
        """Delete it, and wait until it exists no more."""
        self._fleet.user("DELETE", self.path)
        wrong = f"{self.name} is not released"
        await expect(self._fleet, lambda: self.stored is None, DELETING_SECONDS, "deletion", wrong)
