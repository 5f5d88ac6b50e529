"""The view of `kubectl ott list`: one line for each object. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ots_tunnel_operator.plugin.flags import with_flags
from ots_tunnel_operator.plugin.ott import Ott
from ots_tunnel_operator.plugin.serving import Serving, unserved_sentences
from ots_tunnel_operator.plugin.text.columns import Cell, Column, table
from ots_tunnel_operator.plugin.text.screen import Screen
from ots_tunnel_operator.plugin.text.spans import UNKNOWN, count, of, short

_COLUMNS = (
    Column("NAME"),
    Column("READY"),
    Column("PHASE", drop=1),
    Column("WORKERS", drop=3, right=True),
    Column("CHANNELS", drop=4, right=True),
    Column("LAG", right=True),
    Column("BASE", drop=6, right=True),
    Column("ROWS/S", drop=2, right=True),
    Column("RETENTION", drop=7, right=True),
    Column("AGE", drop=5, right=True),
    Column("WHY", cut=True),
)
#: Share of the stream's retention in percent from which it is painted, beside the object's own warning.
_RETENTION_HIGH = 50


def fleet_lines(
    objects: Sequence[Ott],
    screen: Screen,
    now: float,
    *,
    with_namespace: bool = False,
    servings: Sequence[Serving] = (),
    flags: Sequence[str] = (),
) -> list[str]:
    """The table, whether an operator looks at the objects, and a line that sums it up.

    Args:
        servings: the Leases that the objects name.
        flags: kubectl's own, for the command that is shown.
    """
    if not objects:
        return ["no objects"]
    table = fleet_table(objects, screen, now, with_namespace=with_namespace)
    return [*table, "", *unserved_lines(objects, servings, screen, now), summary(objects, flags)]


def unserved_lines(objects: Sequence[Ott], servings: Sequence[Serving], screen: Screen, now: float) -> list[str]:
    """The sentences of `unserved_sentences` as a warning."""
    sentences = unserved_sentences(objects, servings, now)
    return [screen.paint(line, "warn") for text in sentences for line in screen.sentences(text, indent="")]


def fleet_table(objects: Sequence[Ott], screen: Screen, now: float, *, with_namespace: bool = False) -> list[str]:
    """The table alone, in the order of the objects."""
    columns = (Column("NAMESPACE"), *_COLUMNS) if with_namespace else _COLUMNS
    rows = [([Cell(ott.namespace)] if with_namespace else []) + _row(ott, now) for ott in objects]
    return table(columns, rows, screen)


def summary(objects: Sequence[Ott], flags: Sequence[str] = ()) -> str:
    """How many are ready, and which need a person."""
    ready = sum(ott.condition("Ready").is_true for ott in objects)
    stalled = [ott for ott in objects if ott.condition("Stalled").is_true]
    parts = [f"{ready} ready"]
    if ready < len(objects):
        parts.append(f"{len(objects) - ready} not")
    text = f"{of(len(objects), 'object')}: {', '.join(parts)}"
    if stalled:
        first = stalled[0]
        need = "needs you" if len(stalled) == 1 else "need you"
        text += f"; {len(stalled)} {need}: kubectl ott why {first.name} -n {first.namespace}"
    return with_flags(text, flags)


def by_trouble(ott: Ott) -> tuple[int, float, str, str]:
    """Key of an order: what needs a person, what has a problem, what is not ready, what works by its lag, what is
    paused or done."""
    if ott.condition("Stalled").is_true:
        rank = 0
    elif ott.problem is not None:
        rank = 1
    elif ott.is_suspended or ott.condition("Completed").is_true:
        rank = 4
    else:
        rank = 3 if ott.condition("Ready").is_true else 2
    return rank, -(ott.number("lag", "seconds") or 0), ott.namespace, ott.name


def lag_style(ott: Ott, seconds: float | None) -> str:
    """Style of a lag: bad beyond `Ott.lag_limit`, a warning from half of it."""
    limit = ott.lag_limit
    if seconds is None or not limit:
        return ""
    return "bad" if seconds > limit else "warn" if seconds > limit / 2 else ""


def retention_style(ott: Ott, used: int | None) -> str:
    """Style of a used share of the retention in percent: bad from spec.monitoring.retentionWarningPercent on."""
    warning = (ott.spec.get("monitoring") or {}).get("retentionWarningPercent", _RETENTION_HIGH)
    return "bad" if used is not None and used >= warning else ""


def _row(ott: Ott, now: float) -> list[Cell]:
    ready = ott.condition("Ready")
    lag, used = ott.number("lag", "seconds"), ott.number("lag", "retentionUsedPercent")
    rate = ott.number("throughput", "rowsPerSecond")
    return [
        Cell(ott.name, "bold"),
        Cell(ready.status, {"True": "good", "False": "bad"}.get(ready.status, "warn")),
        Cell(ott.text("phase") or UNKNOWN),
        _workers(ott),
        _channels(ott),
        Cell(short(lag), lag_style(ott, lag)),
        Cell(_percent(ott.number("base", "percent"))),
        Cell(count(rate)),
        Cell(_percent(used), retention_style(ott, used)),
        Cell(UNKNOWN if ott.created is None else short(now - ott.created)),
        Cell(cause(ott)),
    ]


def _workers(ott: Ott) -> Cell:
    """Ready pods and the wanted number."""
    ready = ott.number("readyReplicas")
    wanted = ott.expected_workers
    return Cell(f"{count(ready)}/{wanted}", "warn" if ready is not None and ready < wanted else "")


def _channels(ott: Ott) -> Cell:
    """Open channels, and those that wait for a worker."""
    unowned = 0 if ott.is_asleep else ott.number("channels", "unowned")
    text = count(ott.number("channels", "open"))
    return Cell(f"{text}, {unowned} unowned", "warn") if unowned else Cell(text)


def _percent(number: int | None) -> str:
    return UNKNOWN if number is None else f"{number}%"


def cause(ott: Ott) -> str:
    """Why it is not ready or degraded, or what is on its way; empty where nothing is."""
    if ott.deleted is not None:
        return "Deleting"
    if not ott.conditions:
        return "no operator has looked at it yet"
    ready = ott.condition("Ready")
    if ready.is_true and ott.problem is None:
        rolling = ott.condition("Progressing")
        return rolling.reason if rolling.is_true else "Asleep" if ott.is_asleep else ""
    problem = ott.problem or ready
    return f"{problem.reason}: {problem.message}" if problem.message else problem.reason
