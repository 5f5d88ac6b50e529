"""The forms of a reset: what each needs, from where it reads, and what is lost in between. Pure.

The service has no call that takes a checkpoint back to a time: tokens cannot be made from times, a sequence number may
only grow, and a channel that has ended stays ended (docs/protocol.md 4). So every form is a new tunnel:

    form        needs                                               the new tunnel        what is lost
    NewTunnel   a stream; existing rows copied; destination there   Stream, from its      changes since the last one
                                                                    creation on           that was delivered
    Rewind      the same; a start that the stream still keeps       Stream, from a time   none, where that is before
                                                                    or its oldest change  the last one delivered
    NewBase     existing rows in tunnel.type                        as the spec has it    deletions in between, unless
                                                                                          the destination is empty

All of them need a recorded tunnel or copy, and the tunnel's name: free, or freed by what `existingTunnel` allows.

What was delivered until a time is never guessed: where it is unknown, so is the begin of what is lost. An object with
an end time is Completed only as a proof that every change up to it is delivered. So it gets no reset that loses any.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ots_tunnel_operator.reset.facts import Facts, Found
from ots_tunnel_operator.reset.needs import (
    Need,
    has_base,
    has_base_copied,
    has_destination,
    has_stream,
    name_is_free,
    start_is_kept,
    used,
)
from ots_tunnel_operator.reset.request import Existing, Form, Request
from ots_tunnel_operator.times import parse_time


class Lost(enum.StrEnum):
    """What never reaches the sink."""

    CHANGES = "Changes"
    """Changes of rows."""
    DELETIONS = "Deletions"
    """Deletions of rows: existing rows are copied again, and what no longer exists stays in the destination."""


@dataclass(frozen=True, slots=True)
class Loss:
    """What was committed after `start` and before `end`, Unix seconds, is lost.

    None as start is unknown; as end it is the creation of the new tunnel.
    """

    what: Lost
    start: float | None
    end: float | None


@dataclass(frozen=True, slots=True)
class Start:
    """Where a new Stream tunnel begins: Latest, Earliest, or Timestamp with a time."""

    start_from: str
    start_time: str | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a reset is not carried out, and what to do instead."""

    message: str


@dataclass(frozen=True, slots=True)
class Course:
    """What a reset does.

    Args:
        deletes: whether the recorded tunnel is deleted.
        adopts: whether a tunnel that exists is used.
        start: where the new tunnel begins, without existing rows; None as the spec has it.
        loss: None where nothing is lost.
    """

    request: Request
    deletes: bool
    adopts: bool
    start: Start | None
    loss: Loss | None


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of the table."""

    needs: tuple[Need, ...]
    start: Callable[[Request], Start | None]
    loss: Callable[[Request, Facts], Loss | None]


def decide(request: Request, facts: Facts) -> Course | Refusal:
    """What a request does to an object, or why it is refused; the first need that is not met decides.

    That nothing is consumed is the caller's to check.
    """
    rule = FORMS[request.form]
    for need in (used, *rule.needs, name_is_free, _without_loss):
        if refused := need(request, facts):
            return Refusal(refused)
    deletes = facts.needs_tunnel and facts.found is Found.RECORDED
    adopts = request.existing is Existing.ADOPT
    return Course(request, deletes, adopts, None if adopts else rule.start(request), _loss(request, facts))


def _loss(request: Request, facts: Facts) -> Loss | None:
    return FORMS[request.form].loss(request, facts)


def _without_loss(request: Request, facts: Facts) -> str:
    if facts.end is None or _loss(request, facts) is None:
        return ""
    if facts.kind == "BaseAndStream" and request.form is Form.NEW_BASE:
        instead = "empty the destination first"
    else:
        instead = "name an earlier startTime, or create another object with another tunnel name"
    return (
        "changes would be lost, and an object with an end time is Completed only when every change up to it is "
        f"delivered: {instead}"
    )


def _changes(facts: Facts, end: float | None) -> Loss | None:
    """Changes between what was delivered and a time; None where there are none."""
    until = None if facts.is_destination_lost else facts.delivered_until
    if until is not None and end is not None and end <= until:
        return None
    return Loss(Lost.CHANGES, until, end)


def _after_creation(request: Request, facts: Facts) -> Loss | None:
    return _changes(facts, None)


def _after_rewind(request: Request, facts: Facts) -> Loss | None:
    if request.start_time is not None:
        return _changes(facts, parse_time(request.start_time))
    # what the stream keeps is not known: the last moment is a bound
    return _changes(facts, facts.now if facts.kept_since is None else facts.kept_since)


def _after_base(request: Request, facts: Facts) -> Loss | None:
    if facts.kind == "BaseData" or facts.is_destination_empty:
        return None
    return Loss(Lost.DELETIONS if facts.is_table else Lost.CHANGES, facts.delivered_until, None)


def _rewound(request: Request) -> Start:
    return Start("Earliest") if request.start_time is None else Start("Timestamp", request.start_time)


_FOLLOWS_COPY = (has_stream, has_base_copied, has_destination)

FORMS: Mapping[Form, Rule] = {
    Form.NEW_TUNNEL: Rule(_FOLLOWS_COPY, lambda request: Start("Latest"), _after_creation),
    Form.REWIND: Rule((*_FOLLOWS_COPY, start_is_kept), _rewound, _after_rewind),
    Form.NEW_BASE: Rule((has_base,), lambda request: None, _after_base),
}
