"""The service of a region: the emulator behind simulated connections, and the ledger of what it executed."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ots_emulator import Emulator, Settings
from ots_emulator.api.call import Call
from ots_emulator.server import application as app
from ots_emulator.wire import page_tail
from ots_tunnel.errors import ConnectionLost
from ots_tunnel.model import FINISHED, Credentials
from ots_tunnel.protocol import table_pb2, tunnel_pb2
from ots_tunnel.protocol.http.message import HttpRequest, HttpResponse
from ots_tunnel.protocol.http.operations import TABLE_OPERATIONS
from ots_tunnel.protocol.http.rpc import build_request, parse_response
from ots_tunnel.protocol.messages import description_from_wire
from ots_tunnel.protocol.page import PageContent, read_page
from ots_tunnel.protocol.record import Record
from ots_tunnel.protocol.token import BASE_CHANNEL_PREFIX, parse_token
from tests.simulation.machine.loop import VirtualLoop
from tests.simulation.machine.network import ClientConnection, Host
from tests.simulation.machine.process import EPOCH
from tests.simulation.story import Story
from tests.support.ledger import (
    Change,
    Connected,
    Described,
    Dismissed,
    Entry,
    Listed,
    NotStored,
    Opened,
    Read,
    Reported,
    Stored,
    Written,
)
from tests.support.row_changes import NUMBER

SOURCE, COPY = "source", "copy"
TABLE, TUNNEL = "events", "copy-events"
#: Keys of the workers, which faults of the service strike, and of the region itself.
KEY, OWN_KEY = Credentials("worker-id", "worker-secret"), Credentials("region-id", "region-secret")

#: Status of a refused heartbeat whose client the service does not know.
GONE = 410

#: Receives what the service has executed, in order; and the heartbeats that it has refused.
Witness = Callable[[Entry], None]


@dataclass(slots=True)
class ServiceClock:
    """The service's time: the region's."""

    loop: VirtualLoop

    def now(self) -> float:
        """Unix seconds."""
        return EPOCH + self.loop.now


class ServiceHost(Host):
    """One address of the service; requests that have arrived as a whole are executed at once."""

    def __init__(self, name: str, service: SimulatedService) -> None:
        super().__init__(name)
        self._service = service

    def feed(self, client: ClientConnection, data: bytes) -> bytes:
        """Execute every complete request; return the rest of the bytes."""
        while (end := data.find(b"\r\n\r\n")) >= 0:
            first, *lines = data[:end].decode("latin-1").split("\r\n")
            headers = dict(line.split(": ", 1) for line in lines)
            stop = end + 4 + int(headers["Content-Length"])
            if len(data) < stop:
                break
            self._service.serve(client, HttpRequest(first.split(" ")[1], headers, data[end + 4 : stop]))
            data = data[stop:]
        return data


@dataclass(frozen=True, slots=True)
class Gateway:
    """What lies between one machine and the service for heartbeats, which are no writes; times of the region.

    Args:
        late_until: answers come up to `delay` seconds late until then.
        deaf_until: afterwards, until then, heartbeats are lost.
    """

    late_until: float
    delay: float
    deaf_until: float


class SimulatedService:
    """Tablestore and its Tunnel Service, with two instances: source and copy.

    Args:
        witness: receives what was executed.
    """

    def __init__(self, loop: VirtualLoop, story: Story, witness: Witness, **settings: Any) -> None:
        keys = {key.access_key_id: key.access_key_secret for key in (KEY, OWN_KEY)}
        chosen = Settings(**{"init_delay": 0.5, **settings})
        self.clock = ServiceClock(loop)
        self.emulator = Emulator({SOURCE: keys, COPY: keys}, settings=chosen, clock=self.clock)
        self._loop = loop
        self._story = story
        self._witness = witness
        self._client: ClientConnection | None = None
        self.hosts = {f"{name}.region": ServiceHost(f"{name}.region", self) for name in (SOURCE, COPY)}
        loop.network.hosts.update(self.hosts)
        #: Machine to what is between it and the service; none where nothing is.
        self.gateways: dict[str, Gateway] = {}
        self.calls = 0
        #: Calls that the story leaves out while they succeed.
        self.silent = _SILENT
        #: Of so many reads of a stream that find records one is answered by an empty page; 0 means none.
        self.empty_reads = 0
        self._found = 0
        #: Set when a client has created a tunnel, before the answer is on its way.
        self.created = asyncio.Event()
        _Ledger.of = self

    # Calls over the network

    def serve(self, client: ClientConnection, request: HttpRequest) -> None:
        """Execute a request that has arrived, and send its answer."""
        name = request.path.rpartition("/")[2]
        gateway = self.gateways.get(client.process.machine) if name == "heartbeat" else None
        if gateway is not None and gateway.late_until <= self._loop.now < gateway.deaf_until:
            return
        self.calls += 1
        self._client = client
        try:
            response = self.handle(request)
        except app.AnswerCut as cut:
            data = _encode(cut.answer)
            client.server.answer(data[: len(data) // 2])
            client.server.close()
            return
        except ConnectionLost:
            client.server.close()
            return
        finally:
            self._client = None
        if name == "create" and response.status == 200:
            self.created.set()
        if name not in self.silent or response.status != 200:
            text = "" if response.status == 200 else f" -> {response.status} {_code(response)}"
            self._story.tell(client.process.name, "%s%s", name, text)
        if name == "heartbeat" and response.status == GONE:
            known = tunnel_pb2.HeartbeatRequest.FromString(request.body).client_id
            self._witness(Dismissed(self._loop.now, client.process.name, client.sent_at, known))
        if name == "checkpoint" and response.status != 200:
            self._witness(NotStored(self._loop.now, client.process.name, client.sent_at))
        if gateway is not None and self._loop.now < gateway.late_until:
            self._loop.after(self._loop.network.drawn(gateway.delay, 0.8), client.server.answer, _encode(response))
            return
        client.server.answer(_encode(response))

    def handle(self, request: HttpRequest) -> HttpResponse:
        """Execute a request at once.

        Raises:
            ConnectionLost: a fault loses the answer.
        """
        coroutine = self.emulator.handle(request)
        while True:  # it never waits: latency is the network's matter here
            try:
                coroutine.send(None)
            except StopIteration as done:
                response: HttpResponse = done.value
                return response

    def call(self, instance: str, operation: str, message: Any) -> Any:
        """Execute a call of the region itself, without the network.

        Raises:
            ServiceError: the service refuses.
        """
        known = TABLE_OPERATIONS[operation]
        request = build_request(
            known, message, instance=instance, credentials=OWN_KEY, now=self.clock.now(), trace_id="region"
        )
        return parse_response(known, self.handle(request))

    def executed(self, operation: str, call: Call, request: Any, answer: Any) -> None:
        """Note a call of a process; what nobody hears has changed nothing, unless it was a write."""
        if self._client is None:
            return
        if self._client.is_open or operation not in _LOOKS:
            entry = _ENTRIES[operation](self._header(), call, request, answer)
            if entry is not None:
                self._witness(entry)

    def passed_over(self, request: Any, answer: Any) -> Any:
        """The answer to a read: at times an empty page that announces more, as behind a range without records."""
        if self._client is None or not self.empty_reads or request.channel_id.startswith(BASE_CHANNEL_PREFIX):
            return answer
        self._found += bool(_page_of(answer).records)
        if self._found < self.empty_reads:
            return answer
        self._found = 0
        return page_tail(request.token, may_more=True)

    def _header(self) -> tuple[float, str, float]:
        assert self._client is not None
        return self._loop.now, self._client.process.name, self._client.sent_at


#: Calls that the story leaves out while they succeed: there are too many of them.
_SILENT = frozenset(("readrecords", "BatchWriteRow", "heartbeat", "checkpoint"))


#: Calls that only look: executed after their connection broke, as a held request is, they are no part of a session.
_LOOKS = frozenset(("ReadRecords", "GetCheckpoint", "GetStreamRecord"))


class _Ledger:
    """The service whose calls are noted; handlers are global in the emulator."""

    of: SimulatedService | None = None


def install_ledger() -> None:
    """Let the emulator of this interpreter tell the region's service what it has executed."""
    _watch(_ENTRIES)


def note_calls(entries: Mapping[str, MakeEntry]) -> None:
    """Let the service tell of further calls as well, in this process; a call of which nothing is made is not told."""
    _ENTRIES.update(entries)
    _watch(entries)


def _watch(operations: Iterable[str]) -> None:
    handlers: Any = app.HANDLERS
    for operation in operations:
        handlers[operation] = _around(operation, handlers[operation])


def _around(operation: str, handler: Callable[[Call, Any], Any]) -> Callable[[Call, Any], Any]:
    def handle(call: Call, request: Any) -> Any:
        answer = handler(call, request)
        if _Ledger.of is not None and operation == "ReadRecords":
            answer = _Ledger.of.passed_over(request, answer)
        if _Ledger.of is not None:
            _Ledger.of.executed(operation, call, request, answer)
        return answer

    return handle


Header = tuple[float, str, float]
#: Makes an entry of a call.
MakeEntry = Callable[[Header, Call, Any, Any], Entry | None]


def _read(header: Header, call: Call, request: tunnel_pb2.ReadRecordsRequest, answer: Any) -> Entry:
    page = _page_of(answer)
    owner = call.instance.channel(request.tunnel_id, request.channel_id)[1].owner
    return Read(
        *header,
        request.client_id,
        request.channel_id,
        owner,
        request.token,
        page.next_token,
        position_of(request.token),
        tuple(map(change_of_record, page.records)),
    )


def _page_of(answer: Any) -> PageContent:
    return read_page(answer if isinstance(answer, bytes) else answer.content)


def _opened(header: Header, call: Call, request: tunnel_pb2.GetCheckpointRequest, answer: bytes) -> Entry:
    token = tunnel_pb2.GetCheckpointResponse.FromString(answer).checkpoint
    return Opened(*header, request.client_id, request.channel_id, token)


def _stored(header: Header, call: Call, request: tunnel_pb2.CheckpointRequest, answer: bytes) -> Entry:
    return Stored(*header, request.client_id, request.channel_id, request.checkpoint)


def _reported(header: Header, call: Call, request: tunnel_pb2.HeartbeatRequest, answer: bytes) -> Entry:
    reports = tuple((channel.channel_id, tunnel_pb2.ChannelStatus.Name(channel.status)) for channel in request.channels)
    return Reported(*header, request.client_id, reports)


def _connected(header: Header, call: Call, request: Any, answer: bytes) -> Entry:
    return Connected(*header, tunnel_pb2.ConnectResponse.FromString(answer).client_id)


def _described(header: Header, call: Call, request: Any, answer: bytes) -> Entry:
    found = description_from_wire(tunnel_pb2.DescribeTunnelResponse.FromString(answer), None)
    channels = tuple(
        Listed(str(channel.channel_id), channel.channel_type, channel.status, str(channel.client_id or ""))
        for channel in found.channels
    )
    return Described(*header, str(found.tunnel.stage), channels)


def _written(header: Header, call: Call, request: table_pb2.BatchWriteRowRequest, answer: bytes) -> Entry:
    rows: list[Change] = []
    (outcomes,) = table_pb2.BatchWriteRowResponse.FromString(answer).tables
    (wanted,) = request.tables
    for row, outcome in zip(wanted.rows, outcomes.rows, strict=True):
        if outcome.is_ok:
            action = table_pb2.OperationType.Name(row.type)
            rows.append(change_of_row(action, row.row_change))
    return Written(*header, tuple(rows) if call.instance.name == COPY else ())


_ENTRIES: dict[str, MakeEntry] = {
    "ReadRecords": _read,
    "GetCheckpoint": _opened,
    "Checkpoint": _stored,
    "Heartbeat": _reported,
    "Connect": _connected,
    "DescribeTunnel": _described,
    "BatchWriteRow": _written,
}


def position_of(token: str) -> int | None:
    """Number of a page's first record in the log of its partition; None for base data and the end."""
    if token == FINISHED:
        return None
    iterator = parse_token(token).iterator
    return int(iterator.rpartition(":")[2]) if iterator else None


def change_of_row(action: str, body: bytes) -> Change:
    """Key, action and number of a row change; a removal has number 0."""
    from ots_tunnel.model import Action

    return change_of_record(Record(Action[action], body))


def change_of_record(record: Record) -> Change:
    """Key, action and number of a record; the number of existing rows is that of their last change."""
    numbers = [column.value for column in record.columns if column.name == NUMBER]
    return str(record.primary_key[0][1]), record.action.name, max(numbers, default=0)


def _encode(response: HttpResponse) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in response.headers.items())
    head = f"HTTP/1.1 {response.status} X\r\n{lines}Content-Length: {len(response.body)}\r\n\r\n"
    return head.encode("latin-1") + response.body


def _code(response: HttpResponse) -> str:
    text = response.body.decode("latin-1")
    return "".join(letter for letter in text[: min(60, len(text))] if letter.isprintable())


def seconds_text(seconds: float) -> str:
    """A time of the story."""
    return f"{math.floor(seconds / 60):3}:{seconds % 60:06.3f}"
