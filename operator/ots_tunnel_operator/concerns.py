"""Which objects a change concerns: an event wakes them and no others. Pure.

An object is concerned by itself, by the Secrets that its spec names, by the other objects on its tunnel, and by those
that copy to the table that it copies from.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ots_tunnel_operator.api.identity import TunnelIdentity, identity_of
from ots_tunnel_operator.api.secrets import SECRET_REFERENCES
from ots_tunnel_operator.routes import Place, Route, Routes, leads, route_of
from ots_tunnel_operator.times import parse_time
from ots_tunnel_operator.world.resource import Resource
from ots_tunnel_operator.world.world import Competitor


@dataclass(frozen=True, slots=True)
class Concern:
    """What one object depends on."""

    competitor: Competitor
    identity: TunnelIdentity | None
    route: Route | None
    """Of a copy of changes from table to table."""
    leads: bool
    """Whether it leads changes on, by that route: not of a copy that is suspended, completed or released."""
    secrets: frozenset[Place]
    wakes: tuple[object, ...]
    """The parts of the object whose change wakes it; the operator itself writes the rest."""


class Concerns:
    """Every object, by tunnel, by table and by Secret; built from the bodies of a watch."""

    def __init__(self) -> None:
        self._objects: dict[Place, Concern] = {}
        self._rivals: defaultdict[TunnelIdentity, dict[Place, Competitor]] = defaultdict(dict)
        self._routes = Routes()
        self._users: defaultdict[Place, set[Place]] = defaultdict(set)

    def __len__(self) -> int:
        return len(self._objects)

    def changed(self, body: Mapping[str, Any]) -> set[Place]:
        """Take over an object, and return whom the change concerns; one of its status may end what it leads on."""
        place = _place(body)
        before = self._objects.get(place)
        after = _concern(body, before)
        if before == after:
            return set()
        concerned = {place}
        if before is not None and before.identity != after.identity:
            concerned |= self._sharers(before.identity)
        if before is not None and (before.route, before.leads) != (after.route, after.leads):
            concerned |= self._led_on(before) | self._led_on(after)
        self._drop(place)
        self._objects[place] = after
        if after.route is not None and after.leads:
            self._routes.put(place, after.competitor, after.route)
        if after.identity is not None:
            self._rivals[after.identity][place] = after.competitor
        for secret in after.secrets:
            self._users[secret].add(place)
        return concerned

    def deleted(self, body: Mapping[str, Any]) -> set[Place]:
        """Drop an object, and return the objects that may have waited for its end."""
        place = _place(body)
        before = self._objects.get(place)
        if before is None or before.competitor.uid != body["metadata"].get("uid"):
            return set()
        self._drop(place)
        return self._sharers(before.identity) | self._led_on(before)

    def rivals(self, identity: TunnelIdentity | None) -> tuple[Competitor, ...]:
        """The objects on a tunnel."""
        return () if identity is None else tuple(self._rivals.get(identity, {}).values())

    def elder(self, body: Mapping[str, Any]) -> Competitor | None:
        """The eldest other object on the tunnel of an object whose spec was not validated; None where it is the one."""
        found = _concern(body)
        return eldest(found.competitor, self.rivals(found.identity))

    def way_back(self, place: Place, *, idle: bool = False) -> tuple[Competitor, ...]:
        """The elder objects that would lead an object's copy back to its source, in the order of the way.

        Args:
            place: of the object.
            idle: ask also of one that copies nothing now, as of one that is to be reset before it goes on.
        """
        found = self._objects.get(place)
        if found is None or found.route is None or not (found.leads or idle):
            return ()
        return self._routes.way_back(found.route, found.competitor)

    def users(self, namespace: str, secret: str) -> set[Place]:
        """The objects whose spec names a Secret."""
        return set(self._users.get((namespace, secret), ()))

    def places(self, namespace: str = "") -> set[Place]:
        """All objects, or those of one namespace."""
        return {place for place in self._objects if namespace in ("", place[0])}

    def _sharers(self, identity: TunnelIdentity | None) -> set[Place]:
        return set() if identity is None else set(self._rivals.get(identity, {}))

    def _led_on(self, by: Concern) -> set[Place]:
        return set() if by.route is None or not by.leads else self._routes.behind(by.route)

    def _drop(self, place: Place) -> None:
        before = self._objects.pop(place, None)
        if before is None:
            return
        if before.identity is not None:
            self._rivals[before.identity].pop(place, None)
            if not self._rivals[before.identity]:
                del self._rivals[before.identity]
        if before.route is not None and before.leads:
            self._routes.drop(place, before.route)
        for secret in before.secrets:
            self._users[secret].discard(place)
            if not self._users[secret]:
                del self._users[secret]


def eldest(own: Resource | Competitor, others: Iterable[Competitor]) -> Competitor | None:
    """The eldest other object on the tunnel if it is elder than this one, by creation, then uid.

    Source: docs/architecture.md 3.7.
    """
    elder = [other for other in others if other.uid != own.uid and (other.created, other.uid) < (own.created, own.uid)]
    return min(elder, key=lambda other: (other.created, other.uid), default=None)


def competitor(body: Mapping[str, Any]) -> Competitor:
    """An object as its competitors see it."""
    metadata = body["metadata"]
    created = parse_time(metadata.get("creationTimestamp")) or 0.0
    return Competitor(metadata["name"], metadata["namespace"], created, metadata["uid"])


def _place(body: Mapping[str, Any]) -> Place:
    return body["metadata"]["namespace"], body["metadata"]["name"]


def _concern(body: Mapping[str, Any], before: Concern | None = None) -> Concern:
    """What an object depends on; `before` is what was known of the name until now."""
    metadata, spec = body["metadata"], body.get("spec") or {}
    annotations = metadata.get("annotations") or {}
    wakes = (
        metadata.get("uid"),
        int(metadata.get("generation") or 0),
        bool(metadata.get("deletionTimestamp")),
        # kopf's own annotation
        tuple(sorted((key, value) for key, value in annotations.items() if "last-" not in key)),
    )
    try:
        identity, route = identity_of(spec), route_of(spec)
    except (ValueError, TypeError, AttributeError):
        # a spec of another release; its own pass reports it
        identity = route = None
    own = competitor(body)
    led = before is not None and before.competitor.uid == own.uid and before.leads
    secrets = _secrets(metadata["namespace"], spec)
    return Concern(own, identity, route, leads(body, before=led), secrets, wakes)


def _secrets(namespace: str, spec: Mapping[str, Any]) -> frozenset[Place]:
    """The Secrets of a spec that was not validated; whatever has another form names none."""
    parts = (spec.get(part) for part in ("source", "sink", "delivery"))
    return frozenset((namespace, name) for part in parts for name in _named(part))


def _named(part: Any) -> Iterator[str]:
    for key, value in part.items() if isinstance(part, Mapping) else ():
        if key in SECRET_REFERENCES and isinstance(value, Mapping) and isinstance(value.get("name"), str):
            yield value["name"]
        else:
            yield from _named(value)
