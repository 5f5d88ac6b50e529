"""The StreamSample of the vendor's Stream Client in Python: two workers share the shards of a table through leases.

python docs/examples/stream_client.py ENDPOINT INSTANCE ACCESS_KEY_ID ACCESS_KEY_SECRET TABLE
"""

from __future__ import annotations

import signal
import sys
import threading

from ots_tunnel import (
    Credentials,
    InitializationInput,
    ProcessRecordsInput,
    ShutdownInput,
    ShutdownReason,
    StreamWorker,
    StreamWorkerConfig,
)


class RecordProcessor:
    """Prints the records of one shard, and stores a checkpoint behind them."""

    def __init__(self, worker_identifier: str) -> None:
        self._worker_identifier = worker_identifier

    def initialize(self, initialization_input: InitializationInput) -> None:
        print(f"{self._worker_identifier}: begin of {initialization_input.shard_info.shard_id}", flush=True)

    def process_records(self, process_records_input: ProcessRecordsInput) -> None:
        for record in process_records_input.records:
            print("records:", record.action.name, record.primary_key, record.columns, flush=True)
        if process_records_input.records:
            process_records_input.checkpointer.checkpoint()

    def shutdown(self, shutdown_input: ShutdownInput) -> None:
        print(f"{self._worker_identifier}: {shutdown_input.shutdown_reason.name}", flush=True)
        if shutdown_input.shutdown_reason is not ShutdownReason.ZOMBIE:
            # At the end of a shard this has to be: its children begin when it is stored.
            shutdown_input.checkpointer.checkpoint()


class RecordProcessorFactory:
    """Makes a processor for every shard that a worker gets."""

    def __init__(self, worker_identifier: str) -> None:
        self._worker_identifier = worker_identifier

    def create_processor(self) -> RecordProcessor:
        return RecordProcessor(self._worker_identifier)


def main(endpoint: str, instance: str, access_key_id: str, access_key_secret: str, table: str) -> None:
    config = StreamWorkerConfig(
        endpoint,
        instance,
        Credentials(access_key_id, access_key_secret),
        data_table=table,
        status_table=f"{table}_leases",
        gives_empty_pages=False,
    )
    workers = [StreamWorker(name, config, RecordProcessorFactory(name)) for name in ("worker1", "worker2")]
    threads = [threading.Thread(target=worker.run) for worker in workers]

    def stop(number: int, frame: object) -> None:
        for worker in workers:
            worker.shutdown()

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
