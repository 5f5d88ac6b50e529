"""Faults of the API server between it and the operator: each kind of call suffers one, and what follows is recorded.

A middleware of `CrashProxy`. A call is a kind of request: who sends it (the operator or kopf), its verb, its resource.
The first request of a call meets the fault that is chosen for it; all later ones pass. `requests` has every request
with its time, so that a test judges how the operator goes on: whether it waits as long as it was asked to, and how
often it tries again.

    CONFLICT   409, nothing is carried out
    BUSY       429 with Retry-After
    ERROR      500
    SLOW       the answer is late
    LOST       the request is carried out, its answer never arrives
    FOREIGN    another client writes to the object right before the request arrives: a real 409, if it names a version
    CLOSED     every watch ends as soon as it is accepted, for a while
    SILENT     a watch is accepted, and nothing ever comes of it
    STALE      a watch loses a DELETED and ends; where it would go on, the version is too old (410)
"""

from __future__ import annotations

import asyncio
import enum
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from aiohttp import web

from tests.operator.scenes.crash_proxy import LOST, STREAM, Chunks, Handler

#: Seconds that a busy server asks for; more than the first pauses that clients make by themselves.
RETRY_AFTER = 3
#: Seconds by which a slow answer is late.
SLOW_SECONDS = 3.0
#: Seconds from the first one on for which the watches of one call are closed at once.
CLOSED_SECONDS = 10.0


class Fault(enum.StrEnum):
    """What happens to a request."""

    CONFLICT = "conflict"
    BUSY = "busy"
    ERROR = "error"
    SLOW = "slow"
    LOST = "lost"
    FOREIGN = "foreign"
    CLOSED = "closed"
    SILENT = "silent"
    STALE = "stale"


@dataclass(frozen=True, order=True)
class Call:
    """A kind of request.

    Args:
        client: `operator` or `kopf`.
        verb: as RBAC has it; a server-side apply is `apply`, and `try` where it is a dry run.
        resource: plural name with subresource; the path where a request is about no resource.
    """

    client: str
    verb: str
    resource: str

    def __str__(self) -> str:
        return f"{self.client} {self.verb} {self.resource}"

    @property
    def writes(self) -> bool:
        return self.verb in {"create", "update", "patch", "apply", "delete"}

    @property
    def suffers(self) -> frozenset[Fault]:
        """The faults that can happen to it."""
        found = {Fault.BUSY, Fault.ERROR, Fault.SLOW}
        if self.writes:
            found |= {Fault.CONFLICT, Fault.LOST}
        if self.verb in {"update", "patch", "apply", "delete"}:
            found.add(Fault.FOREIGN)
        if self.verb == "watch":
            found |= {Fault.CLOSED, Fault.SILENT, Fault.STALE}
        return frozenset(found)


@dataclass(frozen=True)
class Sent:
    """One request, and what happened to it."""

    at: float
    call: Call
    path: str
    fault: Fault | None


@dataclass
class ApiFaults:
    """The middleware and its record.

    Args:
        choose: the fault of a call; None lets all its requests pass.
        meddle: writes to the object at a path as another client, and says whether it did.
    """

    choose: Callable[[Call], Fault | None]
    meddle: Callable[[str, Call], bool] = lambda path, call: False
    requests: list[Sent] = field(default_factory=list)
    struck: dict[Call, Fault] = field(default_factory=dict)
    _closed: dict[Call, float] = field(default_factory=dict)
    _expired: set[tuple[Call, str]] = field(default_factory=set)

    @property
    def calls(self) -> set[Call]:
        """Every call that was made."""
        return {sent.call for sent in self.requests}

    @web.middleware
    async def stand_between(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Let a request pass, or not."""
        call = call_of(request)
        fault = self._fault(call)
        if fault is Fault.FOREIGN and not await asyncio.to_thread(self.meddle, request.path, call):
            fault = None  # there is no object yet: the next request suffers it
        self.requests.append(Sent(time.monotonic(), call, request.path, fault))
        if fault is not None and fault is not Fault.STALE:
            self.struck[call] = fault
        if fault in REFUSALS:
            status, reason, headers = REFUSALS[fault]
            document = {"kind": "Status", "status": "Failure", "reason": reason, "code": status, "message": "a fault"}
            return web.json_response(document, status=status, headers=headers)
        if fault is Fault.SLOW:
            await asyncio.sleep(SLOW_SECONDS)
        if fault is Fault.LOST:
            request[LOST] = True
        if fault in STREAMS:
            request[STREAM] = STREAMS[fault]
        if fault is Fault.STALE:
            return await self._stale(request, handler, call)
        return await handler(request)

    def _fault(self, call: Call) -> Fault | None:
        fault = self.choose(call)
        if fault is Fault.CLOSED:
            now = time.monotonic()
            return fault if now - self._closed.setdefault(call, now) < CLOSED_SECONDS else None
        if fault is Fault.STALE:
            return fault
        return None if call in self.struck else fault

    async def _stale(self, request: web.Request, handler: Handler, call: Call) -> web.StreamResponse:
        place = call, request.query.get("fieldSelector", "") + request.query.get("labelSelector", "")
        if place in self._expired and request.query.get("resourceVersion"):
            self._expired.discard(place)
            status = {"kind": "Status", "status": "Failure", "reason": "Expired", "code": 410, "message": "too old"}
            return web.Response(text=json.dumps({"type": "ERROR", "object": status}) + "\n")

        async def without_deleted(chunks: Chunks) -> Chunks:
            rest = b""
            async for chunk in chunks:
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    if call not in self.struck and json.loads(line)["type"] == "DELETED":
                        self.struck[call] = Fault.STALE
                        self._expired.add(place)
                        return
                    yield line + b"\n"

        request[STREAM] = without_deleted
        return await handler(request)


def call_of(request: web.Request) -> Call:
    """The kind of a request."""
    client = "kopf" if "kopf" in request.headers.get("User-Agent", "") else "operator"
    parts = request.path.strip("/").split("/")
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    if parts[:1] == ["namespaces"] and len(parts) > 2:
        parts = parts[2:]
    if not parts:
        return Call(client, "get", request.path)
    resource, name, subresource = (*parts, "", "")[:3]
    verb = {"POST": "create", "PUT": "update", "DELETE": "delete", "PATCH": "patch"}.get(request.method, "get")
    if "apply-patch" in request.content_type:
        verb = "try" if "dryRun" in request.query else "apply"
    if request.method == "GET" and not name:
        verb = "watch" if "watch" in request.query else "list"
    return Call(client, verb, "/".join(filter(None, (resource, subresource))))


def impatient(requests: list[Sent]) -> Iterator[str]:
    """The requests that came before the pause was over that the server had asked for."""
    for number, busy in enumerate(requests):
        if busy.fault is not Fault.BUSY:
            continue
        for later in requests[number + 1 :]:
            if (later.call, later.path) == (busy.call, busy.path) and later.at - busy.at < RETRY_AFTER:
                yield f"{later.call} {later.path} after {later.at - busy.at:.2f} s"


def busiest(requests: list[Sent], seconds: float) -> tuple[int, str]:
    """Most requests of one call about one path within so many seconds."""
    found = (0, "")
    times: dict[tuple[Call, str], list[float]] = {}
    for sent in requests:
        window = times.setdefault((sent.call, sent.path), [])
        window[:] = [at for at in window if sent.at - at < seconds] + [sent.at]
        found = max(found, (len(window), f"{sent.call} {sent.path}"))
    return found


async def _nothing(chunks: Chunks) -> Chunks:
    return
    yield b""


async def _silence(chunks: Chunks) -> Chunks:
    async for _ in chunks:
        pass
    # the server has ended the watch, and its client does not learn it
    await asyncio.Event().wait()
    yield b""


#: Status, reason and headers of the faults that refuse a request.
REFUSALS: Mapping[Fault | None, tuple[int, str, dict[str, str]]] = {
    Fault.CONFLICT: (409, "Conflict", {}),
    Fault.BUSY: (429, "TooManyRequests", {"Retry-After": str(RETRY_AFTER)}),
    Fault.ERROR: (500, "InternalError", {}),
}
#: What is passed on of a watch.
STREAMS: Mapping[Fault | None, Callable[[Chunks], Chunks]] = {Fault.CLOSED: _nothing, Fault.SILENT: _silence}
