"""What runs in the pods of a story with leases: our worker, or one of the library."""

from __future__ import annotations

from collections.abc import Callable

from ots_tunnel.client.caller import ServiceCaller
from ots_tunnel.config import StreamDocument
from ots_tunnel.credentials import FileCredentials
from ots_tunnel.stream.calls.client import StreamClient
from ots_tunnel.stream.sinking.opening import open_worker
from ots_tunnel.transport.aio import AioTransport
from tests.simulation.leases.library.worker import LibraryWorker
from tests.simulation.machine.process import Process
from tests.simulation.worker import Pod, Program
from tests.support.ledger import Entry


def document_of(pod: Pod, process: Process) -> StreamDocument:
    """The document of a process, whose id is its name."""
    document = pod.documents[process.name]
    client = {**document["client"], "workerId": process.name}
    return StreamDocument.model_validate({**document, "client": client}, by_alias=True, by_name=False)


async def follow_stream(pod: Pod, process: Process) -> None:
    """What `ots-tunnel stream run` does, without signals and the status server."""
    worker, client = open_worker(document_of(pod, process))
    pod.worker = worker
    try:
        await worker.run()
    finally:
        await client.close()


def library_program(witness: Callable[[Entry], None]) -> Program:
    """A worker of the library; `witness` learns what its processors do."""

    async def run(pod: Pod, process: Process) -> None:
        document = document_of(pod, process)
        source, times = document.source, document.client
        credentials = FileCredentials(source.credentials.directory).checked("source.credentials.directory")
        caller = ServiceCaller(AioTransport(source.endpoint, max_connections=0), source.instance, credentials)
        reads = StreamClient(source.endpoint, source.instance, credentials, caller=caller)
        pod.worker = LibraryWorker(
            caller,
            reads,
            process.name,
            (source.table, source.lease_table),
            {
                "duration": times.lease_duration_seconds,
                "renew": times.renew_interval_seconds,
                "take": times.take_interval_seconds,
                "sync": times.sync_interval_seconds,
                "parents": times.parent_poll_interval_seconds,
            },
            process.boottime,
            witness,
        )
        try:
            pod.tell(await pod.worker.run())
        finally:
            await reads.close()

    return run
