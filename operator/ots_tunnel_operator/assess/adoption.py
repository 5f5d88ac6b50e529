"""Whether an existing tunnel can be used: equal to the wanted one, and no gap behind what was consumed. Pure.

Delete with Retain and a new apply resumes the same tunnel (docs/architecture.md 3.2). A tunnel that was consumed before
is used only if the destination, and the snapshot where Spark copies existing rows, are known to contain what came
before.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from ots_tunnel.model import StreamConfig, TunnelInfo, TunnelType
from ots_tunnel.protocol.movement import has_moved
from ots_tunnel_operator import names
from ots_tunnel_operator.api.tunnel import StreamWindow
from ots_tunnel_operator.assess.creation import creation_text, is_recreated
from ots_tunnel_operator.assess.lag import NANOSECONDS
from ots_tunnel_operator.assess.spark.snapshot import COMPLETED, Snapshot
from ots_tunnel_operator.assess.verdict import was_behind
from ots_tunnel_operator.manifests.spark.snapshot_document import destination_text
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world.absence import Missing
from ots_tunnel_operator.world.service import Table, Tunnel
from ots_tunnel_operator.world.world import World

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def find_adoption_problem(world: World, snapshot: Snapshot) -> Problem | None:
    """A problem of going on with a copy, or resuming a tunnel, that was begun before (docs/architecture.md 3.2)."""
    if (lost := _lost_copy(world, snapshot)) is not None:
        return lost
    if (lost := _lost_base(world)) is not None:
        return lost
    if not isinstance(world.tunnel, Tunnel):
        return None
    spec = world.resource.spec
    moved = has_moved(world.tunnel.description, world.tunnel.checkpoints)
    if not moved:
        return None
    if spec.sink.tablestore is not None and (behind := _behind(world)):
        return Problem(
            Reason.DESTINATION_BEHIND_TUNNEL,
            f"spec.sink.tablestore.table {spec.sink.tablestore.table!r} {behind}, but "
            f"{spec.source.words} was consumed before, so the copy would have holes: "
            f"{world.resource.start_over()}",
            ("SinkReady",),
        )
    if world.resource.uses_spark and not snapshot.is_complete:
        if spec.source.a_tunnel.management_policy == "UseExisting":
            return Problem(
                Reason.SNAPSHOT_IMPOSSIBLE,
                f"spec.engine.baseData Spark: tunnel {spec.source.read_through!r} was consumed before, and a snapshot "
                f"after that would bring deleted rows back: use a new tunnel, or {world.resource.start_over()}",
                ("TunnelReady",),
            )
        return Problem(
            Reason.SNAPSHOT_UNKNOWN,
            f"spec.engine.baseData Spark: tunnel {spec.source.read_through!r} was consumed before and no completed "
            f"snapshot of it is recorded, so rows may be missing: {world.resource.start_over()}",
            ("TunnelReady",),
        )
    return None


def _behind(world: World) -> str:
    """What tells that the destination lacks what was consumed; empty without such a sign."""
    destination = world.destination
    if isinstance(destination, Missing):
        return "is missing"
    if is_recreated(world):
        # rows in it prove nothing: a worker or a task of Spark may have written them since
        return _anew(world)
    # what this object found earlier proves nothing about a table that is new to it
    first_time = world.resource.undecided or was_behind(world.resource)
    return "is empty" if first_time and isinstance(destination, Table) and destination.empty is True else ""


def _anew(world: World) -> str:
    return f"is another one than before: it was dropped, and created again at {creation_text(world.destination)}"


def _lost_base(world: World) -> Problem | None:
    """The table with the existing rows is gone, and the tunnel that a reset has made brings changes alone.

    The tunnel need not have moved: nothing will ever copy these rows again.
    """
    resource, sink = world.resource, world.resource.spec.sink.tablestore
    if not resource.is_without_base or resource.spec.source.kind == "Stream" or sink is None:
        return None
    if not (behind := _behind(world)):
        return None
    return Problem(
        Reason.DESTINATION_BEHIND_TUNNEL,
        f"spec.sink.tablestore.table {sink.table!r} {behind}, but since its last reset this object copies changes "
        f"alone, so existing rows would be missing: {resource.start_over()}",
        ("SinkReady",),
    )


def _lost_copy(world: World, snapshot: Snapshot) -> Problem | None:
    """The table into which Spark copies rows is gone, or another one: it would get only what comes later."""
    sink = world.resource.spec.sink.tablestore
    found = _lost_table(world, snapshot)
    if sink is None or not found:
        return None
    return Problem(
        Reason.DESTINATION_BEHIND_TUNNEL,
        f"spec.sink.tablestore.table {sink.table!r} {found} before, so the copy would have holes: set spec.sink back "
        f"where it was edited, or {world.resource.start_over()}",
        ("SinkReady",),
    )


def _lost_table(world: World, snapshot: Snapshot) -> str:
    """What tells that the destination lacks rows that are recorded as copied; empty without such a sign."""
    found, progress, is_new = world.destination, snapshot.progress, world.resource.undecided
    # a split that is under way has written rows that nothing records yet
    is_begun = snapshot.application is not None or (progress is not None and progress.done > 0)
    has_copied = snapshot.is_complete or is_begun
    if isinstance(found, Missing):
        return "is missing, but Spark has copied existing rows into it" if has_copied else ""
    if not isinstance(found, Table):
        return ""
    # a table that was lost before, or that is new to this object, counts as lost until it has rows; otherwise the
    # rows may just not have been any
    if is_to_copy_again(world, snapshot):
        return ""
    if has_copied and is_recreated(world):
        return f"{_anew(world)}, but Spark has copied existing rows into the former one"
    if has_copied and found.empty is True and (is_new or was_behind(world.resource)):
        return "is empty, but Spark has copied existing rows"
    has_consumed = isinstance(world.tunnel, Tunnel) and has_moved(world.tunnel.description, world.tunnel.checkpoints)
    # a driver that has recorded nothing yet may be running all the same; workers that have consumed since went to the
    # table of the record, which another host leads to as well
    is_same = is_of_destination(world, snapshot, is_by_name=bool(has_consumed))
    if is_new and is_same is False:
        return "is another table than the one that Spark has copied existing rows into"
    return ""


def is_to_copy_again(world: World, snapshot: Snapshot) -> bool:
    """Whether a copy that an earlier object has begun left no row in its table: there were none, or it was emptied.

    Nothing is lost by another copy, as long as nothing was consumed.
    """
    resource, found, progress = world.resource, world.destination, snapshot.progress
    if not resource.undecided or resource.recorded_snapshot.get("state") == COMPLETED:
        return False
    if progress is None or not progress.done or not is_of_destination(world, snapshot):
        return False
    is_empty = isinstance(found, Table) and found.empty is True
    tunnel = world.tunnel
    return is_empty and isinstance(tunnel, Tunnel) and has_moved(tunnel.description, tunnel.checkpoints) is False


def is_of_destination(world: World, snapshot: Snapshot, *, is_by_name: bool = False) -> bool | None:
    """Whether the record of this copy is about the sink's table; None where there is none, or it names no table.

    Args:
        is_by_name: compare instance and table alone: the same ones elsewhere may be the table, moved by its owner.
    """
    sink = world.resource.spec.sink.tablestore
    record = world.child("ConfigMap", names.snapshot_name(world.resource.name))
    if sink is None or record is None or snapshot.progress is None:
        return None
    named = (record["metadata"].get("annotations") or {}).get(names.ANNOTATION_DESTINATION)
    if named is None:
        return None
    wanted = destination_text(sink)
    return bool(_name(named) == _name(wanted) if is_by_name else named == wanted)


def _name(destination: str) -> list[str]:
    """Instance and table of a destination as a record names it."""
    return destination.rsplit("/", 2)[-2:]


def spec_mismatch(world: World, info: TunnelInfo) -> str | None:
    """The difference between an existing tunnel and the wanted one; None where it can be adopted.

    Type, start flag and start offset have to be equal, but the start may lack its fraction of a second; the end offset
    of an existing tunnel may be 0 (docs/architecture.md 3.2).
    """
    wanted = world.resource.wire_type
    if wanted is None:
        return None
    if info.tunnel_type.name != wanted:
        return f"its type is {info.tunnel_type.name}, needed is {wanted}"
    if info.tunnel_type is not TunnelType.Stream:
        return None
    needed, found = wanted_stream(world.resource.stream), info.stream_config
    if found is None:
        return None if not (needed.earliest or needed.start_offset_ns) else "it has no start position"
    # an earlier release cut the fraction of a start off; such a tunnel delivers a little more, never less
    whole = needed.start_offset_ns // NANOSECONDS * NANOSECONDS
    if found.start_offset_ns not in (needed.start_offset_ns, whole):
        return f"it starts at {_moment(found.start_offset_ns)}, needed is {_moment(needed.start_offset_ns)}"
    if not needed.start_offset_ns and found.earliest != needed.earliest:
        return f"it starts from {_flag(found.earliest)}, needed is {_flag(needed.earliest)}"
    if found.end_offset_ns not in (0, needed.end_offset_ns):
        return f"it ends at {_moment(found.end_offset_ns)}, needed is {_moment(needed.end_offset_ns)}"
    return None


def wanted_stream(window: StreamWindow) -> StreamConfig:
    """A stream window as the service has it."""
    return StreamConfig(
        earliest=window.start_from == "Earliest",
        start_offset_ns=_nanoseconds(window.start_time),
        end_offset_ns=_nanoseconds(window.end_time),
    )


def _nanoseconds(time: datetime | None) -> int:
    # exact: to cut a fraction off an end would leave out the changes within
    return 0 if time is None else (time - EPOCH) // timedelta(microseconds=1) * 1000


def _moment(nanoseconds: int) -> str:
    if not nanoseconds:
        return "no given time"
    seconds, rest = divmod(nanoseconds, NANOSECONDS)
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    return timestamp(seconds).replace("Z", f"{fraction}Z")


def _flag(earliest: bool) -> str:
    return "Earliest" if earliest else "Latest"
