"""What was decided about an object last: events, records of its status and changes of its conditions. Pure.

Kubernetes forgets events, after an hour by default. The status keeps when tunnel, destination and snapshot were made,
and when each condition changed last, so that something is told about an old object as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ots_tunnel_operator.plugin.ott import Ott
from ots_tunnel_operator.times import parse_time

#: Decisions that are shown.
SHOWN = 6
#: Conditions whose last change is a decision, or follows from one; the others repeat their reason.
_TOLD = ("Ready", "Stalled", "Degraded", "Suspended", "Completed", "WorkersAvailable")


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision.

    Args:
        time: Unix seconds.
        reason: one word.
        text: with its numbers.
    """

    time: float
    reason: str
    text: str


def last_decisions(ott: Ott, events: Iterable[Mapping[str, Any]]) -> list[Decision]:
    """The latest decisions, the newest first; of one reason only the newest."""
    found = sorted([*_of_events(events), *_of_records(ott), *_of_conditions(ott)], key=lambda each: -each.time)
    newest: dict[str, Decision] = {}
    for decision in found:
        newest.setdefault(decision.reason, decision)
    return list(newest.values())[:SHOWN]


def _of_events(events: Iterable[Mapping[str, Any]]) -> Iterator[Decision]:
    for event in events:
        time = parse_time(event.get("lastTimestamp") or event.get("eventTime"))
        if time is not None:
            count = int(event.get("count") or 1)
            times = f" ({count} times)" if count > 1 else ""
            yield Decision(time, str(event.get("reason") or ""), f"{event.get('message') or ''}{times}")


def _of_records(ott: Ott) -> Iterator[Decision]:
    """When tunnel, destination and snapshot were made; with the reasons that their events have."""
    made = "created for this object"
    if (time := ott.time("tunnel", "createdTime")) is not None and ott.flag("tunnel", "createdByOperator"):
        yield Decision(time, "TunnelCreated", f"tunnel {ott.text('tunnel', 'id')} was {made}")
    if (time := ott.time("destination", "ensuredTime")) is not None:
        table, instance = ott.text("destination", "table"), ott.text("destination", "instance")
        place = f"table {table!r} in instance {instance!r}" if table else "the destination"
        if ott.flag("destination", "createdByOperator"):
            yield Decision(time, "DestinationCreated", f"{place} was {made}")
        else:
            yield Decision(time, "DestinationAdopted", f"{place} existed before and is used")
    if (time := ott.time("autoscaling", "lastDecision", "time")) is not None:
        yield _scaling(ott, time)
    if (time := ott.time("reset", "finishedTime") or ott.time("reset", "requestedTime")) is not None:
        yield Decision(time, f"Reset{ott.text('reset', 'state')}", ott.text("reset", "message"))
    if (time := ott.time("snapshot", "startedTime")) is not None:
        yield Decision(time, "SnapshotStarted", f"Spark application {ott.text('snapshot', 'application')}")
    if (time := ott.time("snapshot", "finishedTime")) is not None:
        yield Decision(time, "SnapshotDone", "every split was recorded as done")


def _scaling(ott: Ott, time: float) -> Decision:
    """The last change of the number of workers, with the reason and the text that its event has."""
    before, after = (ott.number("autoscaling", "lastDecision", key) or 0 for key in ("from", "to"))
    cause, figures = (ott.text("autoscaling", "lastDecision", key) for key in ("reason", "message"))
    text = f"from {before} to {after} workers, {cause}: {figures}"
    return Decision(time, "ScaledUp" if after > before else "ScaledDown", text)


def _of_conditions(ott: Ott) -> Iterator[Decision]:
    for kind in _TOLD:
        condition = ott.condition(kind)
        if condition.since is None or (condition.status == "Unknown" and not condition.message):
            continue
        if kind in ("Stalled", "Degraded", "Suspended", "Completed") and not condition.is_true:
            continue
        text = f"{kind} became {condition.status}"
        if ott.problem is not None and condition.reason == ott.problem.reason:
            # its message is what the object does now
            yield Decision(condition.since, condition.reason, text)
            continue
        yield Decision(condition.since, condition.reason, f"{text}: {condition.message}" if condition.message else text)
