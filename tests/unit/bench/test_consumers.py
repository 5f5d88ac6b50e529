"""The reports of workers, and the checks of reports."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.bench.consumers import Consumer, Report, check_count, report_of
from tests.bench.contenders import Contender, Job
from tests.bench.programs.milestone_worker import Milestone, Point


def test_the_last_line_of_a_vendors_program() -> None:
    line = '{"rows": 7, "seconds": 1.5, "cpuSeconds": 1, "touched": 3, "busySeconds": 0.5, "sent": [1], "delayed": [2]}'

    assert report_of(["Picked up JAVA_OPTIONS", line]) == Report(7, 3, 0.5, [1], [2])


def test_the_progress_of_a_vendors_program() -> None:
    report = report_of(['{"rows": 7, "seconds": 1.5, "marked": [3, 0.5, 0.25], "last": [7, 1.5, 1.25]}'])

    assert (report.marked, report.last) == (Point(3, 0.5, 0.25), Point(7, 1.5, 1.25))


def test_our_worker_reports_likewise() -> None:
    marks = Milestone(3)
    for rows in (2, 4, 7):
        marks.confirmed(rows)
    report = report_of([marks.line()])

    assert report.marked is not None
    assert report.last is not None
    assert (report.marked.rows, report.last.rows) == (4, 7)
    assert 0 < report.marked.cpu_seconds <= report.last.cpu_seconds


def test_a_sink_that_confirms_later_is_measured_by_what_it_has_taken() -> None:
    marks = Milestone(3)
    for rows in (2, 2, 3):
        marks.taken(rows)
    taken = marks.last
    marks.confirmed(4)
    marks.confirmed(7)

    assert marks.marked is not None
    assert taken is not None
    assert marks.last is not None
    assert (marks.marked.rows, taken.rows, marks.last.rows) == (4, 7, 7)
    assert marks.last.seconds > taken.seconds


def test_a_mark_that_was_not_reached_is_not_reported() -> None:
    marks = Milestone(3)
    marks.confirmed(2)

    assert marks.line() == ""


def test_the_lines_of_our_worker_are_added_up() -> None:
    lines = [
        '{"action": "started", "rows": 1}',
        '{"touched": 3, "sent": [1], "delayed": [2]}',
        '{"touched": 0, "sent": [4], "delayed": [5]}',
        '{"action": "stopped", "rows": 7}',
        "{no JSON",
    ]

    assert report_of(lines) == Report(7, 3, 0.0, [1, 4], [2, 5])


@pytest.mark.parametrize(("mode", "touched"), [("count", 0), ("copy", 0), ("column", 10), ("all", 80)])
def test_every_row_and_column_is_counted(mode: str, touched: int) -> None:
    check_count(Contender.JAVA, Job(mode), 10, Report(10, touched))

    for report in (Report(9, touched), Report(11, touched), Report(10, touched + 1)):
        with pytest.raises(RuntimeError, match="rows"):
            check_count(Contender.JAVA, Job(mode), 10, report)


async def test_a_worker_that_fails_behind_its_report_counts_for_nothing(tmp_path: Path) -> None:
    with (
        Consumer(Contender.OURS, [sys.executable, "-c", "raise SystemExit(3)"], tmp_path) as consumer,
        pytest.raises(RuntimeError, match="status 3"),
    ):
        await consumer.ended(30)
