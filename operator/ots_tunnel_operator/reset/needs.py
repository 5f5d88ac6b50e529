"""What the forms of a reset need. Pure: each tells why the form is not possible, and what to do; empty where it is."""

from __future__ import annotations

from collections.abc import Callable

from ots_tunnel_operator.reset.facts import Facts, Found
from ots_tunnel_operator.reset.request import Existing, Request
from ots_tunnel_operator.times import parse_time, timestamp

Need = Callable[[Request, Facts], str]

#: Seconds after the oldest kept change from which on the service takes a start (docs/protocol.md 4.2).
START_MARGIN = 300.0


def used(request: Request, facts: Facts) -> str:
    """Something is recorded."""
    return "" if facts.is_used else "nothing is recorded that could be reset: the object has used no tunnel yet"


def has_stream(request: Request, facts: Facts) -> str:
    """There are changes to begin with."""
    if facts.kind != "BaseData":
        return ""
    return f"form {request.form} begins with changes, which tunnel.type BaseData does not have: use NewBase"


def has_base(request: Request, facts: Facts) -> str:
    """There are existing rows to begin with."""
    if facts.kind != "Stream":
        return ""
    return "form NewBase begins with existing rows, which tunnel.type Stream does not have: use NewTunnel or Rewind"


def has_base_copied(request: Request, facts: Facts) -> str:
    """Every existing row was copied before."""
    if facts.base_copied:
        return ""
    known = "not every existing row was copied" if facts.base_copied is False else _UNKNOWN_BASE
    return f"{known}, and form {request.form} does not copy them, so that rows would be missing: use NewBase"


_UNKNOWN_BASE = "it is not known whether every existing row was copied"


def has_destination(request: Request, facts: Facts) -> str:
    """The destination holds what was copied before."""
    # of an object that only follows changes no existing row was ever wanted
    if not facts.is_destination_lost or facts.kind == "Stream":
        return ""
    return f"the rows in the destination are lost, and form {request.form} does not copy them again: use NewBase"


def start_is_kept(request: Request, facts: Facts) -> str:
    """The stream still keeps the start."""
    if request.start_time is None:
        return ""
    start = parse_time(request.start_time) or 0.0
    if start >= facts.now:
        return f"startTime {request.start_time} is not in the past: name a time before {timestamp(facts.now)}"
    if facts.end is not None and start >= facts.end:
        return f"startTime {request.start_time} is not before the end time {timestamp(facts.end)}: name an earlier one"
    if facts.kept_since is None:
        return "it is not known since when the stream keeps changes: leave startTime out to begin with the oldest one"
    if start < facts.kept_since + START_MARGIN:
        first = timestamp(facts.kept_since + START_MARGIN)
        return (
            f"startTime {request.start_time}: the stream may not keep changes that old: name a time after {first}, or "
            "leave startTime out to begin with the oldest change that it keeps"
        )
    return ""


def name_is_free(request: Request, facts: Facts) -> str:
    """The tunnel's name can be used."""
    if not facts.needs_tunnel:
        return ""
    match facts.found:
        case Found.GONE:
            return _name_free(request, facts)
        case Found.RECORDED:
            return _name_recorded(request, facts)
        case Found.ANOTHER:
            return _name_taken(request, facts)


def _name_free(request: Request, facts: Facts) -> str:
    if facts.creates and request.existing is not Existing.ADOPT:
        return ""
    if facts.creates:
        return f"existingTunnel Adopt: there is no tunnel {facts.tunnel!r}: leave it out, and one is created"
    return (
        f"managementPolicy is UseExisting and there is no tunnel {facts.tunnel!r}: create it, then ask with form "
        "NewTunnel and existingTunnel Adopt"
    )


def _name_recorded(request: Request, facts: Facts) -> str:
    if request.existing is Existing.ADOPT:
        return f"existingTunnel Adopt: tunnel {facts.former} is the one in use: to go on with it, resume the object"
    if not facts.is_ours:
        return (
            f"tunnel {facts.former} was not created by the operator for this object, which therefore never deletes "
            f"it: if nobody else needs it, delete it by `{by_hand(facts)}`, and ask again with another token"
        )
    if request.existing is Existing.DELETE:
        return ""
    return (
        f"tunnel {facts.former} still has the name {facts.tunnel!r}: to have it deleted with its checkpoints, ask with "
        "existingTunnel Delete (--delete-tunnel)"
    )


def _name_taken(request: Request, facts: Facts) -> str:
    if request.existing is not Existing.ADOPT:
        return (
            f"the name {facts.tunnel!r} belongs to a tunnel that is not this object's, and is never deleted by it: use "
            f"it with form NewTunnel and existingTunnel Adopt (--adopt-tunnel), or, if nobody else needs it, delete "
            f"it by `{by_hand(facts)}`"
        )
    return f"existingTunnel Adopt: the tunnel does not fit the spec: {facts.mismatch}" if facts.mismatch else ""


def by_hand(facts: Facts) -> str:
    """The command that deletes the tunnel of the name."""
    place = f"{facts.namespace}/{facts.name}"
    return f"ots-tunnel tunnel delete {facts.table} {facts.tunnel} --from-object {place}"
