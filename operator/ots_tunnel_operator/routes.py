"""Copies from table to table, and whether one of them would lead changes back to where they began. Pure.

The stream of a table does not tell a copied change from one of a user. So where one object copies table A to B, and
another one B to A, each change of either table is copied for good, even with equal values: it costs a write and a
record per round, and the lag never ends. The same holds for a longer way, A to B to C to A.

Of the objects of such a circle the youngest one has to wait, because the others were there before: it looks for a way
from its destination back to its source that consists of elder objects alone. An object leads nothing on if it copies
existing rows only, has another sink than a table, or a filter, which may be what keeps the circle open; nor once it
is completed, suspended as the former direction of a failover, or released by its deletion; nor while it waits for the
end of a circle itself. The last is no matter of its status, which a failed pass leaves Unknown: of the objects in
question the eldest waits for none, and each younger one for the elder ones that do not wait.

    elder    shop/a: orders -> copy
    younger  shop/b: copy -> orders       waits: shop/a leads back from orders to copy
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ots_tunnel_operator.api.identity import region_in
from ots_tunnel_operator.names import FINALIZER
from ots_tunnel_operator.world.world import Competitor

Place = tuple[str, str]
"""Namespace and name of an object."""


class TableIdentity(NamedTuple):
    """A table of an instance; of the endpoint only what distinguishes instances counts, as in `TunnelIdentity`."""

    region: str
    instance: str
    table: str


class Route(NamedTuple):
    """What a copy of changes leads from one table to another."""

    source: TableIdentity
    destination: TableIdentity


class Routes:
    """The routes of all objects, by the table that each of them begins at."""

    def __init__(self) -> None:
        self._from: defaultdict[TableIdentity, dict[Place, _Step]] = defaultdict(dict)

    def put(self, place: Place, competitor: Competitor, route: Route) -> None:
        """Take over the route of an object."""
        self._from[route.source][place] = _Step(competitor, route)

    def drop(self, place: Place, route: Route) -> None:
        """Forget the route of an object."""
        self._from[route.source].pop(place, None)
        if not self._from[route.source]:
            del self._from[route.source]

    def behind(self, route: Route) -> set[Place]:
        """The objects that lead on what arrives by a route, or wait to: those of every circle that it is a part of."""
        return set(self._behind(route))

    def way_back(self, route: Route, own: Competitor) -> tuple[Competitor, ...]:
        """The shortest way from a route's destination to its source by elder objects; empty where there is none.

        Args:
            route: of the object.
            own: the object itself; elder than it is what was created before, then what has the lesser uid.
        """
        elders = [step for step in self._behind(route).values() if _age(step) < (own.created, own.uid)]
        if all(step.route.destination != route.source for step in elders):
            return ()
        leading = defaultdict[TableIdentity, list[_Step]](list)
        for step in sorted(elders, key=_age):
            if not _way(step.route, leading):
                leading[step.route.source].append(step)
        return _way(route, leading)

    def _behind(self, route: Route) -> dict[Place, _Step]:
        found = dict[Place, _Step]()
        tables, seen = [route.destination], {route.destination}
        while tables:
            for place, step in self._from.get(tables.pop(), {}).items():
                found[place] = step
                if step.route.destination not in seen:
                    seen.add(step.route.destination)
                    tables.append(step.route.destination)
        return found


class _Step(NamedTuple):
    competitor: Competitor
    route: Route


def _age(step: _Step) -> tuple[float, str]:
    return step.competitor.created, step.competitor.uid


def _way(route: Route, leading: Mapping[TableIdentity, Sequence[_Step]]) -> tuple[Competitor, ...]:
    """The shortest way from a route's destination to its source by objects that lead on; empty where there is none."""
    tables, steps = deque([route.destination]), dict[TableIdentity, _Step]()
    while tables:
        for step in leading.get(tables.popleft(), ()):
            destination = step.route.destination
            if destination == route.source:
                return _back_along(steps, step, route.destination)
            if destination not in steps and destination != route.destination:
                steps[destination] = step
                tables.append(destination)
    return ()


def _back_along(steps: Mapping[TableIdentity, _Step], last: _Step, start: TableIdentity) -> tuple[Competitor, ...]:
    """The objects from a table to the last step; `steps` has the one by which each table in between was reached."""
    way = [last]
    while way[-1].route.source != start:
        way.append(steps[way[-1].route.source])
    return tuple(step.competitor for step in reversed(way))


def leads(body: Mapping[str, Any], *, before: bool) -> bool:
    """Whether an object leads changes on, or would do so at the end of what it waits for.

    Args:
        body: the object.
        before: whether it did when it was seen last. A suspended one does until it was seen without a worker, and what
            no pass could look at is as it was.
    """
    metadata = body["metadata"]
    if metadata.get("deletionTimestamp") and FINALIZER not in (metadata.get("finalizers") or ()):
        return False
    if _condition(body, "Completed") == "True":
        return False
    if not (body.get("spec") or {}).get("suspend"):
        return True
    suspended = _condition(body, "Suspended")
    return suspended == "False" or (suspended != "True" and before)


def _condition(body: Mapping[str, Any], kind: str) -> str:
    conditions = (body.get("status") or {}).get("conditions") or ()
    return next((str(item.get("status")) for item in conditions if item.get("type") == kind), "")


def route_of(spec: Mapping[str, Any]) -> Route | None:
    """The route of an unvalidated spec; None where it leads no change from table to table, or has a filter.

    Raises:
        AttributeError: a part of it is no mapping.
    """
    source, table = spec.get("source") or {}, (spec.get("sink") or {}).get("tablestore")
    is_filtered = bool((spec.get("delivery") or {}).get("filter"))
    if not table or is_filtered or (source.get("tunnel") or {}).get("type") == "BaseData":
        return None
    return Route(_table(source), _table(table))


def _table(side: Mapping[str, Any]) -> TableIdentity:
    return TableIdentity(region_in(str(side.get("endpoint", ""))), str(side.get("instance")), str(side.get("table")))
