"""Where several processes run the tests, long ones begin first, and none of them waits behind another one."""

from __future__ import annotations

import pytest

from tests.support.order import Unit, in_turn

UNITS = [Unit(seconds, [name]) for name, seconds in (("a", 0), ("10", 10), ("b", 0), ("5", 5), ("c", 0), ("30", 30))]


@pytest.mark.parametrize(
    ("workers", "expected"),
    [
        (1, "30 a 10 b 5 c"),
        (2, "30 10 a b 5 c"),
        (9, "30 10 5 a b c"),
    ],
)
def test_the_longest_begins_first_and_no_long_one_waits_behind_it(workers: int, expected: str) -> None:
    assert " ".join(name for unit in in_turn(UNITS, workers) for name in unit.items) == expected


def test_units_without_a_counterpart_are_kept() -> None:
    assert in_turn(UNITS[:1], 2) == UNITS[:1]
    assert in_turn([], 2) == []
    assert in_turn([UNITS[1], UNITS[3]], 1) == [UNITS[1], UNITS[3]]
