"""From an HTTP request to its answer: route, authenticate, parse, execute, sign.

Source: docs/data-plane.md 1.5 to 1.8, docs/protocol.md 1.
"""

from __future__ import annotations

import asyncio
import logging
import re
import uuid
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any, Final

from google.protobuf.message import DecodeError

from ots_emulator.api import reads as read_api
from ots_emulator.api import streams as stream_api
from ots_emulator.api import tables as table_api
from ots_emulator.api import transactions as transaction_api
from ots_emulator.api import tunnels as tunnel_api
from ots_emulator.api import unsupported as absent_api
from ots_emulator.api import writes as write_api
from ots_emulator.api.call import Call
from ots_emulator.clock import Clock
from ots_emulator.instance import Instance
from ots_emulator.pages import Body
from ots_emulator.refusal import Refusal, parameter_invalid
from ots_emulator.server.auth import Caller, answer_headers, authenticate, body_too_large, claimed_caller, inflate
from ots_emulator.server.faults import Faults
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
Answer = bytes | Body

HANDLERS: Final[Mapping[str, Callable[[Call, Any], Answer]]] = {
    **table_api.HANDLERS,
    **write_api.HANDLERS,
    **read_api.HANDLERS,
    **transaction_api.HANDLERS,
    **stream_api.HANDLERS,
    **tunnel_api.HANDLERS,
    **absent_api.HANDLERS,
}
_OPERATIONS: Final = {**OPERATIONS_BY_PATH, **absent_api.OPERATIONS_BY_PATH}


class AnswerCut(ConnectionLost):
    """The connection is to break in the middle of this answer, on purpose."""

    def __init__(self, answer: HttpResponse) -> None:
        super().__init__("answer cut on purpose")
        self.answer = answer


class Application:
    """Answers requests; one call at a time touches the state, so every call is atomic.

    Args:
        instances: by name.
        clock: the service's time.
        settings: behaviour.
        faults: scripted trouble.
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
            ConnectionLost: a fault rule lost the answer; the call has been executed.
        """
        self.calls += 1
        began, now = perf_counter(), self._clock.now()
        path = readable(route(request.path))
        headers = {name.lower(): readable(value) for name, value in request.headers.items()}
        caller: Caller | None = None
        status, code, trouble = 200, "", None
        body: Answer
        try:
            operation = _operation(path)
            caller = self._caller(path, headers, request.body, now)
            trouble = self._faults.take(operation.name, caller.access_key_id, now)
            if trouble is not None:
                await asyncio.sleep(trouble.latency)
                if trouble.refusal is not None:
                    raise trouble.refusal
                now = self._clock.now()
            message = parse(operation, inflate(headers, request.body, self.settings.body_limit))
            journal = caller.instance.journal
            journal.check_writable()
            try:
                row_refusal = trouble.row_refusal if trouble is not None else None
                body = HANDLERS[operation.name](Call(caller.instance, now, row_refusal), message)
            finally:
                # Also what a refused call has changed, such as clients that it found to be timed out.
                journal.commit()
        except Refusal as refusal:
            status, code = refusal.status, refusal.code
            body = error_body(code, refusal.message)
        except Exception:
            # The service has a code for its own mistakes; ours belong into the log, not to the client.
            _log.exception("call failed", extra={"action": "call_failed", "path": path})
            status, code = 500, "OTSInternalServerError"
            body = error_body(code, "Internal server error.")
        answer = _answer(path, headers, status, body, now, caller or claimed_caller(headers, self._instances))
        self.history.add(
            CallRecord(
                now,
                headers.get("x-ots-instancename", "")[:_SHOWN],
                path.lstrip("/")[:_SHOWN],
                status,
                code,
                round((perf_counter() - began) * 1000, 3),
                len(request.body),
                len(answer.body),
            )
        )
        if trouble is not None and trouble.drop_response:
            raise ConnectionLost(f"answer to {path} lost on purpose")
        if trouble is not None and trouble.cut_response:
            raise AnswerCut(answer)
        return answer

    def refuse(self, path: str, sent: Mapping[str, str], refusal: Refusal) -> HttpResponse:
        """Answer a request whose body was not read."""
        headers = {name.lower(): readable(value) for name, value in sent.items()}
        caller = claimed_caller(headers, self._instances)
        body = error_body(refusal.code, refusal.message)
        return _answer(readable(route(path)), {}, refusal.status, body, self._clock.now(), caller)

    def _caller(self, path: str, headers: Mapping[str, str], body: bytes, now: float) -> Caller:
        caller = authenticate(path, headers, body, self._instances, now=now, skew=self.settings.date_skew)
        if len(body) > self.settings.body_limit:
            raise body_too_large()
        return caller


def route(path: str) -> str:
    """Return the path as clients sign it: single slashes, no prefix (docs/data-plane.md 1.1, docs/protocol.md 1.1)."""
    path = _SLASHES.sub("/", path)
    tunnel = path.find("/tunnel/")
    return path[tunnel:] if tunnel >= 0 else "/" + path.rstrip("/").rpartition("/")[2]


def readable(text: str) -> str:
    """Return text that can be encoded: bytes of a header that are no UTF-8 arrive as lone surrogates."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def _operation(path: str) -> Operation:
    operation = _OPERATIONS.get(path)
    if operation is None or operation.name not in HANDLERS:
        raise parameter_invalid(f"Unsupported operation: '{path.lstrip('/')}'.")
    return operation


def parse(operation: Operation, body: bytes) -> Any:
    """Parse the message of a request.

    Raises:
        Refusal: it is none, or lacks a required field.
    """
    try:
        message = operation.request_type.FromString(body)
        if not message.IsInitialized():
            raise CodecError(f"{operation.request_type.__name__} lacks a required field")
        # Looking into every row of a batch would cost more than executing it; its table names are looked at there.
        if operation.name != "BatchWriteRow":
            check_text(message)
    except (DecodeError, CodecError) as error:
        raise parameter_invalid("Parse PBMessage from RawString failed.") from error
    return message


def _answer(
    path: str, headers: Mapping[str, str], status: int, answer: Answer, now: float, caller: Caller | None
) -> HttpResponse:
    body = Body(answer) if isinstance(answer, bytes) else answer
    compressed = bool(body.content) and headers.get("x-ots-response-compress-type") == "deflate"
    signed = answer_headers(path, body, str(uuid.uuid4()), now, caller, compressed=compressed)
    return HttpResponse(status, signed, body.deflated if compressed else body.content)
