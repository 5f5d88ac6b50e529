"""What the acts of a story revolve around: a story of everything rarely comes to what breaks one certain promise.

everything   any act at any time
end          kills, rollouts and slow nodes in the seconds around the end time, in which the most is written
replacement  workers die before the end time and come back with nothing to do, while the service still waits for those
             that died
hand-over    channels change hands while some workers cannot be asked
suspension   the object is suspended again and again, while workers drain slowly
operators    a second operator, whose scope overlaps, comes and goes, and the first one stays away for minutes
blindness    the API server refuses what the operator has to look at, for minutes, while things change
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tests.simulation.fleet.acts import KINDS, Act


@dataclass(frozen=True, slots=True)
class Plot:
    """What is drawn.

    Args:
        weight: how often it is drawn.
        kinds: names of acts, as often as they are to come; all of them by their own weights without one.
        lengths: seconds in which writers write, one of which is drawn.
        ends: shares of the length after which the tunnel ends, one of which is drawn; 0 means never.
        replicas, partitions: one of which is drawn: where two workers share channels, one can be wrong about another's.
        beats: interval and timeout of the heartbeats, one pair of which is drawn.
        before, after: seconds around the end time in which everything happens; at any time where both are 0.
    """

    weight: int
    kinds: Sequence[str] = ()
    lengths: tuple[float, ...] = (300.0,)
    ends: tuple[float, ...] = (0.0,)
    replicas: tuple[int, ...] = (1, 2, 3)
    partitions: tuple[int, ...] = (1, 2, 4)
    beats: tuple[tuple[int, int], ...] = ((10, 60), (5, 30), (5, 20))
    before: float = 0.0
    after: float = 0.0


PLOTS: Final[Mapping[str, Plot]] = {
    "everything": Plot(6, lengths=(600.0, 1200.0), ends=(0.0, 0.0, 0.6)),
    "end": Plot(
        5,
        (
            *("kill a worker", "kill a worker", "kill a worker", "delete a pod", "the cluster is slow", "edit workers"),
            *("scale", "pause a worker", "split", "merge", "one page is unreachable", "kill the operator", "dark"),
        ),
        ends=(0.6,),
        replicas=(1, 2, 2, 3),
        partitions=(1, 2, 4, 4),
        before=45.0,
        after=15.0,
    ),
    "replacement": Plot(
        4,
        ("kill a worker", "kill a worker", "kill a worker", "delete a pod", "split", "pause a worker"),
        ends=(0.6,),
        replicas=(2, 2, 3),
        partitions=(2, 4),
        beats=((10, 60), (10, 60), (5, 30)),
        before=40.0,
        after=5.0,
    ),
    "hand-over": Plot(
        3,
        (
            *("one page is unreachable", "one page is unreachable", "kill a worker", "delete a pod", "scale", "split"),
            *("pause a worker", "pages are unreachable", "edit workers", "the cluster is slow"),
        ),
        replicas=(2, 3),
        partitions=(2, 4),
    ),
    "suspension": Plot(
        2,
        (
            *("suspend", "suspend", "the cluster is slow", "dark", "pause a worker", "delete a pod", "events are late"),
            *("watches break", "a deletion is missed", "kill the operator"),
        ),
    ),
    "blindness": Plot(
        3,
        (
            *("API refuses a kind", "API refuses a kind", "API refuses a kind", "kill a worker", "delete a pod"),
            *("dark for the operator", "pages are unreachable", "scale"),
        ),
        lengths=(500.0,),
    ),
    "operators": Plot(
        2,
        (
            *("a second operator", "a second operator", "a second operator", "the operator stays away"),
            *(
                "the operator stays away",
                "kill the operator",
                "crash at a write",
                "API reads are stale",
                "watches break",
            ),
            *("API answers get lost", "versions are compacted", "events are late", "scale", "suspend", "edit workers"),
            *("somebody edits the Deployment", "delete and apply again", "API is slow", "kill a worker"),
        ),
        lengths=(600.0,),
    ),
}


def draw_plot(chance: random.Random) -> str:
    """The name of a plot."""
    return chance.choices(list(PLOTS), [plot.weight for plot in PLOTS.values()])[0]


def draw_acts(chance: random.Random, plot: Plot, length: float, end: float, count: int) -> tuple[Act, ...]:
    """Events in order of time, half of them in bursts: two events close to each other find the most.

    Args:
        length: seconds in which writers write.
        end: seconds after which the tunnel ends; 0 means never.
        count: number of events.
    """
    names = list(plot.kinds or KINDS)
    weights = [1 if plot.kinds else KINDS[name].weight for name in names]
    acts: list[Act] = []
    # most calls that create something are made in the first seconds
    if not plot.kinds and chance.random() < 0.4:
        acts.append(KINDS["crash at a write"].draw(chance, "crash at a write", 0.0))
    first, last = (end - plot.before, end + plot.after) if plot.before else (0.0, 0.8 * length)
    at = 0.0
    for _ in range(count):
        name = chance.choices(names, weights)[0]
        at = at + chance.uniform(0, 15) if at and chance.random() < 0.5 else chance.uniform(first, last)
        acts.append(KINDS[name].draw(chance, name, min(at, last)))
    return tuple(sorted(acts, key=lambda act: act.at))
