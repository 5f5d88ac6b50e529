"""Which events of a namespace are about an object or one of its children. Pure.

Kubernetes keeps an event longer than the pod that it is about, so a pod is told by its name, not by its labels: the
workers' Deployment has the object's name, its ReplicaSets a hash behind that, and their pods five characters more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ots_tunnel_operator import KIND, names
from ots_tunnel_operator.plugin.ott import Ott
from ots_tunnel_operator.times import parse_time

#: Characters of generated names (apimachinery, util/rand): no vowels, and no digits that look like letters.
_GENERATED = "[bcdfghjklmnpqrstvwxz2456789]"
#: Kinds of children that have events of their own.
_KINDS = frozenset(
    {"Deployment", "ConfigMap", "SparkApplication", "PodDisruptionBudget", "PodMonitor", "NetworkPolicy"}
)

Event = Mapping[str, Any]


def own_events(ott: Ott, events: Iterable[Event]) -> Iterator[Event]:
    """The events about this object and its children; none from before it existed, which a predecessor of its name had.

    Args:
        events: of the object's namespace.
    """
    belongs = _patterns(ott.name)
    for event in events:
        of = event.get("involvedObject") or {}
        kind, name = str(of.get("kind")), str(of.get("name"))
        if kind == KIND:
            if of.get("uid") == ott.uid:
                yield event
        elif belongs(kind, name) and not _is_before(event, ott.created):
            yield event


def last_time(event: Event) -> float | None:
    """Time at which it happened last, Unix seconds; None where the event does not tell."""
    series = event.get("series") or {}
    return parse_time(series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime"))


def first_time(event: Event) -> float | None:
    """Time at which it happened first, Unix seconds; None where the event does not tell."""
    return parse_time(event.get("firstTimestamp") or event.get("eventTime")) or last_time(event)


def _patterns(name: str) -> Callable[[str, str], bool]:
    """A function of kind and name that says whether they are those of a child."""
    own = {names.deployment_name(name), names.config_name(name), names.snapshot_name(name)}
    own |= {names.snapshot_config_name(name), names.query_name(name), names.query_config_name(name)}
    of_spark = "|".join(re.escape(one) for one in (names.snapshot_name(name), names.query_name(name)))
    replica_set = re.compile(rf"{re.escape(names.deployment_name(name))}-{_GENERATED}{{5,10}}")
    pod = re.compile(rf"{replica_set.pattern}-{_GENERATED}{{5}}|({of_spark})-(.*-)?(driver|exec-\d+)")

    def belongs(kind: str, found: str) -> bool:
        if kind == "Pod":
            return pod.fullmatch(found) is not None
        if kind == "ReplicaSet":
            return replica_set.fullmatch(found) is not None
        return kind in _KINDS and found in own

    return belongs


def _is_before(event: Event, created: float | None) -> bool:
    last = last_time(event)
    return last is not None and created is not None and last < created
