"""The live view of `kubectl ott top`: the fleet or one object, drawn again and again.

`fleet_frame` and `object_frame` are pure; `follow` reads, draws and waits.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ots_tunnel_operator.plugin.channels import channels_lines
from ots_tunnel_operator.plugin.fleet import by_trouble, fleet_table, summary, unserved_lines
from ots_tunnel_operator.plugin.kubectl import KubectlFailed
from ots_tunnel_operator.plugin.ott import Ott
from ots_tunnel_operator.plugin.report import Report
from ots_tunnel_operator.plugin.serving import Serving
from ots_tunnel_operator.plugin.text.screen import Screen
from ots_tunnel_operator.plugin.text.spans import count, short

#: Looks whose figures are kept for the course of lag and rows.
LOOKS = 60
#: Keys that end the view.
END_KEYS = frozenset({"q", "Q", "\x03", "\x04", "\x1b"})


@dataclass
class Course:
    """Lag and rows per second in the last looks; a look in which a figure is unknown is a gap."""

    lags: deque[float | None] = field(default_factory=lambda: deque(maxlen=LOOKS))
    rates: deque[float | None] = field(default_factory=lambda: deque(maxlen=LOOKS))

    def add(self, objects: Sequence[Ott]) -> None:
        """Take the largest lag and the sum of the rates of one look."""
        lags = [lag for ott in objects if (lag := ott.number("lag", "seconds")) is not None]
        rates = [rate for ott in objects if (rate := ott.number("throughput", "rowsPerSecond")) is not None]
        self.lags.append(max(lags, default=None))
        self.rates.append(sum(rates) if rates else None)

    def lines(self, screen: Screen) -> list[str]:
        """The course of both, the present figure last."""
        room = LOOKS if screen.width is None else max(0, screen.width - 24)
        shown = []
        for name, values, last in (("lag", self.lags, short), ("rows/s", self.rates, _rounded)):
            trend = screen.trend(list(values)[-room:] if room else [])
            shown.append(f"{name:<8}{trend}{' ' if trend else ''}{last(values[-1] if values else None)}")
        return shown


def fleet_frame(
    objects: Sequence[Ott],
    course: Course,
    screen: Screen,
    now: float,
    *,
    everywhere: bool,
    servings: Sequence[Serving] = (),
    flags: Sequence[str] = (),
) -> list[str]:
    """All objects, those in trouble first; before them, whether an operator looks at them."""
    if not objects:
        return ["no objects"]
    ordered = sorted(objects, key=by_trouble)
    lines = fleet_table(ordered, screen, now, with_namespace=everywhere)
    warnings = unserved_lines(objects, servings, screen, now)
    return _framed([summary(ordered, flags), *warnings, *course.lines(screen), ""], lines, screen)


def object_frame(
    ott: Ott,
    reports: Sequence[Report],
    course: Course,
    screen: Screen,
    now: float,
    *,
    servings: Sequence[Serving] = (),
) -> list[str]:
    """One object: its state, whether an operator looks at it, then its channels."""
    ready = ott.condition("Ready")
    state = f"{ott.text('phase') or '-'}, Ready {ready.status} ({ready.reason or '-'})"
    warnings = unserved_lines([ott], servings, screen, now)
    head = [screen.paint(state, "good" if ready.is_true else "bad"), *warnings, *course.lines(screen), ""]
    return _framed(head, channels_lines(ott, reports, screen, now), screen)


def follow(
    frame: Callable[[], list[str]],
    draw: Callable[[Sequence[str]], None],
    wait: Callable[[float], str],
    *,
    interval: float,
    looks: int | None,
) -> None:
    """Draw until a key ends it, or `looks` frames were drawn.

    A look that fails is shown in place of the frame, and the next one tries again.

    Args:
        frame: reads and returns the lines.
        wait: waits for this many seconds, and returns the key that was pressed, if any.
        interval: seconds from the begin of one look to the begin of the next.
    """
    drawn = 0
    while True:
        began = time.monotonic()
        try:
            lines = frame()
        except KubectlFailed as error:
            if looks is not None:
                raise
            lines = [f"the cluster did not answer: {error}", "tried again"]
        draw(lines)
        drawn += 1
        if looks is not None and drawn >= looks:
            return
        while (left := began + interval - time.monotonic()) > 0:
            key = wait(left)
            if key in END_KEYS:
                return
            if key:
                break


def _framed(head: Sequence[str], lines: Sequence[str], screen: Screen) -> list[str]:
    """Head and lines within the height of the screen; the rest is counted."""
    footer = ["", screen.paint("q ends it, any other key looks now", "dim")] if screen.height is not None else []
    if screen.height is None:
        return [*head, *lines, *footer]
    room = max(1, screen.height - len(head) - len(footer))
    if len(lines) > room:
        lines = [*lines[: room - 1], f"... {len(lines) - room + 1} more lines: the terminal is too low"]
    return [*head, *lines, *footer]


def _rounded(rate: float | None) -> str:
    return count(None if rate is None else round(rate))
