"""The order in which the worker processes of pytest-xdist get the tests: what lasts long begins first.

A worker gets its next unit of work while it still has one in its queue, so that a unit waits behind the one before it.
Long ones are therefore handed out with a short one in between; otherwise the last long test begins when the others end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Generic, TypeVar

import pytest

Item = TypeVar("Item")


@dataclass
class Unit(Generic[Item]):
    """Tests that one worker runs in a row.

    Args:
        seconds: about how long they last, by the mark `lasts`; 0 for those without it.
    """

    seconds: float = 0.0
    items: list[Item] = field(default_factory=list)


def arranged(items: Sequence[pytest.Item], workers: int) -> list[pytest.Item]:
    """The same tests in the order in which `workers` processes are to get them."""
    units: dict[str, Unit[pytest.Item]] = {}
    for item in items:
        group = item.get_closest_marker("xdist_group")
        unit = units.setdefault(f"group {group.args[0]}" if group else item.nodeid, Unit())
        unit.items.append(item)
        # a parameter may last longer than the others of its function
        unit.seconds += max((float(mark.args[0]) for mark in item.iter_markers("lasts")), default=0.0)
    return [item for unit in in_turn(list(units.values()), workers) for item in unit.items]


def in_turn(units: Sequence[Unit[Item]], workers: int) -> list[Unit[Item]]:
    """Long units, the longest first, each followed by a short one; short ones keep their order.

    At first every worker gets one unit, then every worker a second one; later each gets two at a time.
    """
    long = sorted((unit for unit in units if unit.seconds), key=lambda unit: -unit.seconds)
    short = [unit for unit in units if not unit.seconds]
    first = [*long[:workers], *short[:workers]]
    later = zip_longest(long[workers:], short[workers:])
    return [*first, *(unit for pair in later for unit in pair if unit is not None)]
