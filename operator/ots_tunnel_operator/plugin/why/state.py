"""What an object does now, in sentences with its figures. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ots_tunnel_operator.plugin.ott import Condition, Ott
from ots_tunnel_operator.plugin.text.ids import shortest
from ots_tunnel_operator.plugin.text.spans import clock, count, of, words
from ots_tunnel_operator.reset.record import recorded_loss

_READS = {"BaseAndStream": "existing rows and changes", "Stream": "changes", "BaseData": "existing rows"}
#: Sink -> the field that says where it writes; a sink without one has no place.
_PLACES = {"files": "url", "kafka": "topic", "http": "url", "python": "factory"}
#: Possible gaps that are listed; the status has up to 20.
_GAPS = 3
#: Slow channels that are listed; the status has up to 10.
_SLOWEST = 3


def title(ott: Ott) -> str:
    """What it is for: source and sink."""
    source = ott.spec.get("source") or {}
    kind = "Stream" if ott.leases else (source.get("tunnel") or {}).get("type", "")
    what = _READS.get(kind, "records")
    place = f"table {source.get('table')} in {source.get('instance')}"
    return f"{ott.namespace}/{ott.name}: {what} of {place} -> {_sink(ott.spec.get('sink') or {})}"


def _sink(sink: Mapping[str, Any]) -> str:
    for name, section in sink.items():
        if name == "tablestore":
            return f"table {section.get('table')} in {section.get('instance')}"
        place = (section or {}).get(_PLACES.get(name, ""))
        return f"{name} {place}" if place else name
    return "no sink"


def now_sentences(ott: Ott, now: float) -> list[str]:
    """What it does, the most important first."""
    if not ott.conditions:
        return [_unseen(ott, now)]
    return [_headline(ott, now), *_troubles(ott, now), *_figures(ott, now)]


def _unseen(ott: Ott, now: float) -> str:
    age = "" if ott.created is None else f" for {words(now - ott.created)}"
    if ott.lease is None:
        return f"It exists{age}, and no operator has looked at it: nothing runs."
    return f"It exists{age}; the operator of Lease {'/'.join(ott.lease)} has it, and has not written a status yet."


def _headline(ott: Ott, now: float) -> str:
    """The state in one sentence."""
    ready, stalled = ott.condition("Ready"), ott.condition("Stalled")
    if ott.deleted is not None:
        policy = ott.spec.get("deletionPolicy", "Retain")
        return f"It has been in deletion for {words(now - ott.deleted)} (deletionPolicy {policy})."
    if stalled.is_true:
        return f"It waits for you {_because(stalled, now)}"
    if ready.status == "Unknown" and ready.reason:
        return f"It is not known whether it works {_because(ready, now)}"
    if ott.is_suspended:
        paused = ott.condition("Suspended")
        if paused.is_true:
            return f"It has been paused{_since(paused, now)}: nothing is consumed, and its checkpoints are kept."
        if ott.by_query:
            return "It is being paused: its query of Spark is stopped, and the service frees its channels."
        return "It is being paused: its workers finish what they hold."
    if ott.condition("Completed").is_true:
        return f"It is done {_because(ott.condition('Completed'), now)}"
    if ott.is_asleep and ready.is_true:
        return _asleep(ott, now)
    return _work(ott, ready, now)


def _asleep(ott: Ott, now: float) -> str:
    since, interval = ott.time("autoscaling", "sleep", "since"), ott.peek_interval
    age = "" if since is None else f" for {words(now - since)}"
    looks = "" if interval is None else f" every {words(interval)}"
    return (
        f"It has been asleep{age}: every change was read, so that no worker runs, and the operator looks{looks} "
        "whether there is something to read."
    )


def _work(ott: Ott, ready: Condition, now: float) -> str:
    if not ott.wanted_workers:
        # what runs may still drain
        left = f"; {of(running, 'worker')} ready" if (running := ott.number("readyReplicas")) else ""
        return f"No worker is wanted{left} {_because(ready, now)}"
    workers = f"{count(ott.number('readyReplicas'))} of {of(ott.wanted_workers, 'worker')} ready"
    match ott.text("phase"):
        case "Streaming":
            doing = "It follows the changes of the table"
        case "BaseData":
            doing = "It copies existing rows"
        case "Preparing" | "Pending":
            return f"It is being prepared {_because(ready, now)}"
        case other:
            doing = f"Its phase is {other or 'unknown'}"
    if ott.by_query:
        workers = f"a query of Spark, whose SparkApplication is {ott.text('spark', 'state') or 'not there yet'}"
    return f"{doing} with {workers}{'.' if ready.is_true else f', and is not Ready {_because(ready, now)}'}"


def _troubles(ott: Ott, now: float) -> Iterator[str]:
    """What is wrong beside what the headline says."""
    said = {ott.condition("Ready").reason} if not ott.condition("Ready").is_true else set()
    if ott.condition("Stalled").is_true:
        said.add(ott.condition("Stalled").reason)
    for kind in ("Degraded", "CredentialsValid", "SinkReady", "TunnelReady", "WorkersAvailable"):
        found = ott.condition(kind)
        is_bad = found.is_true if kind == "Degraded" else found.status == "False"
        if is_bad and found.reason not in said and ott.deleted is None:
            said.add(found.reason)
            yield f"{kind} is {found.status} {_because(found, now)}"
    gaps = sorted(ott.entries("possibleGaps"), key=lambda gap: bool(gap.get("accepted")))
    for gap in gaps[:_GAPS]:
        accepted = ", which was accepted" if gap.get("accepted") else ""
        yield f"Changes of {ott.part} {gap['channel']} from {gap['from']} to {gap['to']} may be missing{accepted}."
    yield from _lost(ott)
    if len(gaps) > _GAPS:
        yield f"So may changes of {len(gaps) - _GAPS} more in status.possibleGaps."


def _lost(ott: Ott) -> Iterator[str]:
    """What resets have given up."""
    if (loss := recorded_loss(ott.status)) is not None:
        start = "a time that is not known" if loss.start is None else clock(loss.start)
        until = "the creation of its tunnel" if loss.end is None else clock(loss.end)
        yield f"{loss.what} between {start} and {until} were given up by a reset, and are not in the destination."


def _figures(ott: Ott, now: float) -> Iterator[str]:
    yield from _base(ott)
    yield from _channels(ott)
    yield from _lag(ott, now)
    yield from _scaling(ott)
    yield from _retention(ott)
    yield from _refused(ott, now)


def _base(ott: Ott) -> Iterator[str]:
    percent, done, total = (ott.number("base", key) for key in ("percent", "done", "total"))
    if percent is None or done is None or total is None:
        return
    rows, eta = ott.number("base", "rows"), ott.number("base", "etaSeconds")
    counted = "" if rows is None else f", {count(rows)} rows"
    if percent == 100:
        yield f"Existing rows: all copied{counted}."
        return
    unit = "splits" if ott.status.get("snapshot") else "channels"
    left = "" if eta is None else f"; about {words(eta)} to go"
    yield f"Existing rows: {percent} % copied, {done} of {total} {unit}{counted}{left}."


def _channels(ott: Ott) -> Iterator[str]:
    opened, unowned = ott.number("channels", "open"), ott.number("channels", "unowned")
    if opened is None or ott.is_asleep:
        return
    rate, least, most = (
        ott.number("throughput", "rowsPerSecond"),
        ott.number("channels", "minPerWorker"),
        ott.number("channels", "maxPerWorker"),
    )
    text = f"{of(opened, ott.part)} {'is' if opened == 1 else 'are'} read"
    if least is not None and most is not None:
        text += f", {least if least == most else f'{least} to {most}'} by each worker"
    if unowned:
        text += f"; {unowned} without a worker"
    if rate is not None:
        text += f"; {count(rate)} rows/s"
    if (limit := ott.number("throughput", "limitRowsPerSecond")) is not None:
        text += f"; the rate limit of each worker allows at most {count(limit)} rows/s together"
    if (busy := busiest(ott)) is not None:
        text += f"; the busiest worker spends {busy} % of its time in the sink"
    yield text + "."


def busiest(ott: Ott) -> int | None:
    """Percentage of time that the busiest worker spends in the sink; None while no worker tells."""
    return max((item["busyPercent"] for item in ott.entries("workers") if "busyPercent" in item), default=None)


def _lag(ott: Ott, now: float) -> Iterator[str]:
    seconds, point = ott.number("lag", "seconds"), ott.time("lag", "consumedUpTo")
    if seconds is None:
        if unseen := ott.number("lag", "notLookedAt"):
            shards = of(unseen, ott.part)
            yield f"Its lag is not known: no worker reports {shards}, and no look at the checkpoint tells it."
        elif ott.text("phase") == "Streaming" and ott.expected_workers and not ott.is_asleep:
            yield "Its lag is not known."
        return
    limit = ott.lag_limit
    allowed = "" if limit is None else f" (it counts as late from {words(limit)})"
    if seconds == 0 and ott.flag("lag", "caughtUp"):
        yield "Every change has reached the sink."
        return
    has_all = not ott.entries("possibleGaps") and recorded_loss(ott.status) is None
    up_to = f"; every change up to {clock(point)} has reached the sink" if has_all and point is not None else ""
    yield f"The slowest {ott.part} is {words(seconds)} behind{allowed}{up_to}."
    slowest = [item for item in ott.entries("lag", "slowest") if item.get("seconds")]
    if len(slowest) > 1:
        width = shortest(str(item["id"]) for item in slowest)
        listed = (
            f"{item['id'][:width]} on {item.get('worker', 'no worker')}: {words(item['seconds'])}"
            for item in slowest[:_SLOWEST]
        )
        yield f"Slowest: {', '.join(listed)}."


def _scaling(ott: Ott) -> Iterator[str]:
    """The number of workers that the load asks for, and what keeps it from that."""
    recommended, limit = ott.number("autoscaling", "recommendedReplicas"), ott.text("autoscaling", "limitedBy")
    if ott.scaling_mode == "Disabled" or recommended is None or ott.is_asleep:
        return
    limited = "" if limit in ("", "None") else f"; limited by {limit}"
    does = f"it has {ott.wanted_workers}" if ott.scaling_mode == "Auto" else "Advise changes nothing"
    yield f"The load asks for {of(recommended, 'worker')} ({ott.scaling_mode}); {does}{limited}."


def _retention(ott: Ott) -> Iterator[str]:
    used, kept = ott.number("lag", "retentionUsedPercent"), ott.number("tunnel", "streamRetentionSeconds")
    if used and kept:
        yield (
            f"Changes that are not consumed use {used} % of the {words(kept)} for which the table keeps them; "
            "at 100 % they are lost."
        )


def _refused(ott: Ott, now: float) -> Iterator[str]:
    records, keys = ott.number("refused", "records"), ott.number("refused", "keys")
    last = ott.time("refused", "lastTime")
    if records and keys is not None and last is not None:
        yield (
            f"The sink refused {of(records, 'record')} of {of(keys, 'key')} for good, the last {words(now - last)} "
            "ago; they were left out."
        )


def _since(condition: Condition, now: float) -> str:
    return "" if condition.since is None else f" for {words(now - condition.since)}"


def _because(condition: Condition, now: float) -> str:
    """Reason and for how long, then the message, which ends the sentence."""
    return f"({condition.reason}{_since(condition, now)})" + (f": {condition.message}" if condition.message else ".")
