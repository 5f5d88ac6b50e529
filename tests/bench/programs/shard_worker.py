"""Our worker of shards with a processor that counts, beside that of the vendor's library (streamclient/Counting.java).

It counts the records of all shards, reads every column in mode `all`, and stores a checkpoint once a second while
records come. After `rows` records it prints one JSON line and ends; with 0 rows it runs until SIGTERM.
"""

from __future__ import annotations

import argparse
import json
import signal
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

#: Seconds between two checkpoints of a shard.
CHECKPOINT = 1.0


class Counting:
    """Makes the processors, and counts what they get."""

    def __init__(self, *, touches: bool, mark: int, rows: int) -> None:
        self.touches = touches
        self.worker: StreamWorker | None = None
        self._mark = mark
        self._rows = rows
        self._began = time.monotonic()
        self._seen = self._touched = 0
        self._marked: tuple[int, float, float] | None = None

    def create_processor(self) -> Processor:
        """See `RecordProcessorFactory`."""
        return Processor(self)

    def count(self, rows: int, columns: int) -> None:
        """Count a page."""
        self._seen += rows
        self._touched += columns
        if self._marked is None and self._seen >= self._mark:
            self._marked = self._point()
        if self._rows and self._seen >= self._rows and self.worker is not None:
            points = {"marked": self._marked, "last": self._point()}
            print(json.dumps({"rows": self._seen, "touched": self._touched, "seconds": 0} | points), flush=True)
            self.worker.shutdown()

    def _point(self) -> tuple[int, float, float]:
        return self._seen, time.monotonic() - self._began, time.process_time()


class Processor:
    """Counts the records of one shard, in the event loop."""

    def __init__(self, counting: Counting) -> None:
        self._counting = counting
        self._stored = time.monotonic()

    async def initialize(self, initialization_input: InitializationInput) -> None:
        """See `RecordProcessor`."""

    async def process_records(self, process_records_input: ProcessRecordsInput) -> None:
        """See `RecordProcessor`."""
        records, touched = process_records_input.records, 0
        if not records:
            return
        if self._counting.touches:
            for record in records:
                for column in record.columns:
                    if column.value is not None:
                        touched += 1
        self._counting.count(len(records), touched)
        now = time.monotonic()
        if now - self._stored >= CHECKPOINT:
            await process_records_input.checkpointer.checkpoint()
            self._stored = now

    async def shutdown(self, shutdown_input: ShutdownInput) -> None:
        """See `RecordProcessor`."""
        if shutdown_input.shutdown_reason is not ShutdownReason.ZOMBIE:
            await shutdown_input.checkpointer.checkpoint()


def main() -> None:
    """Run until every record has come, or a signal."""
    parser = argparse.ArgumentParser()
    for name in ("endpoint", "instance", "key-id", "key-secret", "table", "status-table", "mode", "mark", "rows"):
        parser.add_argument(f"-{name}", required=True)
    given = parser.parse_args()
    config = StreamWorkerConfig(
        given.endpoint,
        given.instance,
        Credentials(given.key_id, given.key_secret),
        given.table,
        given.status_table,
    )
    counting = Counting(touches=given.mode == "all", mark=int(given.mark), rows=int(given.rows))
    worker = counting.worker = StreamWorker("bench", config, counting)
    signal.signal(signal.SIGTERM, lambda number, frame: worker.shutdown())
    worker.run()


if __name__ == "__main__":
    main()
