"""The view of `kubectl ott channels`: every worker with its channels, and a bar for the lag of each. Pure.

Workers are asked for their channels. Of one that cannot be asked, the status of the object still has the number of
channels and, for the ten slowest ones, the lag.
"""

from __future__ import annotations

from collections.abc import Sequence

from ots_tunnel_operator.plugin.fleet import lag_style
from ots_tunnel_operator.plugin.ott import Ott
from ots_tunnel_operator.plugin.report import Report
from ots_tunnel_operator.plugin.text.columns import Cell, Column, table
from ots_tunnel_operator.plugin.text.ids import shortest
from ots_tunnel_operator.plugin.text.screen import Screen
from ots_tunnel_operator.plugin.text.spans import UNKNOWN, count, of, short, words

#: A bar is full at the largest lag that is shown, but not below this one in seconds: 2 s of lag are no full bar.
FULL_SECONDS = 60
#: Columns of a bar.
_BAR = 12

_COLUMNS = (
    Column("WORKER"),
    Column("CHANNEL"),
    Column("TYPE", drop=2),
    Column("STATE", drop=3),
    Column("LAG", right=True),
    Column("", drop=1),
    Column("ROWS", drop=4, right=True),
    Column("NOTE", drop=5, cut=True),
)


def channels_lines(
    ott: Ott, reports: Sequence[Report], screen: Screen, now: float, *, full_ids: bool = False
) -> list[str]:
    """The counts, a line for each channel, and what could not be asked."""
    answered = [report for report in reports if report.channels is not None]
    silent = [report for report in reports if report.channels is None]
    held = [channel for report in answered for channel in report.channels or ()]
    worst = max((channel.lag or 0 for channel in held), default=0)
    worst = max(worst, *_known_lags(ott), FULL_SECONDS) if silent else max(worst, FULL_SECONDS)
    ids = [channel.id for channel in held] + [str(item["id"]) for item in ott.entries("lag", "slowest")]
    width = max(map(len, ids), default=0) if full_ids else shortest(ids)
    rows = [row for report in answered for row in _worker_rows(ott, report, screen, worst, width)]
    rows += [row for report in silent for row in _silent_rows(ott, report, screen, worst, width)]
    rows += _unowned_row(ott)
    lines = [_head(ott, now)]
    if rows:
        lines += ["", *table(_columns(ott), rows, screen), "", f"a full bar is {words(worst)} of lag"]
    return lines + _unreported(ott, screen) + _notes(silent, screen)


def _columns(ott: Ott) -> tuple[Column, ...]:
    """The columns; that of the channels has the word for what the object shares."""
    return tuple(Column(ott.part.upper()) if column.title == "CHANNEL" else column for column in _COLUMNS)


def _unreported(ott: Ott, screen: Screen) -> list[str]:
    """How much of a stream no worker reports, as the status counts it."""
    seen, unseen = ott.number("lag", "byCheckpoint"), ott.number("lag", "notLookedAt")
    parts = [f"{of(seen, ott.part)} by the checkpoint of the lease"] if seen else []
    parts += [f"the lag of {of(unseen, ott.part)} is not known"] if unseen else []
    return screen.sentences(f"No worker reports {', and '.join(parts)}.", indent="") if parts else []


def _head(ott: Ott, now: float) -> str:
    """The counts of the status, and how old they are."""
    total = ott.number("channels", "total")
    if total is None:
        return (
            f"{ott.namespace}/{ott.name}: the status has no {ott.part}s ({ott.condition('TunnelReady').reason or '-'})"
        )
    parts = [f"{ott.number('channels', kind)} {kind}" for kind in ("open", "closing", "terminated", "unowned")]
    shown = ", ".join(part for part in parts if not part.startswith(("0 ", "None ")))
    observed = ott.time("observedTime")
    at = "" if observed is None else f" (status of {words(now - observed)} ago)"
    return f"{ott.namespace}/{ott.name}: {of(total, ott.part)}{': ' if shown else ''}{shown}{at}"


def _worker_rows(ott: Ott, report: Report, screen: Screen, worst: int, width: int) -> list[list[Cell]]:
    """One line for each channel of a worker, the latest first; its name on the first one."""
    channels = sorted(report.channels or (), key=lambda each: (-(each.lag or 0), each.id))
    note = report.error or _pace(report)
    if not channels:
        return [[Cell(report.pod, "bold"), Cell("none", "dim"), *[Cell("")] * 5, Cell(note)]]
    rows = []
    for number, channel in enumerate(channels):
        style = lag_style(ott, channel.lag)
        rows.append(
            [
                Cell("" if number else report.pod, "bold"),
                Cell(channel.id[:width]),
                Cell(channel.type),
                Cell(channel.state, "" if channel.state == "OPEN" else "warn"),
                Cell(short(channel.lag), style),
                Cell("" if channel.lag is None else screen.bar(channel.lag / worst, _BAR), style or "good"),
                Cell(count(channel.rows)),
                Cell(channel.error or ("" if number else note), "bad" if channel.error else ""),
            ]
        )
    return rows


def _pace(report: Report) -> str:
    rate = UNKNOWN if report.rows_per_second is None else count(round(report.rows_per_second))
    busy = "" if report.busy_percent is None else f", busy {report.busy_percent}%"
    return f"{rate} rows/s{busy}"


def _silent_rows(ott: Ott, report: Report, screen: Screen, worst: int, width: int) -> list[list[Cell]]:
    """What the status knows of a worker that could not be asked."""
    known = next((item for item in ott.entries("workers") if item.get("name") == report.pod), {})
    held, lag = known.get("channels"), known.get("lagSeconds")
    bar = "" if lag is None else screen.bar(lag / worst, _BAR)
    what = UNKNOWN if held is None else of(held, ott.part)
    cells = [Cell(report.pod, "bold"), Cell(what, "dim"), Cell(""), Cell(""), Cell(short(lag)), Cell(bar, "good")]
    rows = [[*cells, Cell(""), Cell("by the status")]]
    for item in ott.entries("lag", "slowest"):
        if item.get("worker") == report.pod:
            slow = item.get("seconds")
            shown = "" if slow is None else screen.bar(slow / worst, _BAR)
            rows.append(
                [
                    Cell(""),
                    Cell(str(item["id"])[:width]),
                    Cell(str(item["type"])),
                    Cell(""),
                    Cell(short(slow), lag_style(ott, slow)),
                    Cell(shown, lag_style(ott, slow) or "good"),
                    Cell(""),
                    Cell("one of the slowest"),
                ]
            )
    return rows


def _unowned_row(ott: Ott) -> list[list[Cell]]:
    unowned = ott.number("channels", "unowned")
    if not unowned:
        return []
    return [[Cell("no worker", "warn"), Cell(of(unowned, ott.part), "warn"), *[Cell("")] * 5, Cell("unowned")]]


def _known_lags(ott: Ott) -> list[int]:
    return [int(item.get("lagSeconds") or 0) for item in ott.entries("workers")] or [0]


def _notes(silent: Sequence[Report], screen: Screen) -> list[str]:
    """Why workers could not be asked, each reason once."""
    reasons: dict[str, list[str]] = {}
    for report in silent:
        reasons.setdefault(report.failure, []).append(report.pod)
    return [
        line
        for reason, pods in reasons.items()
        for line in screen.sentences(f"{', '.join(pods)} could not be asked: {reason}", indent="")
    ]
