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
from pathlib import Path

from tests.bench.bench_scene import bench_scene_on
from tests.bench.figures import add_to_file
from tests.bench.spark.measuring import SETTINGS, SparkBench
from tests.bench.spark.passes import LARGE, SMALL
from tests.bench.spark.session import session_environment
from tests.bench.spark.works import WORKS
from tests.bench.start import MachineUnfit, built, options_of, parser_of, say, two_cores
from tests.bench.tables.speed import spark_table
from tests.support.programs.java_program import build_java_worker

#: Divisor of all sizes under `--quick`.
QUICK = 10


def main() -> int:
    """Measure, print, write the file."""
    options = options_of(parser_of(__doc__, [work.name for work in WORKS], minutes=20))
    try:
        server_core, spark_core = two_cores()
        environment = session_environment()
        java = built(build_java_worker)
    except MachineUnfit as reason:
        print(reason, file=sys.stderr)
        return 2
    os.sched_setaffinity(0, (server_core,))
    asyncio.run(_bench(options, environment, java, server_core, spark_core))
    return 0


async def _bench(
    options: argparse.Namespace, environment: dict[str, str], java: Path, server_core: int, spark_core: int
) -> None:
    documents = []
    works = [work for work in WORKS if work.name in options.only]
    sizes = [size // (QUICK if options.quick else 1) for size in (SMALL, LARGE)]
    async with bench_scene_on(server_core) as scene:
        with tempfile.TemporaryDirectory() as folder:
            bench = SparkBench(scene, Path(folder), environment, java, spark_core, options.rounds)
            await bench.prepare(works, sizes)
            began = asyncio.get_running_loop().time()
            for work in works:
                if asyncio.get_running_loop().time() - began > options.minutes * 60:
                    say(f"{work.words}: left out, because {options.minutes:g} minutes are over")
                    continue
                found = await bench.measure(work)
                documents += found
                if not options.quick:
                    add_to_file(options.output, found)
    print(f"load average {os.getloadavg()[0]:.1f}; {SETTINGS}\n\n{spark_table(documents)}")


if __name__ == "__main__":
    sys.exit(main())
