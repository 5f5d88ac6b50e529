"""Problems of a stream that is read without a tunnel, and of its table of leases. Pure.

    the table is gone                   and its stream with it: a new table has another one; the workers are stopped
    stream off                          nothing can be read; the workers are stopped
    another stream has come             what was not read of the former one is lost; the workers are stopped
    the table is none for leases        its key differs; the workers are stopped
    a setting of the table              a time to live, or no updates: no worker starts; those that run are left alone,
                                        because leases that are renewed do not expire
    rows of the table are no leases     they are left out; the workers run
    an elder object shares the leases   both would get a part of the changes; the workers are stopped

A stream is never switched on by the operator: that is a setting of the table, with a retention that its owner chooses.
"""

from __future__ import annotations

from ots_tunnel_operator.assess.completion import NOTHING_LOST, was_completed
from ots_tunnel_operator.assess.creation import is_replaced
from ots_tunnel_operator.diagnosis import shortened
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.world.absence import Missing
from ots_tunnel_operator.world.resource import Resource
from ots_tunnel_operator.world.service import Tunnel
from ots_tunnel_operator.world.world import World

#: The condition that is about the stream, as it is about a tunnel.
_AFFECTED = ("TunnelReady",)


def find_lost_stream(world: World) -> Problem | None:
    """The problem of a stream that is off, or that is not the recorded one any more; None while it is there."""
    source, recorded = world.resource.spec.source, world.resource.recorded_tunnel.get("id")
    field = f"spec.source.table {source.table!r}"
    is_done = was_completed(world)
    if isinstance(world.source, Missing) and recorded:
        gone = (
            f"{field}: no such table in instance {source.instance!r}, with its stream {recorded} that this object read"
        )
        text = f"changes that were not read yet are lost: create the table; then, {_apply_again(world)}"
        return Problem(Reason.NO_STREAM, f"{gone}; {NOTHING_LOST if is_done else text}", _AFFECTED)
    if isinstance(world.tunnel, Missing):
        lost = (
            f"; changes that were not read yet are lost, and a new stream does not have them: {_apply_again(world)}"
            if recorded
            else ""
        )
        off = f", so that there is no change to read: switch it on, with a retention of 1 to 168 hours{lost}"
        then = f"; {NOTHING_LOST}" if is_done else off
        return Problem(Reason.NO_STREAM, f"{field}: its stream is switched off{then}", _AFFECTED)
    if isinstance(world.tunnel, Tunnel) and is_replaced(world):
        found = world.tunnel.description.tunnel.tunnel_id
        lost = f"nothing more can be read of that one, and changes of in between are lost: {_apply_again(world)}"
        return Problem(
            Reason.STREAM_REPLACED,
            f"{field}: its stream was switched off and on again: found {found}, this object read {recorded}; "
            f"{NOTHING_LOST if is_done else lost}",
            _AFFECTED,
        )
    return None


def _apply_again(world: World) -> str:
    name, namespace, stream = world.resource.name, world.resource.namespace, world.resource.spec.source.stream
    start = ""
    if stream is not None and stream.start_from == "Latest":
        start = " and with startFrom Earliest, because with Latest what the new stream has by then would be left out"
    return (
        f"to follow the new stream, delete this object by `kubectl delete ott {name} -n {namespace}` and apply it "
        f"again with onPossibleGap Continue{start}; only a copy of the table has what is lost"
    )


def find_faulty_leases(world: World) -> Problem | None:
    """A setting of the table of leases with which no worker starts, or rows that are no leases; None without any."""
    if not isinstance(world.tunnel, Tunnel):
        return None
    if world.tunnel.unfit:
        field = world.resource.spec.source.field
        return Problem(
            Reason.LEASE_TABLE_UNUSABLE,
            f"{field}: a setting of the table does not fit ({shortened(world.tunnel.unfit)}), and no worker starts: "
            f"correct it in the service's console or by its SDK",
            _AFFECTED,
        )
    if not world.tunnel.faults:
        return None
    return lease_table_unusable(world.resource, world.tunnel.faults[0])


def lease_table_unusable(resource: Resource, found: str, *, stops: bool = False) -> Problem:
    """The problem of a table that something else uses.

    Args:
        found: what was found there, and what is allowed.
        stops: whether no worker can use the table.
    """
    source = resource.spec.source
    remedy = (
        "create another object that names another table, which the first worker creates"
        if stops
        else "find out which program writes there; workers that run leave the row out, and none can start"
    )
    return Problem(
        Reason.LEASE_TABLE_UNUSABLE,
        f"{source.field}: something else uses this table ({shortened(found)}): {remedy}",
        _AFFECTED,
        stops=stops,
    )


def leases_in_use(world: World) -> Problem | None:
    """The problem of an object whose leases an elder one shares; None without one."""
    if world.elder is None:
        return None
    return Problem(
        Reason.LEASE_TABLE_IN_USE,
        f"{world.resource.spec.source.field}: the elder object {world.elder.namespace}/{world.elder.name} shares the "
        f"shards of the table by the same leases, so that each would get a part of the changes: create another object "
        f"with another table of leases instead, or delete the elder one: then this one takes over",
        _AFFECTED,
    )
