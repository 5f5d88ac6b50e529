"""A worker with short times as a program; tests kill and stop its processes.

Usage: worker_program.py ENDPOINT TUNNEL_ID DESTINATION INTERVAL TIMEOUT

DESTINATION is a table, or the absolute path of a folder for files.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

from ots_tunnel.client.table import TableClient
from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.config import DeliveryConfig, RetryConfig
from ots_tunnel.credentials import static_credentials
from ots_tunnel.model import Credentials, TunnelId
from ots_tunnel.protocol.backoff import Backoff
from ots_tunnel.sinks import Sink
from ots_tunnel.sinks.files import FilesSink
from ots_tunnel.sinks.files.folder import FolderStore
from ots_tunnel.sinks.files.json_lines import JsonLines
from ots_tunnel.sinks.files.settings import FileSettings
from ots_tunnel.sinks.json_bytes import json_lines
from ots_tunnel.sinks.table.sink import TablestoreSink
from ots_tunnel.worker.settings import WorkerSettings
from ots_tunnel.worker.worker import TunnelWorker


async def consume(endpoint: str, tunnel_id: str, destination: str, interval: float, timeout: float) -> None:
    credentials = static_credentials(Credentials("test-id", "test-secret"))
    settings = WorkerSettings(
        TunnelId(tunnel_id),
        client_tag="process",
        interval=interval,
        timeout=timeout,
        checkpoint_interval=0.3,
        drain=10,
        early_spacing=0.1,
        reconnect=(0.05, 0.1),
    )
    sink: Sink
    if destination.startswith("/"):
        files = FileSettings(
            FolderStore(Path(destination)), JsonLines(json_lines), 60_000, 0.4, Backoff(0.1, 2, 0.2, 0)
        )
        sink = FilesSink(settings.tunnel_id, files)
    else:
        sink = TablestoreSink(
            TableClient(endpoint, "demo", credentials),
            destination,
            delivery=DeliveryConfig(
                batch_max_rows=20, retry=RetryConfig(backoff_seconds=0.05, backoff_max_seconds=0.2)
            ),
            lanes=2,
            deadline=settings.write_deadline,
        )
    client = TunnelClient(endpoint, "demo", credentials)
    worker = TunnelWorker(client, sink, settings)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.interrupt)
    try:
        await worker.run()
    finally:
        await client.close()


if __name__ == "__main__":
    asyncio.run(consume(*sys.argv[1:4], *map(float, sys.argv[4:6])))
