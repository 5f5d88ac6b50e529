"""What a user does once a copy is complete, and what the next run of the command has to do then.

again            the same command: complete at once, and nothing is written
tunnel deleted   refused: the destination holds rows, and nobody knows whose
copy deleted     refused: the tunnel has delivered rows that the destination would lack
copy emptied     refused for the same reason
merge            the tunnel is deleted and --merge given: everything is copied again, on top
other type       refused: a tunnel of the job's name that has no existing rows
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ots_emulator.tables.keys import BOTTOM_KEY, TOP_KEY
from ots_tunnel.errors import ConfigError
from ots_tunnel.model import TunnelType
from ots_tunnel.protocol import table_pb2
from tests.simulation.service import COPY, SOURCE, TABLE, TUNNEL
from tests.support.emulator.emulator_scene import create_table_request
from tests.support.row_changes import VERSIONS

if TYPE_CHECKING:
    from tests.simulation.replicate.region import ReplicateRegion

#: Seconds that a version may be away from its write.
ANY_AGE = 9_223_372_036_854

REFUSED = ("tunnel deleted", "copy deleted", "copy emptied", "other type")


async def happen(region: ReplicateRegion) -> None:
    """Let the user of a story do what its scenario says, and run the command once more."""
    what = region.scenario.epilogue
    if not what:
        return
    region.story.tell("user", "%s", what)
    _prepare(region, what)
    before, rows = region.counts_of_tables(), bool(region.rows_of(SOURCE))
    outcome = await region.run_once(merge=what == "merge")
    if what in REFUSED and (rows or what == "other type"):
        if not isinstance(outcome, ConfigError):
            region.violate("refusal", f"after {what!r} the command is not refused: {outcome!r}")
        elif region.counts_of_tables() != before:
            region.violate("refusal", f"after {what!r} the refused command has changed something: {before}")
    elif what == "again" and region.counts_of_tables() != before:
        region.violate("restless", f"a repeated command has changed something: {before}")
    elif isinstance(outcome, BaseException):
        region.violate("refusal", f"after {what!r} the command ends with {outcome!r}")


def _prepare(region: ReplicateRegion, what: str) -> None:
    emulator = region.service.emulator
    source = emulator.instances[SOURCE]
    if what in ("tunnel deleted", "merge", "other type"):
        del source.tunnels[region.tunnel.id]
    if what == "other type":
        source.create_tunnel(TABLE, TUNNEL, TunnelType.Stream, None, region.service.clock.now())
    if what in ("copy deleted", "copy emptied"):
        region.service.call(COPY, "DeleteTable", table_pb2.DeleteTableRequest(table_name=TABLE))
    if what == "copy emptied":
        region.service.call(COPY, "CreateTable", copy_request())


def copy_request() -> table_pb2.CreateTableRequest:
    """The destination as a user has to create it: it takes versions of any age."""
    request = create_table_request(TABLE, max_versions=VERSIONS)
    request.table_options.deviation_cell_version_in_sec = ANY_AGE
    return request


def rows_of(region: ReplicateRegion, instance: str) -> dict[object, object]:
    """The rows of the table in an instance; none where there is no table."""
    table = region.service.emulator.instances[instance].tables.get(TABLE)
    now_ms = int(region.service.clock.now() * 1000)
    return {} if table is None else dict(table.scan(BOTTOM_KEY, TOP_KEY, now_ms))
