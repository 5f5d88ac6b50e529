"""The worker of a document, with its connections."""

from __future__ import annotations

from ots_tunnel.client.caller import ServiceCaller
from ots_tunnel.config import StreamDocument
from ots_tunnel.credentials import FileCredentials
from ots_tunnel.sinks.choice import open_sink
from ots_tunnel.stream.calls.client import StreamClient
from ots_tunnel.stream.calls.lease_table import LeaseTable
from ots_tunnel.stream.sinking.settings import follow_settings, worker_settings
from ots_tunnel.stream.sinking.worker import StreamSinkWorker
from ots_tunnel.transport.aio import AioTransport
from ots_tunnel.worker.status.metrics import WorkerMetrics


def open_worker(document: StreamDocument) -> tuple[StreamSinkWorker, StreamClient]:
    """A worker, and the client whose connections the caller closes after its run.

    Raises:
        ConfigError: keys or a file that the document names are missing.
    """
    source = document.source
    credentials = FileCredentials(source.credentials.directory).checked("source.credentials.directory")
    settings, times = worker_settings(document), follow_settings(document)
    sink = open_sink(document)
    # Without a limit: a renewal must not wait for the reads of shards.
    caller = ServiceCaller(AioTransport(source.endpoint, max_connections=0), source.instance, credentials)
    client = StreamClient(source.endpoint, source.instance, credentials, caller=caller)
    metrics = WorkerMetrics(source.lease_table, document.sink.kind)
    table = LeaseTable(caller, source.lease_table)
    return StreamSinkWorker(client, table, sink, settings, times, metrics=metrics), client
