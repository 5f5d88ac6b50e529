"""A worker of ours as a program that prints what that of the vendor's library prints (streamclient/StreamClient.java).

Each event is one line, its parts separated by tabs: "start", shard; "record", shard, type, value of the first key
column, value of the first column, nanoseconds of the machine's monotonic clock, which Java's `System.nanoTime` reads
too; "stop", shard, reason. SIGTERM stops it kindly.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time

from ots_tunnel import (
    Credentials,
    InitializationInput,
    ProcessRecordsInput,
    ShutdownInput,
    ShutdownReason,
    StreamWorker,
    StreamWorkerConfig,
)


def show(*parts: object) -> None:
    """Print one event."""
    print(*parts, sep="\t", flush=True)


class Processor:
    """Prints every record and then stores a checkpoint, in the event loop."""

    shard = ""

    async def initialize(self, initialization_input: InitializationInput) -> None:
        self.shard = initialization_input.shard_info.shard_id
        show("start", self.shard)

    async def process_records(self, process_records_input: ProcessRecordsInput) -> None:
        for record in process_records_input.records:
            value = record.columns[0].value if record.columns else "-"
            show("record", self.shard, record.action.name, record.primary_key[0][1], value, time.monotonic_ns())
        await process_records_input.checkpointer.checkpoint()

    async def shutdown(self, shutdown_input: ShutdownInput) -> None:
        if shutdown_input.shutdown_reason is not ShutdownReason.ZOMBIE:
            await shutdown_input.checkpointer.checkpoint()
        show("stop", self.shard, shutdown_input.shutdown_reason.name)


class Factory:
    """Makes the processors."""

    def create_processor(self) -> Processor:
        return Processor()


def main() -> None:
    """Run until a signal comes."""
    parser = argparse.ArgumentParser()
    for name in ("endpoint", "instance", "key-id", "key-secret", "table", "status-table", "worker"):
        parser.add_argument(f"-{name}", required=True)
    for name in ("lease-millis", "round-millis"):
        parser.add_argument(f"-{name}", required=True, type=int)
    given = parser.parse_args()
    interval = given.round_millis / 1000
    config = StreamWorkerConfig(
        given.endpoint,
        given.instance,
        Credentials(given.key_id, given.key_secret),
        given.table,
        given.status_table,
        lease_duration=given.lease_millis / 1000,
        renew_interval=interval,
        take_interval=interval,
        parent_poll_interval=interval / 3,
        sync_shard_interval=interval,
        gives_empty_pages=False,
    )
    worker = StreamWorker(given.worker, config, Factory())
    signal.signal(signal.SIGTERM, lambda number, frame: worker.shutdown())
    worker.run()


if __name__ == "__main__":
    sys.exit(main())
