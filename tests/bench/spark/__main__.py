"""Measure what rows cost in Spark, beside loops around GetRange of the vendor's SDKs.

    python -m tests.bench.spark [--rounds N] [--only read stream ...] [--quick] [--output bench.json]

The emulator has one core; driver, JVM and the Python beside it share another, with one task at a time. CPU seconds are
those of all their processes, by the difference of a small and a large table, so that starts and the just-in-time
compiler do not count. The loops make no rows of Spark. What is measured is in the file as soon as a work is done.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from tests.bench.bench_scene import BenchScene, bench_scene_on
from tests.bench.emulator_target import Goal
from tests.bench.figures import add_to_file
from tests.bench.spark.measuring import SETTINGS, SparkBench
from tests.bench.spark.mirror_lag import SECONDS, mirror_lag
from tests.bench.spark.passes import LARGE, SMALL
from tests.bench.spark.session import SparkHost, jars_of_session
from tests.bench.spark.small_batches import BATCHES, small_batches
from tests.bench.spark.wire import wire
from tests.bench.spark.works import WORKS
from tests.bench.start import MachineUnfit, built, options_of, parser_of, two_cores
from tests.bench.tables.speed import spark_besides_table, spark_table
from tests.support.programs.java_program import build_java_worker

Measure = Callable[[BenchScene, SparkHost, int], Awaitable[list[Goal]]]
#: What is no cost of rows, by its name on the command line, with its size.
BESIDES: Final[Mapping[str, tuple[Measure, int]]] = {
    "wire": (wire, SMALL),
    "single": (small_batches, BATCHES),
    "mirror": (mirror_lag, SECONDS),
}
#: Divisor of all sizes under `--quick`.
QUICK = 10


def main() -> int:
    """Measure, print, write the file; 1 where there was no time for all of it, and the file has older figures."""
    options = options_of(parser_of(__doc__, [*(work.name for work in WORKS), *BESIDES], minutes=30))
    try:
        server_core, core = two_cores()
        jars = jars_of_session()
        java = built(build_java_worker)
    except MachineUnfit as reason:
        print(reason, file=sys.stderr)
        return 2
    os.sched_setaffinity(0, (server_core,))
    with tempfile.TemporaryDirectory() as folder:
        left_out = asyncio.run(_bench(options, SparkHost(Path(folder), jars, server_core, core), java))
    if left_out:
        print(f"left out, because {options.minutes:g} minutes were over: {', '.join(left_out)}", file=sys.stderr)
    return 1 if left_out else 0


async def _bench(options: argparse.Namespace, host: SparkHost, java: Path) -> list[str]:
    """The works for which there was no time."""
    documents: list[dict[str, object]] = []
    left_out: list[str] = []
    divisor = QUICK if options.quick else 1
    works = [work for work in WORKS if work.name in options.only]
    async with bench_scene_on(host.server_core) as scene:
        bench = SparkBench(scene, host, java, options.rounds)
        await bench.prepare(works, [size // divisor for size in (SMALL, LARGE)])
        measures: dict[str, Callable[[], Awaitable[list[dict[str, object]]]]] = {
            work.words: partial(bench.measure, work) for work in works
        }
        measures |= {
            name: partial(_documents, measure, scene, host, size // divisor)
            for name, (measure, size) in BESIDES.items()
            if name in options.only
        }
        began = asyncio.get_running_loop().time()
        for words, measure in measures.items():
            if asyncio.get_running_loop().time() - began > options.minutes * 60:
                left_out.append(words)
                continue
            found = await measure()
            documents += found
            if not options.quick:
                add_to_file(options.output, found)
    print(f"load average {os.getloadavg()[0]:.1f}; {SETTINGS}")
    print(f"\n{spark_table(documents)}\n{spark_besides_table(documents)}")
    return left_out


async def _documents(measure: Measure, scene: BenchScene, host: SparkHost, size: int) -> list[dict[str, object]]:
    return [goal.document() for goal in await measure(scene, host, size)]


if __name__ == "__main__":
    sys.exit(main())
