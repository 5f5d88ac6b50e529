"""The StreamSample of the vendor's Stream Client in Python: processors as classes, two workers, changes only.

python docs/examples/stream_sample.py ENDPOINT INSTANCE ACCESS_KEY_ID ACCESS_KEY_SECRET TABLE
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Sequence

from ots_tunnel import (
    ChannelContext,
    Credentials,
    Record,
    SyncTunnelClient,
    TunnelDaemon,
    TunnelType,
    TunnelWorkerConfig,
)
from ots_tunnel.processor import Confirm


class RecordProcessor:
    """Prints the records of one channel, and says that they are done."""

    def __init__(self, worker_identifier: str) -> None:
        self._worker_identifier = worker_identifier

    def initialize(self, context: ChannelContext) -> None:
        print(f"{self._worker_identifier}: begin of {context.channel_type}", flush=True)

    def process(self, context: ChannelContext, records: Sequence[Record], confirm: Confirm | None) -> None:
        for record in records:
            print("records:", record.action.name, record.primary_key, record.columns, flush=True)
        # These are done: they do not come again after a crash. It may be said later and from any thread, too.
        if confirm is not None:
            confirm()

    def shutdown(self, context: ChannelContext) -> None:
        print(f"{self._worker_identifier}: end of {context.channel_type}", flush=True)


class RecordProcessorFactory:
    """Makes a processor for every channel that a worker gets."""

    custom_value = None
    manual_checkpoints = True

    def __init__(self, worker_identifier: str) -> None:
        self._worker_identifier = worker_identifier

    def create(self, context: ChannelContext) -> RecordProcessor:
        return RecordProcessor(self._worker_identifier)


def main(endpoint: str, instance: str, access_key_id: str, access_key_secret: str, table: str) -> None:
    client = SyncTunnelClient(endpoint, instance, Credentials(access_key_id, access_key_secret))
    names = {info.tunnel_name: info.tunnel_id for info in client.list_tunnels(table)}
    tunnel_id = names.get("streamSample") or client.create_tunnel(table, "streamSample", TunnelType.Stream)
    daemons = []
    for name in ("worker1", "worker2"):
        config = TunnelWorkerConfig(RecordProcessorFactory(name), heartbeat_interval=5, heartbeat_timeout=30)
        daemons.append(TunnelDaemon(client, tunnel_id, config))
    threads = [threading.Thread(target=daemon.run) for daemon in daemons]

    def stop(number: int, frame: object) -> None:
        for daemon in daemons:
            daemon.shutdown()

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    client.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
