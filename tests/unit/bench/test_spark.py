"""Costs in Spark: what a tree of processes used, pairs of passes, and the table."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.bench.spark import passes
from tests.bench.spark.passes import WARM, Pass, cost_of, passes_of, tables_of
from tests.bench.spark.process_tree import Cpu, cpu_of_tree
from tests.bench.spark.works import WORKS
from tests.bench.tables.speed import SPARK, spark_table
from tests.support.programs.processes import inherited_environment
from tests.support.waiting import wait_until

#: Uses half a second of CPU in a child, which ends, and as much itself; then waits for its input to end.
BUSY = """
import subprocess, sys, time
code = "import time\\nend = time.process_time() + 0.5\\nwhile time.process_time() < end: pass"
subprocess.run([sys.executable, "-c", code], check=True)
exec(code)
print("ready", flush=True)
sys.stdin.read()
"""


def test_a_tree_has_what_its_ended_children_used() -> None:
    with subprocess.Popen([sys.executable, "-c", BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        wait_until(lambda: cpu_of_tree(process.pid).total >= 0.99, 30)
        found = cpu_of_tree(process.pid)
        process.communicate(timeout=30)

    assert found.total < 5


def test_an_interpreter_that_a_jvm_has_started_counts_as_python_when_it_has_ended(tmp_path: Path) -> None:
    ticks = os.sysconf("SC_CLK_TCK")

    def process(pid: int, parent: int, name: str, own: int, ended: int) -> None:
        folder = tmp_path / str(pid)
        folder.mkdir(exist_ok=True)
        times = (own * ticks, 0, ended * ticks, 0)
        (folder / "stat").write_text(f"{pid} ({name}) S {parent} {'0 ' * 9}{' '.join(map(str, times))} 20 0")

    process(10, 1, "python", 1, 0)
    process(11, 10, "java", 5, 0)
    process(12, 11, "python3.11", 3, 0)
    process(13, 1, "python", 99, 0)  # of somebody else
    assert cpu_of_tree(10, tmp_path) == Cpu(9, 4)

    (tmp_path / "12" / "stat").unlink()
    process(11, 10, "java", 5, 3)
    assert cpu_of_tree(10, tmp_path) == Cpu(9, 4)


def test_a_pair_costs_what_the_large_table_takes_more() -> None:
    small, large = Pass(100, Cpu(1.0, 0.5)), Pass(500, Cpu(1.8, 0.7))
    slow = Pass(500, Cpu(9.0, 9.0))
    passes = [slow] * WARM + [small, large] * 2 + [small, slow]

    cost = cost_of(passes)

    assert cost.total == pytest.approx(0.8 / 400 * 1_000_000)
    assert cost.python == pytest.approx(0.2 / 400 * 1_000_000)


def test_passes_that_found_other_rows_are_no_measurement() -> None:
    small, large = Pass(100, Cpu(1, 1)), Pass(500, Cpu(2, 2))

    with pytest.raises(RuntimeError, match="found"):
        cost_of([large] * WARM + [small, large, small, Pass(499, Cpu(2, 2))])


def test_a_program_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "PATIENCE", 1)
    began = time.monotonic()

    with pytest.raises(RuntimeError, match="read 0 of 1 tables in 1 s"):
        passes_of(["sleep", "30"], [min(os.sched_getaffinity(0))], inherited_environment(), 1)

    assert time.monotonic() - began < 20


def test_a_program_is_measured_table_by_table(tmp_path: Path) -> None:
    program = 'print("a line"); print(\'{"rows": 5}\'); print(\'{"rows": 1}\')'
    cores = [min(os.sched_getaffinity(0))]

    found = passes_of([sys.executable, "-c", program], cores, inherited_environment(), 2)

    assert [each.rows for each in found] == [5, 1]
    with pytest.raises(RuntimeError, match="read 2 of 3 tables, status 0: a line"):
        passes_of([sys.executable, "-c", program], cores, inherited_environment(), 3)


def test_every_pair_begins_with_the_small_table() -> None:
    assert tables_of(2, "s", "l") == ["l"] * WARM + ["s", "l", "s", "l"]
    assert tables_of(1, "s", "l", warm=1) == ["l", "s", "l"]


def test_the_table_has_a_line_for_each_work() -> None:
    name = f"{SPARK}: {WORKS[0].words}"
    documents = [
        {"name": f"{name} (rows of 418 bytes)", "ours": 4.1, "goal": 4.5, "met": True},
        {"name": f"{name}, Python alone (rows of 418 bytes)", "ours": 2.5, "goal": 2.0, "met": False},
        {"name": f"{name}, beside a loop in Python (rows of 418 bytes)", "ours": 4.1, "peer": 11.2},
        {"name": f"{name}, beside a loop in Java (rows of 418 bytes)", "ours": 4.1, "peer": 2.6},
        {"name": "another", "ours": 1, "goal": None, "met": None},
    ]

    assert spark_table(documents).splitlines()[2:] == [
        "| read 10 columns into nothing | 4.1 | 4.5 | yes | 2.5 | 2 | 11.2 | 2.6 |"
    ]
    assert spark_table([]) == "No run of `make bench` with Spark has been kept yet.\n"
