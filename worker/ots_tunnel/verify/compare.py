"""Compare two tables by full scans: every row, cell and cell version (docs/architecture.md 4.5).

`ots-tunnel verify` adds samples, a state file and rechecks; see `verify.job`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from ots_tunnel.verify.comparison import KEPT_DIFFERENCES, Comparison, Difference, DifferingRow
from ots_tunnel.verify.scan import ALL_VERSIONS, ReadsTable, Scan, ScanPair, record_in

__all__ = [
    "ALL_VERSIONS",
    "KEPT_DIFFERENCES",
    "Comparison",
    "Difference",
    "DifferingRow",
    "Progress",
    "ReadsTable",
    "compare_tables",
]

#: Unit of the slices, bytes: the minimum of the service (docs/data-plane.md 2.7).
SLICE_UNIT_BYTES = 1_048_576

#: Slices scanned in parallel.
PARALLEL = 4

#: Called after every page with the number of rows of the first table that are compared.
Progress = Callable[[int], None]


async def compare_tables(
    a: ReadsTable,
    table_a: str,
    b: ReadsTable,
    table_b: str,
    *,
    parallel: int = PARALLEL,
    progress: Progress | None = None,
    slice_bytes: int = 8 * SLICE_UNIT_BYTES,
) -> Comparison:
    """Compare every row, cell and cell version of two tables that do not change meanwhile.

    Args:
        a: instance of the first table, usually the source.
        table_a: first table; its slices are scanned in both.
        b: instance of the second table.
        table_b: second table.
        parallel: slices scanned in parallel.
        progress: called with the number of compared rows of the first table.
        slice_bytes: approximate size of a slice of the first table.

    Raises:
        ServiceError, TransportError: a scan failed permanently.
        CodecError: an answer is malformed.
    """
    slices = await a.compute_splits(table_a, max(1, slice_bytes // SLICE_UNIT_BYTES), unit_bytes=SLICE_UNIT_BYTES)
    meter = _Meter(progress)
    results: list[Comparison | None] = [None] * len(slices)
    waiting = deque(enumerate(slices))

    async def scan() -> None:
        while waiting:
            index, part = waiting.popleft()
            results[index] = await _compare_slice(Scan(a, table_a, part), Scan(b, table_b, part), meter)

    async with asyncio.TaskGroup() as group:
        for lane in range(min(parallel, len(slices))):
            group.create_task(scan(), name=f"compare-{lane}")
    total = Comparison()
    for result in results:
        if result is not None:
            total.add(result)
    return total


class _Meter:
    """Sums up the rows of all slices."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._rows = 0

    def add(self, rows: int) -> None:
        self._rows += rows
        if self._progress is not None:
            self._progress(self._rows)


async def _compare_slice(a: Scan, b: Scan, meter: _Meter) -> Comparison:
    result = Comparison()
    pair = ScanPair(a, b, result, record_in(result))
    try:
        before = 0
        while await pair.step():
            meter.add(result.rows - before)
            before = result.rows
    finally:
        await pair.close()
    return result
