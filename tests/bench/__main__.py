"""Measure our worker beside the vendor's Go worker, on one emulator and the same tables.

    python -m tests.bench [--rounds N] [--rows SMALL LARGE] [--profile] [--output bench.json]

The emulator has one core, the worker another. CPU seconds are those of the worker's process tree, as the slope between
two sizes, so that the start does not count; rows per second also wait for the emulator.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import re
import signal
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from ots_tunnel.protocol.compiled import CODEC, native
from tests.bench.consumers import (
    CHECKPOINT,
    HEARTBEAT,
    LANES,
    Usage,
    Work,
    measure_ours,
    measure_theirs,
    profile_ours,
)
from tests.bench.figures import Figure, Pair, add_to_file, figures_of
from tests.bench.stand import CHANNELS, KEYS, REQUEST_ROWS, Stand, record_bytes, stand_on
from tests.oracle.go_program import GoUnavailable, build_go_worker

PROFILE_LINES = 15
SIDES = ("ours", "theirs")
COPIES = {"ours": "copy_ours", "theirs": "copy_theirs"}
#: What both sides are set to, said in the name of every figure.
SETTINGS = (
    f"{CHANNELS} stream channels, PUT rows of {record_bytes()} bytes, "
    f"heartbeat {HEARTBEAT} s, checkpoint {CHECKPOINT} s"
)
MODES = {
    "count": f"count ({SETTINGS})",
    "copy": f"copy ({SETTINGS}, {LANES} writer per channel, {REQUEST_ROWS} rows per request)",
}


def main() -> int:
    """Measure, print, write the file."""
    options = _options()
    if native is None:
        print("the compiled codec is not there: build the package where there is a compiler", file=sys.stderr)
        return 2
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        print("two cores are needed: one for the emulator, one for the worker", file=sys.stderr)
        return 2
    try:
        program = build_go_worker()
    except GoUnavailable as reason:
        print(f"the vendor's Go worker cannot be built: {reason}", file=sys.stderr)
        return 2
    figures = asyncio.run(_bench(options, program, cores[0], cores[1]))
    _print_table(figures, options)
    add_to_file(options.output, (figure.document() for figure in figures))
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=3, help="runs of everything; medians are shown (default 3)")
    parser.add_argument("--rows", type=int, nargs=2, default=(100_000, 300_000), metavar=("SMALL", "LARGE"))
    parser.add_argument("--profile", action="store_true", help="also print where our worker spends its time")
    parser.add_argument("--output", type=Path, default=Path("bench.json"))
    options = parser.parse_args()
    small, large = options.rows
    if not 0 < small < large or large < KEYS or options.rounds < 1:
        parser.error(f"--rows needs two growing numbers, the second at least {KEYS}, --rounds at least 1")
    return options


async def _bench(options: argparse.Namespace, program: Path, server_core: int, worker_core: int) -> list[Figure]:
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)  # the processes are to end, too
    with tempfile.TemporaryDirectory() as folder:
        async with stand_on(server_core) as stand:
            bench = Bench(stand, Path(folder), program, worker_core, {f"changes_{rows}": rows for rows in options.rows})
            await bench.prepare()
            figures = await bench.rounds(options.rounds)
            if options.profile:
                await bench.profile()
    return figures


@dataclass
class Bench:
    """All runs on one stand; `sizes` are the source tables with their changes, the small one first."""

    stand: Stand
    folder: Path
    program: Path
    core: int
    sizes: dict[str, int]

    async def prepare(self) -> None:
        for table, rows in self.sizes.items():
            _say(f"writing {rows:,} changes into table {table}")
            await self.stand.create_source(table, rows)
        for side in SIDES:
            await self.stand.create_copy(COPIES[side])

    async def rounds(self, count: int) -> list[Figure]:
        """Everything so often, one side right after the other; in the end both copies must be right."""
        pairs: dict[tuple[str, str], list[Pair]] = defaultdict(list)
        for number, mode, side in itertools.product(range(count), MODES, SIDES):
            small, large = [await self._run(side, mode, table) for table in self.sizes]
            pair = Pair(*self.sizes.values(), small, large)
            pairs[mode, side].append(pair)
            _say(f"round {number + 1}: {mode}, {side}: {pair.cpu_per_million:.2f} CPU s per million rows")
        for side in SIDES:
            comparison = await self.stand.compare([*self.sizes][-1], COPIES[side])
            if not comparison.equal:
                raise RuntimeError(f"{COPIES[side]} is not equal to its source: {comparison}")
        return [
            figure
            for mode, name in MODES.items()
            for figure in figures_of(name, *(pairs[mode, side] for side in SIDES))
        ]

    async def profile(self) -> None:
        """Where our worker spends its time."""
        for mode in MODES:
            work, table = Work(mode, COPIES["ours"]), [*self.sizes][-1]
            stats = await profile_ours(self.stand, table, work, self.folder, self.core)
            print(f"\nprofile of our worker, {mode}: top {PROFILE_LINES} by own time")
            stats.sort_stats("tottime").print_stats(PROFILE_LINES)

    async def _run(self, side: str, mode: str, table: str) -> Usage:
        work = Work(mode, COPIES[side])
        if side == "ours":
            return await measure_ours(self.stand, table, work, self.folder, self.core)
        return await measure_theirs(self.stand, table, work, self.program, self.folder, self.core)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _print_table(figures: list[Figure], options: argparse.Namespace) -> None:
    small, large = options.rows
    table = Table(
        title=f"Our worker beside the vendor's Go worker (codec: {CODEC})",
        caption=f"slope between {small:,} and {large:,} rows, median of {options.rounds}, one core each, "
        f"load average of the machine {os.getloadavg()[0]:.1f}; " + "; ".join(MODES.values()),
    )
    table.add_column("work")
    for header in ("ours", "Go", "ours / Go"):
        table.add_column(header, justify="right")
    table.add_column("unit")
    for figure in figures:
        work = re.sub(r" \(.*\)", "", figure.name)
        table.add_row(work, f"{figure.ours:,.2f}", f"{figure.peer:,.2f}", f"{figure.ratio:.2f}", figure.unit)
    Console().print(table)


if __name__ == "__main__":
    sys.exit(main())
