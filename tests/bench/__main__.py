"""Measure our worker beside the vendor's Java and Go workers, on one emulator and the same tables.

    python -m tests.bench [--rounds N] [--minutes N] [--only count copy ...] [--quick] [--profile] [--output bench.json]

The emulator has one core, the worker another. CPU seconds are those of the worker's process between two points of one
run, so that the start does not count; rows per second also wait for the emulator. On a slow or busy machine there are
fewer rounds, so that the whole ends in its time. What is measured is in the file as soon as its part is done.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import signal
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from ots_tunnel.protocol.plainbuffer.compiled import CODEC
from tests.bench import hot_channel, idle, latency
from tests.bench.bench_scene import CHANNELS, REQUEST_ROWS, bench_scene_on, record_bytes
from tests.bench.consumers import Lab
from tests.bench.contenders import Job, Programs
from tests.bench.emulator_target import Goal
from tests.bench.figures import Figure, Rounds, add_to_file
from tests.bench.hot_channel import HotChannel
from tests.bench.idle import Idle
from tests.bench.latency import Latency
from tests.bench.machine import memory_figure
from tests.bench.start import MachineUnfit, built, options_of, parser_of, say, two_cores
from tests.bench.throughput import WORKS, Throughput

PROFILE_LINES = 25
#: Divisor of all sizes under `--quick`.
QUICK = 10
BEAT = Job("").beat
#: Settings of all contenders, part of every figure's name.
SETTINGS = (
    f"{CHANNELS} stream channels, PUT rows of {record_bytes()} bytes, heartbeat {BEAT.heartbeat} s, "
    f"checkpoint {BEAT.checkpoint} s, {REQUEST_ROWS} rows per write, one write per channel"
)
#: Requests in flight of our worker where the channel is hot.
HOT_LANES = 16
NAMES = [*(work.name for work in WORKS), hot_channel.NAME, latency.NAME, idle.NAME]


def main() -> int:
    """Measure, print, write the file."""
    parser = parser_of(__doc__, NAMES, minutes=25)
    parser.add_argument("--profile", action="store_true", help="also print where our worker spends its time")
    options = options_of(parser)
    try:
        server_core, worker_core = two_cores()
        programs = built(Programs.build)
    except MachineUnfit as reason:
        print(reason, file=sys.stderr)
        return 2
    os.sched_setaffinity(0, (server_core,))
    began = time.monotonic()
    figures, rounds = asyncio.run(_bench(options, programs, server_core, worker_core))
    _print_table(figures, rounds, time.monotonic() - began)
    return 0


async def _bench(
    options: argparse.Namespace, programs: Programs, server_core: int, worker_core: int
) -> tuple[list[Figure], int]:
    """The figures, and the number of rounds that they are medians of."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)  # so that the processes end, too
    figures: list[Figure] = []

    def keep(found: list[Figure]) -> None:
        figures.extend(found)
        if not options.quick:
            add_to_file(options.output, (figure.document() for figure in found))

    with tempfile.TemporaryDirectory() as folder:
        async with bench_scene_on(server_core) as scene:
            lab = Lab(scene, programs, Path(folder), worker_core)
            works = tuple(work for work in WORKS if work.name in options.only)
            throughput = Throughput(lab, works, SETTINGS, say, QUICK if options.quick else 1)
            hot = HotChannel(lab, HOT_LANES, say)
            await throughput.prepare()
            if hot_channel.NAME in options.only:
                await hot.prepare()
            rounds = Rounds(options.rounds, options.minutes * 60, time.monotonic)
            for number in rounds:
                await throughput.round(number)
                if hot_channel.NAME in options.only:
                    await hot.round(number)
            await throughput.check_copies()
            keep(throughput.figures())
            _keep_memory(options, throughput.taken())
            if hot_channel.NAME in options.only:
                keep(hot.figures())
            for name, watching in ((latency.NAME, Latency), (idle.NAME, Idle)):
                if name in options.only:
                    watch = watching(lab, rounds.begun, say)
                    await watch.run()
                    keep(watch.figures())
            if options.profile:
                await throughput.profile(PROFILE_LINES)
    return figures, rounds.begun


def _keep_memory(options: argparse.Namespace, taken: list[Goal]) -> None:
    """Print what works take from the kernel, and keep it beside what this machine can."""
    for each in taken:
        say(f"{each.name.partition(' (')[0]}: {each.ours:.2f} {each.unit}")
    memory = (memory_figure(say), *taken)
    if not options.quick:
        add_to_file(options.output, (each.document() for each in memory))


def _print_table(figures: list[Figure], rounds: int, seconds: float) -> None:
    table = Table(
        title=f"Our worker beside the vendor's (codec: {CODEC})",
        caption=f"median of {rounds}, one core each, load average of the machine {os.getloadavg()[0]:.1f}, "
        f"{seconds / 60:.0f} minutes; {SETTINGS} unless said",
    )
    table.add_column("name")
    for header in ("ours", "peer", "unit", "ratio", "goal", "met"):
        table.add_column(header, justify="left" if header == "unit" else "right")
    for figure in figures:
        goal = "" if figure.goal is None else f"{figure.goal:g}"
        met = {None: "", True: "yes", False: "no"}[figure.met]
        name = re.sub(r" \(.*\)", "", figure.name)
        numbers = (f"{figure.ours:,.2f}", f"{figure.peer:,.2f}", figure.unit, f"{figure.ratio:.2f}")
        table.add_row(name, *numbers, goal, met)
    Console(width=120).print(table)


if __name__ == "__main__":
    sys.exit(main())
