"""Measure how much of the Kafka sink's CPU is librdkafka's, beside the least that a client of it does.

    python -m tests.bench.sinks.kafka_client [--rows N] [--rounds N]

The broker is the mock one that librdkafka brings, in a process of its own. In turns, the sink writes pages of four
channels, `programs/produce.c` hands messages of the same size to the same library, without Python, and `kafka_binding`
hands messages that are made already to `confluent_kafka`. The figures are CPU seconds per million rows of 418 bytes: of
the round with the least, since other programs only add to them.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import confluent_kafka

from ots_tunnel.config import KafkaSinkConfig, RetryConfig
from ots_tunnel.model import ChannelId, ChannelType, SequenceInfo
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.sinks import Batch
from ots_tunnel.sinks.json_bytes import json_bytes
from ots_tunnel.sinks.kafka import KafkaSink
from ots_tunnel.sinks.kafka.message import Messages, Origin
from tests.bench.bench_scene import CHANNELS, key_of, row_of
from tests.bench.sinks.kafka_binding import binding
from tests.support.guards import OpenGuard
from tests.support.records import record

TOPIC = "changes"
SOURCE = Path(__file__).parents[1] / "programs" / "produce.c"
PAGE_ROWS = 2000
COMMITTED_US = 1_700_000_000_000_000
BROKER = """
import sys, confluent_kafka
producer = confluent_kafka.Producer({"test.mock.num.brokers": 1, "log_level": 0})
(broker,) = producer.list_topics(sys.argv[1], 30).brokers.values()
print(f"{broker.host}:{broker.port}", flush=True)
sys.stdin.read()
"""
RECORDS = [
    record(
        key_of(number),
        *(Column(cell.name, cell.value, COMMITTED_US // 1000) for cell in row_of(number)),
        sequence=SequenceInfo(0, COMMITTED_US + number, 0),
    )
    for number in range(PAGE_ROWS)
]
ORIGIN = Origin("shop", "orders", "t")
MESSAGES = [message for part in Messages(ORIGIN, ChannelId("c0"), ChannelType.STREAM).of(RECORDS) for message in part]


def main() -> None:
    """Measure, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=40_000, help="rows of a round (default 40000)")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, mock_broker() as broker:
        program = Path(folder) / "produce"
        subprocess.run(["cc", "-O2", "-o", program, SOURCE, "-ldl"], check=True)
        found = [
            (
                least(program, broker, options.rows),
                binding(broker, TOPIC, MESSAGES, options.rows, of_librdkafka),
                asyncio.run(sink(broker, options.rows)),
            )
            for _ in range(options.rounds)
        ]
    handing, reports, threads = min((figures for figures, _, _ in found), key=sum)
    bound, bound_threads = min(figures for _, figures, _ in found)
    ours, ours_threads = min(figures for _, _, figures in found)
    alone = handing + reports + threads
    print(f"CPU s/M rows, the least of {options.rounds}, load average {os.getloadavg()[0]:.1f}")
    print(f"C: {alone:.2f} (hand over {handing:.2f}, reports {reports:.2f}, librdkafka's threads {threads:.2f})")
    print(f"confluent_kafka: {bound:.2f} (librdkafka's threads {bound_threads:.2f})")
    print(f"sink: {ours:.2f} (librdkafka's threads {ours_threads:.2f}), {ours / alone:.2f} times C's")


@contextmanager
def mock_broker() -> Iterator[str]:
    """The address of a broker."""
    command = [sys.executable, "-c", BROKER, TOPIC]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.communicate()


def least(program: Path, broker: str, rows: int) -> tuple[float, float, float]:
    """What the program in C takes: handing over, reports, librdkafka's threads."""
    libraries = Path(confluent_kafka.__file__).parent.with_name("confluent_kafka.libs")
    (library,) = libraries.glob("librdkafka*")
    value = json_bytes(RECORDS[0], ChannelId("c0")).decode()
    command = [program, library, broker, TOPIC, str(rows), value]
    environment = {**os.environ, "LD_LIBRARY_PATH": str(libraries)}
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout
    handing, reports, threads = map(float, output.split())
    return handing, reports, threads


async def sink(broker: str, rows: int) -> tuple[float, float]:
    """What the sink takes, and librdkafka's threads of it."""
    config = KafkaSinkConfig(bootstrap_servers=[broker], topic=TOPIC, timeout_seconds=30)
    kafka = KafkaSink(config, ORIGIN, retry=RetryConfig(), deadline=16)
    await kafka.open()

    async def channel(number: int, pages: int) -> None:
        for _ in range(pages):
            await kafka.write(Batch(ChannelId(f"c{number}"), ChannelType.STREAM, RECORDS), OpenGuard())

    await asyncio.gather(*(channel(number, 1) for number in range(CHANNELS)))
    pages = max(rows // PAGE_ROWS // CHANNELS, 1)
    millions = pages * PAGE_ROWS * CHANNELS / 1e6
    before, threads_before = time.process_time(), of_librdkafka()
    await asyncio.gather(*(channel(number, pages) for number in range(CHANNELS)))
    used, threads = time.process_time() - before, of_librdkafka() - threads_before
    await kafka.close()
    return used / millions, threads / millions


def of_librdkafka() -> float:
    """CPU seconds of the threads of this process that librdkafka has made."""
    found = 0.0
    for task in Path("/proc/self/task").iterdir():
        if (task / "comm").read_text().startswith("rdk:"):
            found += int((task / "schedstat").read_text().split()[0]) / 1e9
    return found


if __name__ == "__main__":
    main()
