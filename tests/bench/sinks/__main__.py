"""Measure what our sinks cost, beside workers with the vendor's SDK and a library for each destination.

    python -m tests.bench.sinks [--rounds N] [--minutes N] [--only lines kafka ...] [--quick] [--output bench.json]

The emulator, a broker, a web service and the reader of a pipe share one core, the worker has another. CPU seconds are
those of the worker's process between two points of one run, so that the start does not count. On a slow or busy machine
there are fewer rounds, so that the whole ends in its time.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path

from tests.bench.bench_scene import CHANNELS, bench_scene_on, record_bytes
from tests.bench.consumers import Lab
from tests.bench.contenders import Beat, Programs
from tests.bench.figures import Rounds, add_to_file
from tests.bench.machine import memory_figure
from tests.bench.sinks.destinations import Places
from tests.bench.sinks.receiver import running_receiver
from tests.bench.sinks.rounds import SinkRounds
from tests.bench.sinks.works import WORKS
from tests.bench.start import MachineUnfit, built, options_of, parser_of, say, two_cores
from tests.bench.tables.speed import sink_table
from tests.kafka.broker import BrokerUnavailable, class_path, started_broker
from tests.kafka.certificate import make_certificate
from tests.support.programs.go_program import build_go_worker
from tests.support.programs.java_program import build_java_sinks

#: Divisor of all sizes under `--quick`.
QUICK = 10
SETTINGS = (
    f"{CHANNELS} stream channels, PUT rows of {record_bytes()} bytes, heartbeat {Beat().heartbeat} s, "
    f"checkpoint {Beat().checkpoint} s, every setting of the sink by default, one request per channel"
)


def main() -> int:
    """Measure, print, write the file."""
    options = options_of(parser_of(__doc__, [work.name for work in WORKS], minutes=9))
    try:
        server_core, worker_core = two_cores()
        programs = built(lambda: Programs(build_go_worker(), build_java_sinks()))
        jars = _broker_jars() if "kafka" in options.only else ""
    except MachineUnfit as reason:
        print(reason, file=sys.stderr)
        return 2
    os.sched_setaffinity(0, (server_core,))
    asyncio.run(_bench(options, programs, jars, server_core, worker_core))
    return 0


def _broker_jars() -> str:
    try:
        return class_path()
    except BrokerUnavailable as reason:
        raise MachineUnfit(f"Apache Kafka cannot be started: {reason}") from reason


async def _bench(
    options: argparse.Namespace, programs: Programs, jars: str, server_core: int, worker_core: int
) -> None:
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)  # so that the processes end, too
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        places = Places(folder)
        if jars:
            make_certificate(folder)
            places.broker = stack.enter_context(started_broker(jars, folder, folder / "key.pem"))
        if "http" in options.only:
            places.receiver = stack.enter_context(running_receiver())
        scene = await stack.enter_async_context(bench_scene_on(server_core))
        works = [work for work in WORKS if work.name in options.only]
        divisor = QUICK if options.quick else 1
        measured = SinkRounds(Lab(scene, programs, folder, worker_core), places, works, SETTINGS, say, divisor)
        await measured.prepare()
        rounds = Rounds(options.rounds, options.minutes * 60, asyncio.get_running_loop().time)
        for number in rounds:
            await measured.round(number)
    documents = [memory_figure(say).document(), *measured.documents()]
    print(f"median of {rounds.begun}, load average {os.getloadavg()[0]:.1f}; {SETTINGS}\n\n{sink_table(documents)}")
    if not options.quick:
        add_to_file(options.output, documents)


if __name__ == "__main__":
    sys.exit(main())
