"""From an HTTP request to its answer.

Duties in order, one function each: `_received` (headers and path), `_admit` (route, authenticate), `Faults.take`
(injected faults), `_execute` (parse, run the handler, commit), `_answer` (sign), `_record` (history of calls), `_lose`
(injected losses of the answer).

Source: docs/data-plane.md 1.5 to 1.8, docs/protocol.md 1.
"""

from __future__ import annotations

import asyncio
import logging
import re
import uuid
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any, Final, NamedTuple

from google.protobuf.message import DecodeError

from ots_emulator.api import reads, streams, tables, transactions, tunnels, unsupported, writes
from ots_emulator.api.call import Call
from ots_emulator.clock import Clock
from ots_emulator.instance import Instance
from ots_emulator.ledger import Behaviour
from ots_emulator.pages import Body
from ots_emulator.refusal import Refusal, parameter_invalid
from ots_emulator.server import auth
from ots_emulator.server.auth import Caller, answer_headers, authenticate, body_too_large, claimed_caller, inflate
from ots_emulator.server.faults import NO_FAULTS, Faults, InjectedFaults
from ots_emulator.server.history import CallHistory, CallRecord
from ots_emulator.settings import Settings
from ots_tunnel.errors import CodecError, ConnectionLost
from ots_tunnel.protocol.http.message import HttpRequest, HttpResponse
from ots_tunnel.protocol.http.operations import OPERATIONS_BY_PATH, Operation
from ots_tunnel.protocol.http.rpc import check_text, error_body

_log = logging.getLogger(__name__)
_SLASHES = re.compile(r"/{2,}")
#: Characters of a caller's text that the history of calls keeps.
_SHOWN: Final = 64

#: What a call returns: bytes, or a body that is sent more than once.
Content = bytes | Body

HANDLERS: Final[Mapping[str, Callable[[Call, Any], Content]]] = {
    **tables.HANDLERS,
    **writes.HANDLERS,
    **reads.HANDLERS,
    **transactions.HANDLERS,
    **streams.HANDLERS,
    **tunnels.HANDLERS,
    **unsupported.HANDLERS,
}
#: What clients can tell, and how it is known.
LEDGER: Final[tuple[Behaviour, ...]] = (
    *auth.LEDGER,
    *tables.LEDGER,
    *writes.LEDGER,
    *reads.LEDGER,
    *transactions.LEDGER,
    *streams.LEDGER,
    *tunnels.LEDGER,
    *unsupported.LEDGER,
)
_OPERATIONS: Final = {**OPERATIONS_BY_PATH, **unsupported.OPERATIONS_BY_PATH}


class AnswerCut(ConnectionLost):
    """A fault rule breaks the connection in the middle of this answer."""

    def __init__(self, answer: HttpResponse) -> None:
        super().__init__("answer cut on purpose")
        self.answer = answer


class _Received(NamedTuple):
    """A request with its path as clients sign it and lower-case header names."""

    path: str
    headers: Mapping[str, str]
    body: bytes


class _Outcome(NamedTuple):
    """The result of a request; `now` is the service's time of the call, `caller` signs the answer."""

    status: int
    code: str
    content: Content
    now: float
    caller: Caller | None
    faults: InjectedFaults = NO_FAULTS


class Application:
    """Answers requests; one call at a time touches the state, so every call is atomic.

    Args:
        instances: by name.
        clock: the service's time.
        settings: behaviour.
        faults: rules that inject faults.
    """

    def __init__(self, instances: Mapping[str, Instance], clock: Clock, settings: Settings, faults: Faults) -> None:
        self._instances = instances
        self._clock = clock
        self.settings = settings
        self._faults = faults
        self.calls = 0
        self.history = CallHistory()

    async def handle(self, request: HttpRequest) -> HttpResponse:
        """Answer one request.

        Raises:
            ConnectionLost: a fault rule drops the answer; the call has been executed.
        """
        self.calls += 1
        began = perf_counter()
        received = _received(request)
        outcome = await self._outcome(received)
        answer = _answer(received, outcome)
        self._record(received, outcome, began, len(answer.body))
        _lose(answer, outcome.faults, received.path)
        return answer

    def refuse(self, path: str, sent: Mapping[str, str], refusal: Refusal) -> HttpResponse:
        """Answer a request whose body was not read."""
        headers = {name.lower(): readable(value) for name, value in sent.items()}
        caller = claimed_caller(headers, self._instances)
        body = error_body(refusal.code, refusal.message)
        outcome = _Outcome(refusal.status, refusal.code, body, self._clock.now(), caller)
        # Without the request's headers: the answer is not compressed.
        return _answer(_Received(readable(route(path)), {}, b""), outcome)

    async def _outcome(self, received: _Received) -> _Outcome:
        now = self._clock.now()
        try:
            operation, caller = self._admit(received, now)
        except Exception as error:
            # `_failed` answers a refusal as the service does, and logs everything else as a bug
            return _failed(error, received, now, claimed_caller(received.headers, self._instances), NO_FAULTS)
        faults = self._faults.take(operation.name, caller.access_key_id, now)
        if faults is not NO_FAULTS:
            await asyncio.sleep(faults.latency)
            now = self._clock.now()
        try:
            content = self._execute(operation, caller, received, faults, now)
        except Exception as error:
            # as above: a handler's bug must not end the server
            return _failed(error, received, now, caller, faults)
        return _Outcome(200, "", content, now, caller, faults)

    def _admit(self, received: _Received, now: float) -> tuple[Operation, Caller]:
        """Return the operation and its authenticated caller.

        Raises:
            Refusal: unknown operation, wrong signature, or a body that is too large.
        """
        operation = _OPERATIONS.get(received.path)
        if operation is None or operation.name not in HANDLERS:
            raise parameter_invalid(f"Unsupported operation: '{received.path.lstrip('/')}'.")
        caller = authenticate(
            received.path, received.headers, received.body, self._instances, now=now, skew=self.settings.date_skew
        )
        if len(received.body) > self.settings.body_limit:
            raise body_too_large()
        return operation, caller

    def _execute(
        self, operation: Operation, caller: Caller, received: _Received, faults: InjectedFaults, now: float
    ) -> Content:
        """Run the handler and store its changes.

        Raises:
            Refusal: an injected one, a malformed message, the handler's, or the changes could not be stored.
        """
        if faults.refusal is not None:
            raise faults.refusal
        message = parse(operation, inflate(received.headers, received.body, self.settings.body_limit))
        journal = caller.instance.journal
        journal.check_writable()
        self._look_for_expired(now)
        try:
            return HANDLERS[operation.name](Call(caller.instance, now, faults.row_refusal), message)
        finally:
            # A refused call changes state as well: it may have found that clients timed out.
            journal.commit()
            # Only now nothing refers to the tables that the call has deleted.
            caller.instance.freed.give_back()

    def _look_for_expired(self, now: float) -> None:
        """Remove what time has expired from every instance: one that gets no calls would keep it without end.

        Raises:
            Refusal: the changes could not be stored.
        """
        for instance in self._instances.values():
            if instance.look_for_expired(now):
                instance.journal.commit()
                instance.freed.give_back()

    def _record(self, received: _Received, outcome: _Outcome, began: float, answer_bytes: int) -> None:
        self.history.add(
            CallRecord(
                outcome.now,
                received.headers.get("x-ots-instancename", "")[:_SHOWN],
                received.path.lstrip("/")[:_SHOWN],
                outcome.status,
                outcome.code,
                round((perf_counter() - began) * 1000, 3),
                len(received.body),
                answer_bytes,
            )
        )


def _received(request: HttpRequest) -> _Received:
    # `isascii` is tested here as well to save a function call per header.
    headers = {name.lower(): value if value.isascii() else readable(value) for name, value in request.headers.items()}
    return _Received(readable(route(request.path)), headers, request.body)


def route(path: str) -> str:
    """Return the path as clients sign it: single slashes, no prefix (docs/data-plane.md 1.1, docs/protocol.md 1.1)."""
    if "//" in path:
        path = _SLASHES.sub("/", path)
    tunnel = path.find("/tunnel/")
    return path[tunnel:] if tunnel >= 0 else "/" + path.rstrip("/").rpartition("/")[2]


def readable(text: str) -> str:
    """Return text that can be encoded: header bytes that are not UTF-8 arrive as lone surrogates."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def parse(operation: Operation, body: bytes) -> Any:
    """Parse the message of a request.

    Raises:
        Refusal: it is malformed, or lacks a required field.
    """
    try:
        message = operation.request_type.FromString(body)
        if not message.IsInitialized():
            raise CodecError(f"{operation.request_type.__name__} lacks a required field")
        # Checking every row of a batch here would cost more than its execution, which checks the texts itself.
        if operation.name != "BatchWriteRow":
            check_text(message)
    except (DecodeError, CodecError) as error:
        raise parameter_invalid("Parse PBMessage from RawString failed.") from error
    return message


def _failed(
    error: Exception, received: _Received, now: float, caller: Caller | None, faults: InjectedFaults
) -> _Outcome:
    if isinstance(error, Refusal):
        status, code, message = error.status, error.code, error.message
    else:
        # The service has a code for its own errors; the traceback belongs into the log, not to the client.
        _log.error("call failed", extra={"action": "call_failed", "path": received.path}, exc_info=error)
        status, code, message = 500, "OTSInternalServerError", "Internal server error."
    return _Outcome(status, code, error_body(code, message), now, caller, faults)


def _answer(received: _Received, outcome: _Outcome) -> HttpResponse:
    """Sign an answer, and compress it on request."""
    content = outcome.content
    body = Body(content) if isinstance(content, bytes) else content
    compressed = bool(body.content) and received.headers.get("x-ots-response-compress-type") == "deflate"
    headers = answer_headers(received.path, body, str(uuid.uuid4()), outcome.now, outcome.caller, compressed=compressed)
    return HttpResponse(outcome.status, headers, body.deflated if compressed else body.content)


def _lose(answer: HttpResponse, faults: InjectedFaults, path: str) -> None:
    """Raise the injected loss of the answer, if any."""
    if faults.drop_response:
        raise ConnectionLost(f"answer to {path} lost on purpose")
    if faults.cut_response:
        raise AnswerCut(answer)
