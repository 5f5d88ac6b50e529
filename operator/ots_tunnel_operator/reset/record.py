"""The audit of resets in the status: status.reset is the last request, status.lost what was given up. Pure.

The record of a reset that is under way holds all of its request, so that it goes on whatever becomes of the annotation.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ots_tunnel_operator import names
from ots_tunnel_operator.reset.facts import Facts
from ots_tunnel_operator.reset.forms import Loss, Lost
from ots_tunnel_operator.reset.request import Existing, Form, Request, Unreadable, read_request
from ots_tunnel_operator.times import parse_time, timestamp

#: Longest message of the record, characters.
MAX_MESSAGE = 1024
#: Most tokens of earlier requests that are remembered.
MAX_TOKENS = 32

_FIELDS = (
    *("token", "form", "startTime", "existingTunnel", "state", "requestedTime", "finishedTime"),
    *("formerTunnelId", "deliveredUntil", "tunnelId", "message", "earlierTokens"),
)
_LOST_FIELDS = ("what", "from", "to")


class State(enum.StrEnum):
    """How far a reset is."""

    RUNNING = "Running"
    DONE = "Done"
    REFUSED = "Refused"


@dataclass(frozen=True, slots=True)
class Running:
    """A reset that is under way.

    Args:
        former: id of the tunnel that it replaces; empty without one.
        since: Unix seconds of its begin.
        delivered_until: every change before this time had reached the sink by then, Unix seconds; None is unknown.
    """

    request: Request
    former: str
    since: float
    delivered_until: float | None


def asked(annotations: Mapping[str, str], status: Mapping[str, Any]) -> Request | Unreadable | None:
    """What the annotation asks for; None without one, and where its token was carried out or refused before.

    Not only the last token counts: GitOps may put an earlier annotation back after one that a person wrote.
    """
    text = annotations.get(names.ANNOTATION_RESET)
    if not text:
        return None
    request = read_request(text)
    return None if request.token in used_tokens(status) else request


def used_tokens(status: Mapping[str, Any]) -> tuple[str, ...]:
    """Tokens of the requests that were acted on or refused, the last one at the end."""
    found = status.get("reset") or {}
    earlier, last = tuple(found.get("earlierTokens") or ()), found.get("token")
    return (*earlier, last) if last else earlier


def running(status: Mapping[str, Any]) -> Running | None:
    """The reset that is under way; None without one."""
    found = status.get("reset") or {}
    if found.get("state") != State.RUNNING:
        return None
    existing = Existing(found.get("existingTunnel", Existing.KEEP))
    request = Request(str(found["token"]), Form(found["form"]), found.get("startTime"), existing)
    since = parse_time(found.get("requestedTime")) or 0.0
    return Running(request, str(found.get("formerTunnelId") or ""), since, parse_time(found.get("deliveredUntil")))


def begun(request: Request, facts: Facts, message: str, before: Mapping[str, Any]) -> dict[str, Any]:
    """The record of a reset that begins; as a change that leaves nothing of an earlier one but its token.

    Args:
        before: the status as stored.
    """
    until = facts.delivered_until
    return _anew(request.token, before) | {
        "form": str(request.form),
        "startTime": request.start_time,
        "existingTunnel": str(request.existing),
        "state": str(State.RUNNING),
        "requestedTime": timestamp(facts.now),
        "formerTunnelId": facts.former or None,
        # cut to the second before, so that it stays a bound
        "deliveredUntil": None if until is None else timestamp(until),
        "message": message[:MAX_MESSAGE],
    }


def refused(request: Request | Unreadable, message: str, before: Mapping[str, Any], now: float) -> dict[str, Any]:
    """The record of a refusal; as a change that leaves nothing of an earlier reset but its token.

    Args:
        before: the status as stored.
    """
    form = str(request.form) if isinstance(request, Request) else None
    time = timestamp(now)
    return _anew(request.token, before) | {
        "form": form,
        "state": str(State.REFUSED),
        "requestedTime": time,
        "finishedTime": time,
        "message": message[:MAX_MESSAGE],
    }


def _anew(token: str, before: Mapping[str, Any]) -> dict[str, Any]:
    earlier = used_tokens(before)[-MAX_TOKENS:]
    return dict.fromkeys(_FIELDS) | {"token": token, "earlierTokens": list(earlier) or None}


def done(tunnel_id: str, message: str, now: float) -> dict[str, Any]:
    """The change of the record at the end of a reset."""
    finished = {"state": str(State.DONE), "finishedTime": timestamp(now), "message": message[:MAX_MESSAGE]}
    return finished | ({"tunnelId": tunnel_id} if tunnel_id else {})


def lost_document(loss: Loss | None) -> dict[str, Any] | None:
    """What is lost as status.lost has it; as a change that leaves nothing of an earlier one."""
    if loss is None:
        return None
    times = {"from": loss.start, "to": loss.end}
    found: dict[str, Any] = {key: None if time is None else timestamp(time) for key, time in times.items()}
    return dict.fromkeys(_LOST_FIELDS) | {"what": str(loss.what)} | found


def recorded_loss(status: Mapping[str, Any]) -> Loss | None:
    """What earlier resets have lost; None without a loss."""
    found = status.get("lost") or {}
    if not found.get("what"):
        return None
    return Loss(Lost(found["what"]), parse_time(found.get("from")), parse_time(found.get("to")))
