"""What the machine copies, and what a work takes from the kernel, as rows of their own."""

from __future__ import annotations

import mmap
import resource

import pytest

from tests.bench.bench_scene import record_bytes
from tests.bench.consumers import Report
from tests.bench.emulator_target import Goal
from tests.bench.figures import Stretch
from tests.bench.machine import COPIED, copy_rate
from tests.bench.programs.milestone_worker import Milestone, Point
from tests.bench.tables.speed import memory_table, sink_table, table
from tests.bench.throughput import taken_anew

PAGE = resource.getpagesize()


def stretch(faults: int) -> Stretch:
    """A run that gets so many pages for its last thousand rows, behind 70 for its start."""
    return Stretch.of(Report(marked=Point(10, 1, 1, 70), last=Point(1_010, 2, 2, 70 + faults)))


def test_the_pages_of_the_start_do_not_count() -> None:
    assert stretch(5).taken_per_row == pytest.approx(5 * PAGE / 1_000)


def test_a_share_is_that_of_the_bytes_of_the_rows() -> None:
    found = taken_anew("copy", [stretch(0), stretch(500), stretch(900)], "settings")

    assert found.ours == pytest.approx(500 * PAGE / 1_000 / record_bytes())
    assert found.met is None


def test_what_a_process_gets_is_in_its_points() -> None:
    marks, pages = Milestone(1), 64
    marks.confirmed(1)
    before = marks.last
    with mmap.mmap(-1, pages * PAGE) as memory:
        memory.write(b"x" * len(memory))
    marks.confirmed(2)

    assert before is not None
    assert marks.last is not None
    assert marks.last.faults >= before.faults + pages


def test_a_copy_takes_time() -> None:
    assert 0 < copy_rate(1 << 20) < 1e12


def test_memory_has_a_table_of_its_own() -> None:
    found = [
        taken_anew("count", [stretch(0)], "settings").document(),
        Goal(COPIED, 6.54, None, "GB/s").document(),
        taken_anew("JSON lines into files", [stretch(0)], "settings").document(),
    ]

    assert memory_table(found).splitlines()[2:] == [
        "| this machine: memory that one core copies | 6.54 | GB/s |",
        "| count: memory taken anew | 0 | of the rows' bytes |",
        "| JSON lines into files: memory taken anew | 0 | of the rows' bytes |",
    ]
    assert memory_table([]) == sink_table(found).replace("sinks", "memory")
    assert table(found).count("\n") == 2
