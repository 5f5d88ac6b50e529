"""Problems that prevent progress, in the order in which a person would fix them. Pure.

Nothing is created while there is one (docs/architecture.md 3.2).
"""

from __future__ import annotations

from collections.abc import Iterable

from ots_tunnel.model import TunnelInfo, TunnelType
from ots_tunnel.tables.compatibility import check_destination
from ots_tunnel_operator.api.object import StreamWindow
from ots_tunnel_operator.assess.lag import NANOSECONDS, has_moved
from ots_tunnel_operator.assess.snapshot import Snapshot
from ots_tunnel_operator.diagnosis import RESET_HINT, Place, destination_incompatible, table_not_found
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world import Failure, Missing, Table, Tunnel, World


def find_problem(world: World, snapshot: Snapshot) -> Problem | None:
    """The first problem; None without one.

    Args:
        world: what was observed.
        snapshot: of this world.
    """
    for problem in _problems(world, snapshot):
        if problem is not None:
            return problem
    return None


def _problems(world: World, snapshot: Snapshot) -> Iterable[Problem | None]:
    yield _competition(world)
    for observed in (
        world.source_credentials,
        world.sink_credentials,
        world.source,
        world.destination,
        world.tunnel,
    ):
        if isinstance(observed, Failure):
            yield observed.problem
    if isinstance(world.source, Missing):
        yield table_not_found(Place.of_source(world.resource.spec.source))
    yield _tunnel(world)
    yield _adoption(world, snapshot)
    yield _destination(world)


def _competition(world: World) -> Problem | None:
    if world.elder is None or world.resource.spec.wire_type is None:
        return None
    source = world.resource.spec.source
    return Problem(
        Reason.TUNNEL_IN_USE,
        f"spec.source.tunnel.name {source.tunnel.name!r}: the elder object "
        f"{world.elder.namespace}/{world.elder.name} consumes this tunnel: give this object another tunnel name, or "
        f"delete the elder object: then this one takes over",
        ("TunnelReady",),
    )


def _tunnel(world: World) -> Problem | None:
    """A problem of the existing tunnel, or of its absence."""
    spec = world.resource.spec
    recorded = world.resource.recorded_tunnel.get("id")
    name = spec.source.tunnel.name
    field = f"spec.source.tunnel.name {name!r}"
    if isinstance(world.tunnel, Missing):
        if recorded:
            return Problem(
                Reason.TUNNEL_NOT_FOUND,
                f"{field}: tunnel {recorded}, which this object used, no longer exists; it is "
                f"never created again silently, because changes would be lost: {RESET_HINT}",
                ("TunnelReady",),
            )
        if spec.source.tunnel.management_policy == "UseExisting":
            return Problem(
                Reason.TUNNEL_NOT_FOUND,
                f"{field}: no such tunnel on table {spec.source.table!r} and managementPolicy is UseExisting: "
                f"create the tunnel, or use CreateIfMissing",
                ("TunnelReady",),
            )
        return None
    if not isinstance(world.tunnel, Tunnel):
        return None
    info = world.tunnel.description.tunnel
    if recorded and info.tunnel_id != recorded:
        return Problem(
            Reason.TUNNEL_REPLACED,
            f"{field}: the name belongs to tunnel {info.tunnel_id} now, this object used {recorded}; changes in "
            f"between are lost: {RESET_HINT}",
            ("TunnelReady",),
        )
    if info.expired:
        return Problem(
            Reason.TUNNEL_EXPIRED,
            f"{field}: the tunnel has expired, changes it had not delivered are lost: {RESET_HINT}",
            ("TunnelReady",),
        )
    mismatch = None if recorded else spec_mismatch(world, info)
    if mismatch is None:
        return None
    return Problem(
        Reason.SPEC_MISMATCH,
        f"{field}: a tunnel of this name exists, but {mismatch}: use another name, or delete that tunnel",
        ("TunnelReady",),
    )


def spec_mismatch(world: World, info: TunnelInfo) -> str | None:
    """The difference between an existing tunnel and the wanted one; None where it can be adopted.

    Type, start flag and start offset have to be equal; the end offset of an existing tunnel may be 0
    (docs/architecture.md 3.2).
    """
    spec = world.resource.spec
    wanted = spec.wire_type
    if wanted is None:
        return None
    if info.tunnel_type.name != wanted:
        return f"its type is {info.tunnel_type.name}, needed is {wanted}"
    if info.tunnel_type is not TunnelType.Stream:
        return None
    window = spec.source.tunnel.stream or StreamWindow()
    earliest, start_ns, end_ns = start_of(window)
    found = info.stream_config
    if found is None:
        return None if not (earliest or start_ns) else "it has no start position"
    if found.start_offset_ns != start_ns:
        return f"it starts at {_moment(found.start_offset_ns)}, needed is {_moment(start_ns)}"
    if not start_ns and found.earliest != earliest:
        return f"it starts from {_flag(found.earliest)}, needed is {_flag(earliest)}"
    if found.end_offset_ns not in (0, end_ns):
        return f"it ends at {_moment(found.end_offset_ns)}, needed is {_moment(end_ns)}"
    return None


def start_of(window: StreamWindow) -> tuple[bool, int, int]:
    """(earliest, start offset, end offset) of a stream window; offsets in Unix nanoseconds, 0 is unset."""
    start = window.start_time
    end = window.end_time
    return (
        window.start_from == "Earliest",
        int(start.timestamp()) * NANOSECONDS if start else 0,
        int(end.timestamp()) * NANOSECONDS if end else 0,
    )


def _moment(nanoseconds: int) -> str:
    return timestamp(nanoseconds / NANOSECONDS) if nanoseconds else "no given time"


def _flag(earliest: bool) -> str:
    return "Earliest" if earliest else "Latest"


def _adoption(world: World, snapshot: Snapshot) -> Problem | None:
    """A problem of resuming a tunnel that was consumed before (docs/architecture.md 3.2)."""
    if not isinstance(world.tunnel, Tunnel):
        return None
    spec = world.resource.spec
    first_time = not world.resource.recorded_tunnel.get("id")
    moved = has_moved(world.tunnel.description, world.tunnel.checkpoints)
    if not moved:
        return None
    destination = world.destination
    behind = isinstance(destination, Missing) or (
        first_time and isinstance(destination, Table) and destination.empty is True
    )
    if spec.sink.tablestore is not None and behind:
        found = "is missing" if isinstance(destination, Missing) else "is empty"
        return Problem(
            Reason.DESTINATION_BEHIND_TUNNEL,
            f"spec.sink.tablestore.table {spec.sink.tablestore.table!r} {found}, but tunnel "
            f"{spec.source.tunnel.name!r} was consumed before, so the copy would have holes: {RESET_HINT}",
            ("SinkReady",),
        )
    if spec.uses_spark and not snapshot.is_complete:
        if spec.source.tunnel.management_policy == "UseExisting":
            return Problem(
                Reason.SNAPSHOT_IMPOSSIBLE,
                f"spec.engine.baseData Spark: tunnel {spec.source.tunnel.name!r} was consumed before, and a snapshot "
                f"after that would bring deleted rows back: use a new tunnel, or {RESET_HINT}",
                ("TunnelReady",),
            )
        return Problem(
            Reason.SNAPSHOT_UNKNOWN,
            f"spec.engine.baseData Spark: tunnel {spec.source.tunnel.name!r} was consumed before and no completed "
            f"snapshot of it is recorded, so rows may be missing: {RESET_HINT}",
            ("TunnelReady",),
        )
    return None


def _destination(world: World) -> Problem | None:
    """A problem of the destination."""
    sink = world.resource.spec.sink.tablestore
    if sink is None:
        return None
    field = f"spec.sink.tablestore.table {sink.table!r}"
    if isinstance(world.destination, Missing):
        if sink.create_table == "IfMissing":
            return None
        return Problem(
            Reason.DESTINATION_NOT_FOUND,
            f"{field}: no such table in instance {sink.instance!r} and createTable is Never: "
            f"create it, or use createTable IfMissing",
            ("SinkReady",),
        )
    if not isinstance(world.destination, Table) or not isinstance(world.source, Table):
        return None
    found = check_destination(world.source.schema, world.destination.schema)
    if found:
        return destination_incompatible(sink.table, found)
    return _existing_rows(world, world.destination, field)


def _existing_rows(world: World, destination: Table, field: str) -> Problem | None:
    """Base rows go only into a table that is empty or that this object created, unless Merge says otherwise."""
    spec, recorded = world.resource.spec, world.resource.recorded_destination
    sink = spec.sink.tablestore
    if sink is None or sink.on_existing == "Merge" or spec.source.tunnel.type == "Stream":
        return None
    if recorded.get("ensuredTime") or recorded.get("createIntentTime") or destination.empty is not False:
        return None
    if isinstance(world.tunnel, Tunnel) and has_moved(world.tunnel.description, world.tunnel.checkpoints):
        return None
    return Problem(
        Reason.DESTINATION_NOT_EMPTY,
        f"{field}: the table has rows and onExisting is Refuse: empty it, name another table, or use onExisting Merge "
        f"to write over them",
        ("SinkReady",),
    )
