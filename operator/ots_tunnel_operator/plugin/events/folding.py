"""Events that say the same as one line. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ots_tunnel_operator import KIND
from ots_tunnel_operator.plugin.events.belonging import Event, first_time, last_time

#: Stands for the name of a pod in a message, so that two pods which say the same are told together.
_NAME = "\0"


@dataclass(frozen=True, slots=True)
class Told:
    """What happened, once or again and again.

    Args:
        kind: of what it happened to.
        objects: names of these; one at least.
        count: how often, over all of them.
        message: of all of them, without their names (`text`).
        first, last: Unix seconds.
    """

    kind: str
    objects: frozenset[str]
    is_warning: bool
    reason: str
    message: str
    count: int
    first: float
    last: float

    @property
    def text(self) -> str:
        """The message; with the name of the pod where it is about one alone."""
        return self.message.replace(_NAME, min(self.objects) if len(self.objects) == 1 else "POD")

    @property
    def is_own(self) -> bool:
        """Whether it happened to the object itself, not to a child."""
        return self.kind == KIND


def folded(events: Iterable[Event]) -> list[Told]:
    """The events, in the order in which each happened last; one without a time is left out."""
    found: dict[tuple[str, bool, str, str], Told] = {}
    for event in events:
        told = _told(event)
        if told is None:
            continue
        key = told.kind, told.is_warning, told.reason, told.message
        found[key] = _joined(found[key], told) if key in found else told
    return sorted(found.values(), key=lambda each: (each.last, each.first))


def _told(event: Event) -> Told | None:
    first, last = first_time(event), last_time(event)
    if first is None or last is None:
        return None
    of = event.get("involvedObject") or {}
    name, kind = str(of.get("name")), str(of.get("kind"))
    message = " ".join(str(event.get("message") or "").split())
    return Told(
        kind,
        frozenset({name}),
        event.get("type") == "Warning",
        str(event.get("reason") or "-"),
        message.replace(name, _NAME) if kind == "Pod" else message,
        int((event.get("series") or {}).get("count") or event.get("count") or 1),
        first,
        last,
    )


def _joined(one: Told, other: Told) -> Told:
    return Told(
        one.kind,
        one.objects | other.objects,
        one.is_warning,
        one.reason,
        one.message,
        one.count + other.count,
        min(one.first, other.first),
        max(one.last, other.last),
    )
