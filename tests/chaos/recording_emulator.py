"""An emulator process that records the calls of workers in the order of execution.

A line of JSON per executed call, in the form of `ledger`. It omits refused calls and includes calls
whose answers were lost. SIGUSR1 cuts all connections.

Usage: recording_emulator.py LEDGER OPTIONS, where OPTIONS are JSON: instances, keys (AccessKey ids), settings.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TextIO

from aiohttp import web

from ots_emulator import Emulator, Settings
from ots_emulator.api.call import Call
from ots_emulator.eventloop import new_event_loop
from ots_emulator.server import application as app
from ots_emulator.server.auth import Caller
from ots_emulator.tunnels.channel import TunnelChannel
from ots_tunnel.model import Action
from ots_tunnel.protocol import table_pb2, tunnel_pb2
from ots_tunnel.protocol.page import read_page
from ots_tunnel.protocol.record import Record
from ots_tunnel.protocol.token import parse_token
from tests.chaos.ledger import COPY
from tests.support.row_changes import NUMBER

SECRET = "test-secret"
#: Caller of the call under way: every worker process has its own AccessKey.
_caller: ContextVar[str] = ContextVar("caller")

Line = dict[str, Any]


class Recorder:
    """Records executed calls; each method makes the line of one operation from its request and answer."""

    def __init__(self, ledger: TextIO) -> None:
        self._ledger = ledger
        self.lines: Mapping[str, Callable[[Call, Any, Any], Line]] = {
            "ReadRecords": self.read,
            "GetCheckpoint": self.opened,
            "Checkpoint": self.stored,
            "Heartbeat": self.reported,
            "BatchWriteRow": self.written,
        }

    def around(self, operation: str, handler: Callable[[Call, Any], Any]) -> Callable[[Call, Any], Any]:
        """The handler of an operation that also records the call when it has succeeded."""
        line_of = self.lines[operation]

        def handle(call: Call, request: Any) -> Any:
            answer = handler(call, request)
            line = {"t": time.monotonic(), "op": operation, "who": _caller.get(), **line_of(call, request, answer)}
            self._ledger.write(json.dumps(line, separators=(",", ":")) + "\n")
            return answer

        return handle

    def read(self, call: Call, request: tunnel_pb2.ReadRecordsRequest, answer: Any) -> Line:
        """A page: its start, its records, and the channel's owner."""
        page = read_page(answer if isinstance(answer, bytes) else answer.content)
        return {
            **_channel(request),
            "owner": _find(call, request).owner,
            "token": request.token,
            "following": page.next_token,
            "position": _position(request.token),
            "rows": [_change(record) for record in page.records],
        }

    def opened(self, call: Call, request: tunnel_pb2.GetCheckpointRequest, answer: bytes) -> Line:
        """The stored checkpoint that a client read."""
        return {**_channel(request), "token": tunnel_pb2.GetCheckpointResponse.FromString(answer).checkpoint}

    def stored(self, call: Call, request: tunnel_pb2.CheckpointRequest, answer: bytes) -> Line:
        """A checkpoint that is durable from now on."""
        return {**_channel(request), "token": request.checkpoint}

    def reported(self, call: Call, request: tunnel_pb2.HeartbeatRequest, answer: bytes) -> Line:
        """The channels in a client's heartbeat."""
        reports = [[channel.channel_id, tunnel_pb2.ChannelStatus.Name(channel.status)] for channel in request.channels]
        return {"client": request.client_id, "reports": reports}

    def written(self, call: Call, request: table_pb2.BatchWriteRowRequest, answer: bytes) -> Line:
        """The rows of a write that took effect."""
        (outcomes,) = table_pb2.BatchWriteRowResponse.FromString(answer).tables
        (wanted,) = request.tables
        rows = [
            _change(Record(Action[table_pb2.OperationType.Name(row.type)], row.row_change))
            for row, outcome in zip(wanted.rows, outcomes.rows, strict=True)
            if outcome.is_ok
        ]
        return {"instance": call.instance.name, "rows": rows if call.instance.name == COPY else []}


def _channel(request: Any) -> Line:
    return {"client": request.client_id, "channel": request.channel_id}


def _find(call: Call, request: Any) -> TunnelChannel:
    return call.instance.channel(request.tunnel_id, request.channel_id)[1]


def _position(token: str) -> int | None:
    """Number of a page's first record in the log of its partition, None for base data."""
    iterator = parse_token(token).iterator if token != "finished" else ""
    return int(iterator.rpartition(":")[2]) if iterator else None


def _change(record: Record) -> list[Any]:
    """Key, action and number of a row change; a removal has no number."""
    numbers = [column.value for column in record.columns if column.name == NUMBER]
    return [record.primary_key[0][1], record.action.name, max(numbers, default=0)]


def record_into(ledger: TextIO) -> None:
    """Let the emulator of this process record every executed call of a worker."""
    recorder = Recorder(ledger)
    handlers: Any = app.HANDLERS
    for operation in recorder.lines:
        handlers[operation] = recorder.around(operation, handlers[operation])
    authenticate = app.authenticate

    def remember(path: str, headers: Mapping[str, str], *arguments: Any, **options: Any) -> Caller:
        _caller.set(headers.get("x-ots-accesskeyid", ""))
        return authenticate(path, headers, *arguments, **options)

    app.authenticate = remember


def cut_connections(server: web.Server) -> None:
    """Break every connection, whatever is under way on it."""
    for connection in server.connections:
        if connection.transport is not None:
            connection.transport.abort()


async def serve(options: dict[str, Any]) -> None:
    """Serve until SIGTERM."""
    keys = dict.fromkeys(options["keys"], SECRET)
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    emulator = Emulator({name: keys for name in options["instances"]}, settings=Settings(**options["settings"]))
    async with emulator:
        server: Any = emulator.data_listener.runner.server
        loop.add_signal_handler(signal.SIGTERM, stop.set)
        loop.add_signal_handler(signal.SIGUSR1, cut_connections, server)
        print(f"  endpoint   {emulator.endpoint}\n  admin      {emulator.admin_url}", flush=True)
        await stop.wait()


if __name__ == "__main__":
    with Path(sys.argv[1]).open("w") as written:
        record_into(written)
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(serve(json.loads(sys.argv[2])))
