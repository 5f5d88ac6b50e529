"""Makes a failing story shorter: leaves out whatever is not needed to break the same rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

from tests.simulation.machine.determinism import wall_seconds

#: Data of a story: a frozen dataclass whose `happenings` names the field with what happens in it.
Story = TypeVar("Story", bound=Any)

#: Numbers of a story that a shorter one may have less of, with the least of each.
_NUMBERS = {"workers": 1, "replicas": 1, "java": 0, "partitions": 1, "keys": 1, "burst": 1, "lanes": 1}


def shrink(scenario: Story, fails: Callable[[Story], bool], *, seconds: float = 120.0) -> Story:
    """The smallest scenario found within a time of the machine that still breaks the rule."""
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


def _smaller(scenario: Story) -> Iterator[Story]:
    """Scenarios that are a little smaller, those that leave out most first."""
    name = scenario.happenings
    events = getattr(scenario, name)
    for part in _without_parts(events):
        yield replace(scenario, **{name: part})
    for number, least in _NUMBERS.items():
        value = getattr(scenario, number, least)
        if value > least:
            yield replace(scenario, **{number: max(least, value // 2)})
    # what happens after the faults are declared over breaks another promise
    length = max(round(scenario.length * 0.6, 1), *(event.at for event in events), 24.0)
    if length < scenario.length:
        yield replace(scenario, length=length)
    for index, event in enumerate(events):
        if event.seconds > 1:
            changed = replace(event, seconds=round(event.seconds * 0.6, 3))
            yield replace(scenario, **{name: (*events[:index], changed, *events[index + 1 :])})


def _without_parts(events: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    size = len(events)
    while size >= 1:
        for start in range(0, len(events), size):
            yield (*events[:start], *events[start + size :])
        size //= 2
