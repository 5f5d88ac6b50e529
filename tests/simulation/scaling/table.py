"""The comparison as a table, and what Auto has to reach in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean

from tests.simulation.scaling.figures import Figures

#: Share of the time that Auto may be late beyond a fixed fleet of the right size, in the mean of a load's stories.
LATE_BEYOND_FIXED = 0.15
_HEAD = ("load", "number of workers", "stories", "changes", "most", "turns", "late", "worst", "workers")


def lines(found: Sequence[Figures]) -> Iterator[str]:
    """A line for each load and way to choose the number; means of the stories, `most` and `worst` of one."""
    rows = [_HEAD, *(_row(group) for group in groups(found))]
    for row in rows:
        yield f"{row[0]:8} {row[1]:18} " + " ".join(f"{text:>8}" for text in row[2:])


def groups(found: Sequence[Figures]) -> Iterator[list[Figures]]:
    """The stories of each load and chooser."""
    for load in dict.fromkeys(each.load for each in sorted(found, key=lambda each: int(each.name.rpartition(":")[2]))):
        for chooser in ("Fixed", "HPA", "Auto"):
            if group := [each for each in found if (each.load, each.chooser) == (load, chooser)]:
                yield group


def broken(found: Sequence[Figures]) -> Iterator[str]:
    """What Auto does not reach: few changes beside the HPA, and little late time beside both."""
    means = {(group[0].load, group[0].chooser): group for group in groups(found)}
    for (load, chooser), auto in means.items():
        if chooser != "Auto":
            continue
        fixed, hpa = means.get((load, "Fixed")), means.get((load, "HPA"))
        if fixed is not None and _late(auto) > _late(fixed) + LATE_BEYOND_FIXED:
            yield f"{load}: Auto is late for {_late(auto):.1%} of the time, a fixed fleet for {_late(fixed):.1%}"
        if hpa is not None and _late(auto) > _late(hpa):
            yield f"{load}: Auto is late for {_late(auto):.1%} of the time, an HPA on lag for {_late(hpa):.1%}"
        if hpa is not None and _changes(auto) > _changes(hpa):
            yield f"{load}: Auto changes the number {_changes(auto):.1f} times, an HPA on lag {_changes(hpa):.1f} times"


def _row(group: list[Figures]) -> tuple[str, ...]:
    first = group[0]
    name = {"Fixed": f"fixed {first.replicas}", "HPA": "HPA on lag"}.get(first.chooser, first.chooser)
    return (
        first.load,
        name,
        str(len(group)),
        f"{_changes(group):.1f}",
        str(max(each.changes for each in group)),
        f"{fmean(each.turns for each in group):.1f}",
        f"{_late(group):.1%}",
        f"{max(each.late for each in group):.1%}",
        f"{fmean(each.workers for each in group):.1f}",
    )


def _late(group: list[Figures]) -> float:
    return fmean(each.late for each in group)


def _changes(group: list[Figures]) -> float:
    return fmean(each.changes for each in group)
