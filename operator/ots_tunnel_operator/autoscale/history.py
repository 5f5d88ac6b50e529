"""What the decision remembers between two looks: a value that is passed in and returned.

It is lost with the operator's process, and nothing may depend on it: without it the decision holds until its windows
are full again. What a restart must not lose is in the status (`record`).

    figures           the last minute since the fleet was settled, and two looks at least: growth of the lag, means of
                      busy share and rate
    recommendations   as long as the longer window; cleared with the figures where three looks in a row had none
    misses            looks in a row without a known lag
    settling          how long the last changes took until every channel had a worker again
    trial             a scale-up of which it is not known yet whether it helped
    ineffective       scale-ups in a row that did not help, and until when there is no further one
    foreign           who else wrote the number last
    idle              since when nothing was read and no row counted
    looked            while no worker runs: the last time at which every channel had been looked at
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from ots_tunnel_operator.autoscale.figures import Figures
from ots_tunnel_operator.autoscale.limit import Limit

#: Shortest time in seconds between two evaluations: passes come in bursts, and each evaluation is kept.
EVALUATION_SECONDS = 10.0
#: Seconds over which growth and means are taken.
WINDOW_SECONDS = 60.0
#: Oldest look in seconds with which the next one is compared, where none lies in the window. What came between older
#: ones, such as an absence of the API server, is no pace of the workers.
LONGEST_PAUSE = 600.0
#: Seconds that figures must cover before they count.
LEAST_SECONDS = 25.0
#: Looks in a row with an unknown lag after which the metrics count as unavailable.
MISSES = 3


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What the load asked for at one moment."""

    time: float
    workers: int


@dataclass(frozen=True, slots=True)
class Trial:
    """A scale-up of which it is not known yet whether it helped; `rate` is that before it, rows per second."""

    time: float
    before: int
    after: int
    rate: float


@dataclass(frozen=True, slots=True)
class Foreign:
    """Another client that wrote the number of workers."""

    time: float
    text: str


@dataclass(frozen=True, slots=True)
class Idle:
    """Since when nothing was read, and how many rows the service had counted by then."""

    since: float
    rows: int


@dataclass(frozen=True, slots=True)
class Shown:
    """The result of the last evaluation, which is shown until the next one."""

    recommended: int | None = None
    limit: Limit = Limit.NONE
    message: str = ""


@dataclass(frozen=True, slots=True)
class History:
    """Everything remembered about one object; times are seconds since 1970."""

    evaluated: float | None = None
    shown: Shown = Shown()
    figures: tuple[Figures, ...] = ()
    recommendations: tuple[Recommendation, ...] = ()
    misses: int = 0
    settling: float | None = None
    """Seconds that changes took; None before the first one that was watched."""
    settled: float | None = None
    """The change whose settling is already counted in `settling`, by its time in the status."""
    trial: Trial | None = None
    ineffective: int = 0
    blocked_until: float = 0.0
    blocked_channels: int | None = None
    """Channels that could be read when the block began; None without one."""
    relieved: float | None = None
    """The scale-up of no use whose block has ended early, by its time in the status."""
    generation: int | None = None
    """Of the spec at the last look."""
    foreign: Foreign | None = None
    idle: Idle | None = None
    looked: float | None = None

    def is_due(self, now: float) -> bool:
        """Whether another evaluation is due."""
        return self.evaluated is None or now - self.evaluated >= EVALUATION_SECONDS

    @property
    def is_blind(self) -> bool:
        """Whether the lag has been unknown for so long that what was known before says nothing any more."""
        return self.misses >= MISSES

    def missed(self) -> Self:
        """After a look whose lag is unknown. One lost answer of one worker among many begins no window anew."""
        found = replace(self, misses=self.misses + 1)
        return replace(found, figures=(), recommendations=()) if found.is_blind else found

    def unsettled(self) -> Self:
        """After a look at a fleet that is being changed: its figures say nothing."""
        return replace(self, misses=0, figures=())

    def stopped(self) -> Self:
        """After a look at an object that nothing is computed for: what was seen before it stopped counts no more."""
        begun = replace(self, evaluated=None, shown=Shown(), figures=(), recommendations=(), misses=0, trial=None)
        return replace(begun, idle=None, looked=None)

    def observed(self, figures: Figures) -> Self:
        """With the figures of one more look; where looks are rare, those of the one before it stay."""
        recent = tuple(item for item in self.figures if item.time >= figures.time - WINDOW_SECONDS)
        last = tuple(item for item in self.figures[-1:] if item.time >= figures.time - LONGEST_PAUSE)
        return replace(self, misses=0, figures=(*(recent or last), figures))

    def changed(self, trial: Trial | None = None) -> Self:
        """After a change of the number: figures from before it say nothing about whether it helps."""
        return replace(self, figures=(), trial=trial)

    def recommended(self, now: float, workers: int, longest: float) -> Self:
        """With one more recommendation; what is older than the `longest` window goes, but for the one at its begin."""
        found = (*self.recommendations, Recommendation(now, workers))
        while len(found) > 1 and found[1].time <= now - longest:
            found = found[1:]
        return replace(self, recommendations=found)

    def moved(self, seconds: float) -> Self:
        """With every time changed by `seconds`, after the clock was set; those that name a change stay."""
        trial, foreign, idle = self.trial, self.foreign, self.idle
        return replace(
            self,
            evaluated=None if self.evaluated is None else self.evaluated + seconds,
            figures=tuple(replace(item, time=item.time + seconds) for item in self.figures),
            recommendations=tuple(replace(item, time=item.time + seconds) for item in self.recommendations),
            trial=None if trial is None else replace(trial, time=trial.time + seconds),
            blocked_until=self.blocked_until + seconds,
            foreign=None if foreign is None else replace(foreign, time=foreign.time + seconds),
            idle=None if idle is None else replace(idle, since=idle.since + seconds),
            looked=None if self.looked is None else self.looked + seconds,
        )
