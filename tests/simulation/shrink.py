"""Makes a failing story shorter: leaves out whatever is not needed to break the same rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.simulation.determinism import wall_seconds
from tests.simulation.faults import Fault
from tests.simulation.scenario import Scenario

#: Tells whether a scenario still breaks the rule.
Fails = Callable[[Scenario], bool]


def shrink(scenario: Scenario, fails: Fails, *, seconds: float = 120.0) -> Scenario:
    """The smallest scenario found within a time of the machine."""
    until = wall_seconds() + seconds
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for candidate in _smaller(scenario):
            if wall_seconds() > until:
                return scenario
            if fails(candidate):
                scenario, is_smaller = candidate, True
                break
    return scenario


def _smaller(scenario: Scenario) -> Iterator[Scenario]:
    """Scenarios that are a little smaller, those that leave out most first."""
    for faults in _without_parts(scenario.faults):
        yield replace(scenario, faults=faults)
    for name, least in (("workers", 1), ("partitions", 1), ("keys", 1), ("burst", 1), ("lanes", 1)):
        value = getattr(scenario, name)
        if value > least:
            yield replace(scenario, **{name: max(least, value // 2)})
    if scenario.length > 40:
        yield replace(scenario, length=round(scenario.length * 0.6, 1))
    for index, fault in enumerate(scenario.faults):
        if fault.seconds > 1:
            changed = replace(fault, seconds=round(fault.seconds * 0.6, 3))
            yield replace(scenario, faults=(*scenario.faults[:index], changed, *scenario.faults[index + 1 :]))


def _without_parts(faults: tuple[Fault, ...]) -> Iterator[tuple[Fault, ...]]:
    size = len(faults)
    while size >= 1:
        for start in range(0, len(faults), size):
            yield (*faults[:start], *faults[start + size :])
        size //= 2
