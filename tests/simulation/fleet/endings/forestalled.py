"""The object was about to create something, and somebody else is faster: what is theirs may not be touched.

create_where_refused   the service refuses to create the destination or the tunnel; somebody else creates it, and the
                       object, whose deletion policy is Delete, is deleted
create_a_child         somebody else creates a child of the object's in the moment of its first apply
edit_the_endpoint      a user edits the endpoint of the destination before the first worker starts; there, the table of
                       that name has a row of somebody else
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ots_emulator.server.faults import FaultRule
from ots_tunnel.client.table_calls import RowChange, batch_write_request
from ots_tunnel.model import Action, StreamConfig, TunnelType
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from tests.simulation.apiserver.api import APPLY, Request
from tests.simulation.apiserver.store import Manifest
from tests.simulation.fleet.endings.epilogues import CONFIG_MAP
from tests.simulation.fleet.expecting import expect
from tests.simulation.service import COPY, KEY, SOURCE, TABLE, TUNNEL
from tests.support.emulator.emulator_scene import create_table_request
from tests.support.row_changes import VERSIONS

if TYPE_CHECKING:
    from tests.simulation.fleet.fleet import Fleet

#: What is refused, and with what: each proves that the call has created nothing.
REFUSALS = (
    ("CreateTable", "OTSQuotaExhausted"),
    ("CreateTunnel", "OTSNoPermissionAccess"),
    ("CreateTable", "OTSNoPermissionAccess"),
)
#: Seconds for which a creation is refused; the longest pause after failed passes is a minute.
REFUSING_SECONDS = 70.0
#: Seconds in which the operator looks at what somebody else has created.
LOOKING_SECONDS = 150.0
#: Difference between a cell's version and now up to which a table takes it, where it is to take every one.
ANY_VERSION_SECONDS = 9_223_372_036_854
#: The only row of a table of somebody else.
THEIRS = "theirs"


class Forestalled:
    """Scenes in which somebody else creates something first."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._is_racing = False
        self._child: Manifest = {}

    async def create_where_refused(self) -> None:
        """In every third story: create what the service has refused to the operator."""
        fleet, seed = self._fleet, self._fleet.scenario.seed
        if seed % 3 != 2:
            return
        operation, code = REFUSALS[seed // 3 % len(REFUSALS)]
        until = fleet.service.clock.now() + REFUSING_SECONDS
        rule = FaultRule(operation=operation, code=code, until=until, access_key_id=KEY.access_key_id)
        fleet.service.emulator.add_fault(rule)
        fleet.epilogues.apply_anew()
        fleet.story.tell("region", "%s is refused", operation)
        await asyncio.sleep(REFUSING_SECONDS - 1)
        fleet.story.tell("user", "creates what was refused")
        create, is_theirs = {
            "CreateTable": (self._create_table, self._is_table_theirs),
            "CreateTunnel": (self._create_tunnel, self._is_tunnel_theirs),
        }[operation]
        create()
        await asyncio.sleep(LOOKING_SECONDS)
        fleet.user("DELETE", fleet.path)
        await fleet.epilogues.gone()
        if not is_theirs():
            fleet.violate("foreign", f"what somebody else has created is changed or deleted: {operation} was refused")
        fleet.epilogues.clear()

    def overtake(self, request: Request) -> None:
        """A write of the operator leaves: somebody else's is there before it."""
        if self._is_racing and request.content == APPLY and request.path == CONFIG_MAP:
            self._is_racing = False
            theirs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "orders-config"}}
            self._child = self._fleet.user("PATCH", CONFIG_MAP, theirs | {"data": {"mine": "yes"}}, APPLY)

    async def create_a_child(self) -> None:
        """In every third story: create the ConfigMap of the workers when the operator's first apply is under way."""
        fleet = self._fleet
        if fleet.scenario.seed % 3 != 1:
            return
        self._is_racing = True
        fleet.epilogues.apply_anew()
        await asyncio.sleep(60)
        fleet.user("DELETE", fleet.path)
        await fleet.epilogues.gone()
        self._is_racing = False
        if self._child and fleet.store.peek(("ConfigMap", "shop", "orders-config")) != self._child:
            fleet.violate("foreign", "a ConfigMap that somebody else created first was changed or deleted")
        elif self._child:
            fleet.user("DELETE", CONFIG_MAP)

    async def edit_the_endpoint(self) -> None:
        """In every third story, if existing rows are to be copied; one service answers behind both endpoints."""
        fleet = self._fleet
        if fleet.scenario.seed % 3 or fleet.scenario.tunnel == "Stream":
            return
        fleet.epilogues.apply_anew(replicas=0)
        wrong = "the destination is not recorded"
        await expect(fleet, self._is_recorded, LOOKING_SECONDS, "unstable", wrong)
        fleet.epilogues.drop_table()
        self._create_table()
        fleet.edit({"sink": {"tablestore": {"endpoint": "http://source.region"}}, "replicas": 1})
        await asyncio.sleep(LOOKING_SECONDS)
        if not self._is_table_theirs():
            fleet.violate("foreign", "the table of somebody else at another endpoint is changed or deleted")
        fleet.user("DELETE", fleet.path)
        await fleet.epilogues.gone()
        fleet.epilogues.clear()

    def _is_recorded(self) -> bool:
        status = (self._fleet.stored() or {}).get("status") or {}
        return bool((status.get("destination") or {}).get("ensuredTime")) and self._fleet.tunnel() is not None

    def _create_table(self) -> None:
        create_their_table(self._fleet)

    def _is_table_theirs(self) -> bool:
        table = self._fleet.service.emulator.instances[COPY].tables.get(TABLE)
        return table is not None and len(table) == 1

    def _create_tunnel(self) -> None:
        fleet = self._fleet
        instance, now = fleet.service.emulator.instances[SOURCE], fleet.service.clock.now()
        instance.create_tunnel(TABLE, TUNNEL, TunnelType[fleet.scenario.tunnel], StreamConfig(), now)

    def _is_tunnel_theirs(self) -> bool:
        return self._fleet.tunnel() is not None


def create_their_table(fleet: Fleet, name: str = TABLE) -> None:
    """Create a table of a destination's name with a row of somebody else."""
    create_fitting_table(fleet, name)
    row = RowChange(Action.PUT, encode_row((("pk", THEIRS),), (Column("n", 1),)))
    fleet.service.call(COPY, "BatchWriteRow", batch_write_request(name, [row]))


def create_fitting_table(fleet: Fleet, name: str = TABLE) -> None:
    """Create a table of a destination's name without a row."""
    request = create_table_request(name, max_versions=VERSIONS)
    # it fits: nothing but what it holds speaks against it
    request.table_options.deviation_cell_version_in_sec = ANY_VERSION_SECONDS
    fleet.service.call(COPY, "CreateTable", request)
