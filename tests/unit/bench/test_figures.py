"""Slopes, medians and the rows of bench.json."""

from __future__ import annotations

import pytest

from tests.bench.consumers import Usage
from tests.bench.figures import Figure, Pair, figures_of


def pair(start: float, cpu: float, seconds: float = 2.0) -> Pair:
    """A worker that takes `start` CPU seconds before its first row and `cpu` per million of them."""
    return Pair(100_000, 300_000, Usage(start + cpu * 0.1, 1.0, 30.0), Usage(start + cpu * 0.3, 1.0 + seconds, 40.0))


def test_the_start_does_not_count() -> None:
    assert pair(0.1, 2.5).cpu_per_million == pytest.approx(2.5)
    assert pair(7.0, 2.5).cpu_per_million == pytest.approx(2.5)


def test_the_rate_is_that_of_the_additional_rows() -> None:
    assert pair(1, 1, seconds=4).rows_per_second == pytest.approx(50_000)


def test_figures_are_medians_and_ratios_ours_by_the_peers() -> None:
    cpu, rate, memory = figures_of("copy", [pair(1, 9), pair(1, 2), pair(1, 3)], [pair(0, 6), pair(0, 4), pair(0, 99)])

    assert (cpu.name, cpu.unit) == ("copy: CPU", "CPU s per million rows")
    assert (cpu.ours, cpu.peer, cpu.ratio) == pytest.approx((3, 6, 0.5))
    assert rate.ratio == pytest.approx(1)
    assert memory.ours == 40


@pytest.mark.parametrize(("goal", "met"), [(None, None), (0.4, False), (0.5, True)])
def test_a_row_of_the_file(goal: float | None, met: bool | None) -> None:
    assert Figure("count: CPU", 1, 2, "CPU s", goal).document() == {
        "name": "count: CPU",
        "ours": 1,
        "peer": 2,
        "unit": "CPU s",
        "ratio": 0.5,
        "goal": goal,
        "met": met,
    }
