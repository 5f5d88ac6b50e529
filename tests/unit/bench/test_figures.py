"""Slopes, quantiles and the rows of bench.json."""

from __future__ import annotations

import pytest

from tests.bench.consumers import Report
from tests.bench.figures import Figure, Rounds, Stretch, quantile, windows
from tests.bench.programs.milestone_worker import Point


def stretch(start: float, cpu: float, seconds: float = 2.0) -> Stretch:
    """A worker that takes `start` CPU seconds before its first row and `cpu` per million of them."""
    marked, last = Point(100_000, 1.0, start + cpu * 0.1), Point(300_000, 1.0 + seconds, start + cpu * 0.3)
    return Stretch.of(Report(marked=marked, last=last, resident_mb=40.0))


def test_the_start_does_not_count() -> None:
    assert stretch(0.1, 2.5).cpu_per_million == pytest.approx(2.5)
    assert stretch(7.0, 2.5).cpu_per_million == pytest.approx(2.5)


def test_the_rate_is_that_of_the_additional_rows() -> None:
    assert stretch(1, 1, seconds=4).rows_per_second == pytest.approx(50_000)


@pytest.mark.parametrize("report", [Report(), Report(marked=Point(5, 1, 1), last=Point(5, 1, 1))])
def test_without_a_mark_there_is_nothing_to_measure(report: Report) -> None:
    with pytest.raises(RuntimeError, match="no rows between"):
        Stretch.of(report)


@pytest.mark.parametrize(("goal", "met"), [(None, None), (2, True), (2.1, False)])
def test_a_row_of_the_file(goal: float | None, met: bool | None) -> None:
    assert Figure("count: CPU", 1, 2, "CPU s", goal).document() == {
        "name": "count: CPU",
        "ours": 1,
        "peer": 2,
        "unit": "CPU s",
        "ratio": 2,
        "goal": goal,
        "met": met,
    }


def test_a_higher_rate_is_better() -> None:
    assert Figure("rate", 30, 10, "rows/s", 2.5, less_is_better=False).met is True
    assert Figure("rate", 30, 10, "rows/s", 2.5).met is False


def test_a_cost_of_nothing_is_better_by_any_factor() -> None:
    assert Figure("idle", 0, 1, "CPU s", 1000).met is True


@pytest.mark.parametrize(("share", "found"), [(0.5, 5), (0.51, 6), (0.99, 10), (1, 10), (0, 1)])
def test_a_quantile_is_one_of_the_values(share: float, found: int) -> None:
    assert quantile(range(10, 0, -1), share) == found


def test_no_values_have_no_quantile() -> None:
    with pytest.raises(ValueError, match="no values"):
        quantile([], 0.5)


def test_windows_leave_out_earlier_and_later_rows() -> None:
    sent, delayed = [99, 100, 149, 150, 199, 200], [1, 2, 3, 4, 5, 6]

    assert windows(sent, delayed, begin=100, length=50, count=2) == [[2, 3], [4, 5]]


@pytest.mark.parametrize(("each", "begun"), [(1.0, 5), (30.0, 3), (99.0, 1), (500.0, 1)])
def test_no_round_begins_that_would_end_too_late(each: float, begun: int) -> None:
    now = 0.0
    rounds = Rounds(5, 100, lambda: now)

    for number in rounds:
        assert number == rounds.begun
        now += each

    assert rounds.begun == begun
