"""Runs a program that reads tables one after the other, and takes its CPU time at the end of each.

A program prints a JSON line with `rows` when a table is read. The first ones warm compilers and caches; then come
pairs, a small and a large table. What a pair differs by is the cost of the rows between, without the start of a query,
of a file or of a session.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from statistics import median
from typing import NamedTuple

from tests.bench.figures import MILLION
from tests.bench.spark.process_tree import Cpu, cpu_of_tree

#: Longest time of a program, seconds.
PATIENCE = 1_200
#: Rows of the tables, the second one read first.
SMALL, LARGE = 100_000, 500_000
#: Large tables that are read before the first pair: the just-in-time compiler takes a million rows.
WARM = 2
#: The same of a stream, and options of the first one: planning runs once for each batch, and takes some two hundred.
WARM_STREAM = 6
FIRST_OF_STREAM = {"maxBytesPerBatch": str(1 << 20)}


class Pass(NamedTuple):
    """One table."""

    rows: int
    cpu: Cpu


class Cost(NamedTuple):
    """CPU seconds per million rows; `python` is the part of interpreters."""

    total: float
    python: float


def tables_of(pairs: int, small: str, large: str, warm: int = WARM) -> list[str]:
    """The tables in the order in which a program reads them."""
    return [large] * warm + [small, large] * pairs


def passes_of(command: Sequence[str], cores: Sequence[int], environment: Mapping[str, str], count: int) -> list[Pass]:
    """Run a program on these cores; what it read, in its order.

    Raises:
        RuntimeError: it failed, or read fewer tables.
    """
    found: list[Pass] = []
    lines: list[str] = []
    is_late = False

    def end() -> None:
        nonlocal is_late
        is_late = True
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    with subprocess.Popen(
        ["taskset", "-c", ",".join(map(str, cores)), *command],
        env=dict(environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        # a program that hangs keeps its output open
        late = threading.Timer(PATIENCE, end)
        late.start()
        try:
            before = cpu_of_tree(process.pid)
            assert process.stdout is not None
            for line in process.stdout:
                lines.append(line)
                if (rows := _rows(line)) is not None:
                    now = cpu_of_tree(process.pid)
                    found.append(Pass(rows, now.since(before)))
                    before = now
            status = process.wait()
        finally:
            late.cancel()
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    if status or len(found) != count:
        raise RuntimeError(
            f"{command[:3]} read {len(found)} of {count} tables{f' in {PATIENCE} s' if is_late else ''}, "
            f"status {status}: {''.join(lines[-20:])}"
        )
    return found


def cost_of(passes: Sequence[Pass], warm: int = WARM) -> Cost:
    """The median of all pairs behind the warm passes.

    Raises:
        RuntimeError: a table has other rows than another pass found in it.
    """
    smalls, larges = passes[warm::2], passes[warm + 1 :: 2]
    if len({each.rows for each in smalls}) > 1 or len({each.rows for each in (*passes[:warm], *larges)}) > 1:
        raise RuntimeError(f"found {[each.rows for each in passes]} rows")
    found = [_slope(small, large) for small, large in zip(smalls, larges, strict=True)]
    return Cost(median(each.total for each in found), median(each.python for each in found))


def _slope(small: Pass, large: Pass) -> Cost:
    used, rows = large.cpu.since(small.cpu), large.rows - small.rows
    return Cost(used.total / rows * MILLION, used.python / rows * MILLION)


def _rows(line: str) -> int | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found["rows"] if isinstance(found, dict) and "rows" in found else None
