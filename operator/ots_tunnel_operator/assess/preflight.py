"""Problems that prevent progress, in the order in which a person would fix them. Pure.

Nothing is created while there is one (docs/architecture.md 3.2). One that stops the workers is never hidden by one
that does not, and an invalid spec never by one with which the spec is applied: so the order decides about words alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ots_tunnel.protocol.movement import has_moved
from ots_tunnel.tables.compatibility import check_destination
from ots_tunnel_operator.assess.adoption import find_adoption_problem, is_of_destination, spec_mismatch
from ots_tunnel_operator.assess.completion import NOTHING_LOST, was_completed
from ots_tunnel_operator.assess.creation import is_replaced, of_recorded
from ots_tunnel_operator.assess.gap import Gap
from ots_tunnel_operator.assess.gaps import gap_problem
from ots_tunnel_operator.assess.shards.problems import find_faulty_leases, find_lost_stream, leases_in_use
from ots_tunnel_operator.assess.spark.snapshot import Snapshot
from ots_tunnel_operator.assess.verdict import LASTING, may_last, recorded_verdict
from ots_tunnel_operator.assess.worker_pods.final_end import attempt, find_final_end
from ots_tunnel_operator.assess.worker_pods.place import find_changed_place
from ots_tunnel_operator.diagnosis import Place, destination_incompatible, table_not_found
from ots_tunnel_operator.manifests.invalid_spec import find_invalid_spec
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.reset.facts import Found
from ots_tunnel_operator.reset.record import running
from ots_tunnel_operator.world.absence import Failure, Missing
from ots_tunnel_operator.world.resource import Resource
from ots_tunnel_operator.world.service import Table, Tunnel
from ots_tunnel_operator.world.world import World


def find_problem(world: World, snapshot: Snapshot, gaps: Sequence[Gap]) -> Problem | None:
    """The first problem that stops the workers, or that leaves them as they are, otherwise the first; None without any.

    Args:
        world: what was observed.
        snapshot: of this world.
        gaps: of this world.
    """
    found = [problem for problem in _problems(world, snapshot, gaps) if problem is not None]
    # a stable sort: among equals the first one counts
    found.sort(key=lambda problem: (not problem.stops_workers, not problem.leaves_workers))
    return found[0] if found else None


def _problems(world: World, snapshot: Snapshot, gaps: Sequence[Gap]) -> Iterable[Problem | None]:
    yield _copy_circle(world) if _is_circle(world) else _tunnel_in_use(world)
    yield _invalid_spec(world.resource)
    yield find_changed_place(world)
    yield _destination_changed(world)
    yield _tunnel_gone(world)
    yield find_final_end(world)
    yield _lasting_verdict(world)
    for observed in (
        world.source_credentials,
        world.sink_credentials,
        *world.worker_secrets,
        world.source,
        world.destination,
        world.tunnel,
    ):
        if isinstance(observed, Failure):
            yield observed.problem
    if isinstance(world.source, Missing):
        yield table_not_found(Place.of_source(world.resource.spec.source))
    yield _tunnel_problem(world)
    yield find_adoption_problem(of_recorded(world), snapshot)
    yield _destination_problem(world, snapshot)
    # last: one that only the operator has found keeps nothing from being created, and must hide nothing that does
    yield gap_problem(gaps, world.resource)


def _is_circle(world: World) -> bool:
    return world.elder is not None and bool(world.elder.way_back)


def _copy_circle(world: World) -> Problem:
    way = "" if world.elder is None else ", ".join(world.elder.way_back)
    return Problem(
        Reason.COPY_CIRCLE,
        f"spec.sink.tablestore.table: its changes come back to the source by elder objects, {way}, and each would be "
        f"copied for good, because the service does not tell a copied change from a user's: delete one of these "
        f"objects, or give one a delivery.filter that lets no copied change pass",
        ("SinkReady",),
    )


def _tunnel_in_use(world: World) -> Problem | None:
    if world.resource.spec.source.stream is not None:
        return leases_in_use(world)
    if world.elder is None or world.resource.wire_type is None:
        return None
    source = world.resource.spec.source
    return Problem(
        Reason.TUNNEL_IN_USE,
        f"{source.field}: the elder object "
        f"{world.elder.namespace}/{world.elder.name} consumes this tunnel: create another object with another "
        f"tunnel name instead, or delete the elder object with deletionPolicy Retain: then this one takes over "
        f"(with Delete the tunnel would go with it); the deletion of this object leaves the tunnel to the elder one",
        ("TunnelReady",),
    )


def _invalid_spec(resource: Resource) -> Problem | None:
    """What no worker could carry out; it is looked for once in a generation."""
    key = "invalid spec"
    if key not in resource.rendered:
        resource.rendered[key] = find_invalid_spec(resource.object)
    found: Problem | None = resource.rendered[key]
    return found


def _destination_changed(world: World) -> Problem | None:
    """The sink is not the table that the record is about; the API server refuses the edit, unless it is bypassed."""
    record, sink = world.resource.recorded_destination, world.resource.spec.sink.tablestore
    before = record.get("instance"), record.get("table")
    if not all(before) or (sink is not None and before == (sink.instance, sink.table)):
        return None
    found = f"table {sink.table!r} of instance {sink.instance!r}" if sink is not None else "another kind of sink"
    return Problem(
        Reason.DESTINATION_CHANGED,
        f"spec.sink: it names {found}, but this object has copied to table {before[1]!r} of instance {before[0]!r}; "
        f"the other one would get only what comes later: set the field back, or {world.resource.start_over()}",
        ("SinkReady",),
    )


def _tunnel_gone(world: World) -> Problem | None:
    """The recorded tunnel is certainly gone, replaced or expired; no other problem hides that.

    While a reset is under way it is to go, and no problem.
    """
    if world.resource.spec.source.stream is not None:
        return find_lost_stream(world)
    if running(world.resource.status) is not None:
        return None
    spec = world.resource.spec
    recorded = world.resource.recorded_tunnel.get("id")
    field, is_done = spec.source.field, was_completed(world)
    is_missing = isinstance(world.tunnel, Missing) or isinstance(world.source, Missing)
    if recorded and is_missing and world.resource.wire_type is not None:
        # the service deletes the tunnels of a table together with it
        why = f", and neither does table {spec.source.table!r}" if isinstance(world.source, Missing) else ""
        then = "it is never created again silently, because changes would be lost: "
        then += world.resource.start_over(Found.GONE)
        return Problem(
            Reason.TUNNEL_NOT_FOUND,
            f"{field}: tunnel {recorded}, which this object used, no longer exists{why}; "
            f"{NOTHING_LOST if is_done else then}",
            ("TunnelReady",),
        )
    if isinstance(world.tunnel, Failure) and world.tunnel.problem.reason is Reason.TUNNEL_EXPIRED:
        return world.tunnel.problem
    if not isinstance(world.tunnel, Tunnel):
        return None
    info = world.tunnel.description.tunnel
    if is_replaced(world):
        then = f"changes in between are lost: {world.resource.start_over(Found.ANOTHER)}"
        return Problem(
            Reason.TUNNEL_REPLACED,
            f"{field}: the name belongs to tunnel {info.tunnel_id} now, this object used {recorded}; "
            f"{NOTHING_LOST if is_done else then}",
            ("TunnelReady",),
        )
    return tunnel_expired(world) if info.expired else None


def tunnel_expired(world: World) -> Problem:
    """The problem of a tunnel that has expired."""
    resource = world.resource
    then = f"changes it had not delivered are lost: {resource.start_over()}"
    return Problem(
        Reason.TUNNEL_EXPIRED,
        f"{resource.spec.source.field}: the tunnel has expired, {NOTHING_LOST if was_completed(world) else then}",
        ("TunnelReady",),
    )


def _behind(world: World, snapshot: Snapshot) -> Problem | None:
    """A problem of resuming that stops workers, and lasts."""
    found = find_adoption_problem(of_recorded(world), snapshot)
    return found if found is not None and found.stops_workers and may_last(world.resource) else None


def find_verdict(world: World, snapshot: Snapshot) -> Problem | None:
    """The verdict to record, whatever other problem comes first: found in this look, or before and not refuted.

    A lost destination comes first: what refutes it, the recorded tunnel seen beside a table with rows, refutes the
    verdicts on the tunnel as well. The other way round a tunnel that reappears would end it unseen.
    """
    if not may_last(world.resource):
        return None
    found = (
        _lost_destination(world, snapshot),
        _tunnel_gone(world),
        find_final_end(world),
        _lasting_verdict(world),
    )
    return next((problem for problem in found if problem is not None and problem.reason in LASTING), None)


def _lost_destination(world: World, snapshot: Snapshot) -> Problem | None:
    """The verdict that the destination is lost; None without one, or where this look refutes it."""
    found = _behind(world, snapshot), _lasting_verdict(world)
    lost = Reason.DESTINATION_BEHIND_TUNNEL
    return next((problem for problem in found if problem is not None and problem.reason is lost), None)


def _lasting_verdict(world: World) -> Problem | None:
    """The last verdict, while this look could not see what it is about: that nobody answers refutes nothing.

    That of a worker stands for the attempt that it names, whatever this look has seen.
    """
    verdict = recorded_verdict(world.resource.status)
    if verdict is None or not may_last(world.resource):
        return None
    if verdict.reason is not Reason.DESTINATION_BEHIND_TUNNEL and running(world.resource.status) is not None:
        return None
    if verdict.attempt:
        return verdict if verdict.attempt == attempt(world) else None
    is_seen = world.resource.wire_type is None or isinstance(world.tunnel, Tunnel)
    if verdict.reason is Reason.DESTINATION_BEHIND_TUNNEL:
        is_seen = is_seen and not is_replaced(world) and _is_destination_seen(world)
    return None if is_seen else verdict


def _is_destination_seen(world: World) -> bool:
    """Whether this look tells if the destination has rows."""
    found = world.destination
    return isinstance(found, Missing) or (isinstance(found, Table) and found.empty is not None)


def _tunnel_problem(world: World) -> Problem | None:
    """A problem of a tunnel that this object has not used yet."""
    spec = world.resource.spec
    field = spec.source.field
    if spec.source.tunnel is None:
        return find_faulty_leases(world)
    if isinstance(world.tunnel, Missing) and spec.source.tunnel.management_policy == "UseExisting":
        return Problem(
            Reason.TUNNEL_NOT_FOUND,
            f"{field}: no such tunnel on table {spec.source.table!r} and managementPolicy is UseExisting: "
            f"create the tunnel, or use CreateIfMissing",
            ("TunnelReady",),
        )
    if not isinstance(world.tunnel, Tunnel) or world.resource.recorded_tunnel.get("id"):
        return None
    mismatch = spec_mismatch(world, world.tunnel.description.tunnel)
    if mismatch is None:
        return None
    return Problem(
        Reason.SPEC_MISMATCH,
        f"{field}: a tunnel of this name exists, but {mismatch}: create another object with another tunnel "
        f"name instead; delete that tunnel only if nothing needs its checkpoints",
        ("TunnelReady",),
    )


def _destination_problem(world: World, snapshot: Snapshot) -> Problem | None:
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
        is_foreign = world.destination.empty is not True and not world.resource.has_made_destination
        over = world.resource.start_over()
        return destination_incompatible(sink, found, over, is_unused=_is_unused(world), is_foreign=is_foreign)
    return _existing_rows(world, world.destination, field, snapshot)


def _is_unused(world: World) -> bool:
    """Whether nothing can have been copied to the destination: neither Spark nor a worker has begun."""
    if world.resource.recorded_snapshot or world.resource.recorded_destination.get("ensuredTime"):
        return False
    tunnel = world.tunnel
    return isinstance(tunnel, Missing) or (
        isinstance(tunnel, Tunnel) and has_moved(tunnel.description, tunnel.checkpoints) is False
    )


def _existing_rows(world: World, destination: Table, field: str, snapshot: Snapshot) -> Problem | None:
    """Base rows go only into a table that is empty or that this object created, unless Merge says otherwise.

    A snapshot that an object of this name has begun goes on: its record names the table, whose rows are its own.
    """
    resource, spec = world.resource, world.resource.spec
    sink = spec.sink.tablestore
    if sink is None or sink.on_existing == "Merge" or spec.source.kind == "Stream":
        return None
    # a record of another place says nothing about this table, and an intent nothing about its rows: ours come only
    # after the table was recorded
    if resource.is_destination_recorded or destination.empty is not False:
        return None
    if isinstance(world.tunnel, Tunnel) and has_moved(world.tunnel.description, world.tunnel.checkpoints):
        return None
    if is_of_destination(world, snapshot):
        return None
    return Problem(
        Reason.DESTINATION_NOT_EMPTY,
        f"{field}: the table has rows and onExisting is Refuse: empty it, name another table, or use onExisting Merge "
        f"to write over them",
        ("SinkReady",),
    )
