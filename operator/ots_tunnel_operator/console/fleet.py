"""The fleet table: one line for each object, with the words of `kubectl ott list`. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ots_tunnel_operator.console.sight import Place, Sight
from ots_tunnel_operator.plugin.fleet import by_trouble, cause, lag_style, retention_style
from ots_tunnel_operator.plugin.ott import Ott

#: Ranks of `by_trouble` as words of the page.
STATES = ("stalled", "problem", "waiting", "works", "idle")
#: Longest cause in a line, in characters; the object's own page has the rest.
CAUSE = 240


def line_of(ott: Ott) -> dict[str, Any]:
    """What a line shows of an object; unknown figures are None. It depends on the object alone, not on the time."""
    lag, used, why = ott.number("lag", "seconds"), ott.number("lag", "retentionUsedPercent"), cause(ott)
    return {
        "namespace": ott.namespace,
        "name": ott.name,
        "state": STATES[by_trouble(ott)[0]],
        "ready": ott.condition("Ready").status,
        "phase": ott.text("phase"),
        "readyWorkers": ott.number("readyReplicas"),
        "wantedWorkers": ott.expected_workers,
        "open": ott.number("channels", "open"),
        "unowned": 0 if ott.is_asleep else ott.number("channels", "unowned"),
        "lag": lag,
        "lagStyle": lag_style(ott, lag),
        "base": ott.number("base", "percent"),
        "rate": ott.number("throughput", "rowsPerSecond"),
        "retention": used,
        "retentionStyle": retention_style(ott, used),
        "created": ott.created,
        "why": why if len(why) <= CAUSE else why[: CAUSE - 1] + "…",
    }


def age_of(sight: Sight, own_lease: str) -> dict[str, Any]:
    """How old the figures of a line are, and whose they are.

    `looked` says whether this process has looked at the object, and `observed` when it did last; before the first look,
    and for an object that another operator serves, that is the time in the status. `elsewhere` is the Lease of that
    operator, otherwise empty.
    """
    ott = sight.ott
    lease = "" if ott.lease is None else "/".join(ott.lease)
    elsewhere = lease if lease and own_lease and lease != own_lease else ""
    looked = sight.observed is not None
    observed = sight.observed if looked else ott.time("observedTime")
    return {"looked": looked, "observed": observed, "elsewhere": elsewhere, "isDeleting": ott.deleted is not None}


class Lines:
    """The lines of all objects; a line is made anew only when its object has changed."""

    def __init__(self) -> None:
        self._made: dict[Place, tuple[Mapping[str, Any], dict[str, Any]]] = {}

    def of(self, sights: list[Sight], own_lease: str) -> list[dict[str, Any]]:
        """The lines of these objects; those of all others are forgotten."""
        before, self._made = self._made, {}
        found = []
        for sight in sights:
            body, line = before.get(sight.place, (None, {}))
            if body is not sight.ott.body:
                line = line_of(sight.ott)
            self._made[sight.place] = sight.ott.body, line
            found.append(line | age_of(sight, own_lease))
        return found
