"""What workers say of themselves, and when that is held against them."""

from __future__ import annotations

import pytest

from tests.bench.consumers import Report, check_count, report_of
from tests.bench.sides import Job, Side


def test_the_last_line_of_a_vendors_program() -> None:
    line = '{"rows": 7, "seconds": 1.5, "cpuSeconds": 1, "touched": 3, "busySeconds": 0.5, "sent": [1], "delayed": [2]}'

    assert report_of(["Picked up JAVA_OPTIONS", line]) == Report(7, 3, 0.5, [1], [2])


def test_the_lines_of_ours_are_added_up() -> None:
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
    check_count(Side.JAVA, Job(mode), 10, Report(10, touched))

    for report in (Report(9, touched), Report(11, touched), Report(10, touched + 1)):
        with pytest.raises(RuntimeError, match="rows"):
            check_count(Side.JAVA, Job(mode), 10, report)
