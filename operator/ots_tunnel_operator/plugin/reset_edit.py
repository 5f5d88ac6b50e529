"""The edit that asks for a reset: an annotation, which the operator acts on. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ots_tunnel_operator import names
from ots_tunnel_operator.plugin.edits import Edit, Refused
from ots_tunnel_operator.plugin.ott import Ott
from ots_tunnel_operator.plugin.reset_facts import facts_of
from ots_tunnel_operator.reset.forms import Refusal, decide
from ots_tunnel_operator.reset.record import State, used_tokens
from ots_tunnel_operator.reset.request import Request
from ots_tunnel_operator.reset.way_out import pause_command
from ots_tunnel_operator.reset.words import words_of


@dataclass(frozen=True, slots=True)
class Asked:
    """What became of a request by now.

    Args:
        is_over: whether the operator has carried it out or refused it.
        is_done: whether it has carried it out.
        message: the operator's own.
    """

    is_over: bool
    is_done: bool
    message: str


def reset(ott: Ott, request: Request, now: float) -> Edit:
    """The annotation, and what the reset does, writes and loses, as far as the object tells.

    Raises:
        Refused: the operator would refuse it, or take no notice of it.
    """
    place = f"{ott.namespace}/{ott.name}"
    if ott.deleted is not None:
        raise Refused(f"{place} is being deleted: nothing about it can be changed")
    if request.token in used_tokens(ott.status):
        raise Refused(
            f"{place}: token {request.token!r} was used for an earlier request, and each is acted on once: name "
            "another one, or leave --token out; status.reset says what became of the last request"
        )
    if ott.leases:
        raise Refused(
            f"{place}: spec.source: found stream, needed is tunnel: every form of a reset makes another tunnel; to "
            f"start over, delete the object, and apply it again with another spec.source.stream.leaseTable"
        )
    if ott.by_query:
        raise Refused(
            f"{place}: spec.engine.stream: found Spark, needed is Workers: every form of a reset makes another tunnel, "
            f"and beside the files of the former one a query writes nothing; to start over, delete the object, and "
            f"apply it again with another spec.source.tunnel.name and another spec.sink.files.url"
        )
    facts = facts_of(ott, now)
    found = decide(request, facts)
    if isinstance(found, Refusal):
        raise Refused(f"{place}: {found.message}")
    words = words_of(found, facts)
    annotations = {names.ANNOTATION_RESET: request.annotation()}
    return Edit(
        {"metadata": {"uid": ott.uid, "annotations": annotations}},
        (
            f"{place}: reset {request.form}",
            *(f"  {sentence}" for sentence in (words.does, words.writes, words.loses)),
            f"  It is asked for by the annotation {names.ANNOTATION_RESET}: '{request.annotation()}'",
        ),
    )


def refuse_while_consumed(ott: Ott) -> None:
    """Raise where the operator would refuse any reset, because the object is not suspended.

    Raises:
        Refused: it is not suspended, or consumers are still draining.
    """
    if not ott.is_suspended or not ott.condition("Suspended").is_true:
        raise Refused(
            f"{ott.namespace}/{ott.name} is not suspended, or still drains, and is only reset while nothing is "
            f"consumed: {pause_command(ott.namespace, ott.name)}"
        )


def outcome(ott: Ott, token: str) -> Asked:
    """What became of the request of a token."""
    recorded: dict[str, Any] = dict(ott.status.get("reset") or {})
    state = recorded.get("state") if recorded.get("token") == token else None
    return Asked(state in (State.DONE, State.REFUSED), state == State.DONE, str(recorded.get("message") or ""))
