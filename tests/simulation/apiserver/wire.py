"""The connection beneath the operator's real client (`ots_tunnel_operator.kube.client`), answered by the model.

`ModelCluster` takes the place of the whole client, which most stories need. With this one the client itself is told:
its statuses, lines of a watch, and the pauses that the API server asks for.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import parse_qsl, urlsplit

from kubernetes.aio.client.api_client import ApiClient

from ots_tunnel_operator.kube.client import Kube
from ots_tunnel_operator.names import FIELD_MANAGER
from tests.simulation.apiserver.api import Api, Request
from tests.simulation.apiserver.client import Fate
from tests.simulation.apiserver.paths import parse, selects
from tests.simulation.apiserver.refusal import NOT_SERVED, Refusal
from tests.simulation.apiserver.store import Event, Key, Manifest
from tests.simulation.apiserver.watches import Watches

HOST = "http://api"


class _Answer:
    """Status, headers and body of one answer, as the client reads them; it is its own stream."""

    def __init__(self, status: int, headers: Mapping[str, str], lines: AsyncIterator[bytes]) -> None:
        self.status, self.headers, self.content = status, headers, self
        self.connection = None
        self._lines = lines

    async def read(self) -> bytes:
        """The whole body."""
        return b"".join([line async for line in self._lines])

    def iter_any(self) -> AsyncIterator[bytes]:
        """The body as it arrives."""
        return self._lines

    def close(self) -> None:
        """Nobody reads on."""


class Wire:
    """The API server as an HTTP client sees it.

    Args:
        fate: decides what becomes of a request.
        pause: seconds that the API server asks the sender of a request to wait (429), for which it does nothing; None
            where it answers.
    """

    def __init__(
        self,
        api: Api,
        watches: Watches,
        fate: Callable[[Request], Fate],
        pause: Callable[[Request], int | None] = lambda request: None,
    ) -> None:
        self.configuration = SimpleNamespace(host=HOST)
        self.rest_client = self
        self._api = api
        self._watches = watches
        self._fate = fate
        self._pause = pause

    def client(self, may_write: Callable[[], bool] | None = None) -> Kube:
        """The operator's client over this connection."""
        return Kube(cast(ApiClient, self), may_write)

    async def update_params_for_auth(self, *arguments: Any) -> None:
        """The model knows no accounts."""

    async def close(self) -> None:
        """Nothing is kept open."""

    async def request(
        self, method: str, url: str, *, headers: Mapping[str, str], body: Manifest | None, _request_timeout: object
    ) -> SimpleNamespace:
        """Answer a request; its time-out is that of the fate, where an answer gets lost."""
        parts = urlsplit(url)
        query = dict(parse_qsl(parts.query))
        request = Request(method, parts.path, body, query, headers["Content-Type"], FIELD_MANAGER)
        fate = self._fate(request)
        await asyncio.sleep(fate.before)
        if (pause := self._pause(request)) is not None:
            refusal = Refusal(429, "TooManyRequests", "the model has too many requests")
            answer = _Answer(429, {"Retry-After": str(pause)}, _documents(refusal.document))
        elif fate.refusal is not None:
            answer = _refused(fate.refusal, request)
        else:
            answer = await (self._watch(request) if "watch" in query else self._call(request, fate))
        await asyncio.sleep(fate.after)
        return SimpleNamespace(response=answer)

    async def _call(self, request: Request, fate: Fate) -> _Answer:
        behind = fate.versions_behind
        try:
            found = self._api.call(request, version=self._api.store.version - behind if behind else None)
        except Refusal as refusal:
            return _refused(refusal, request)
        if fate.is_lost:
            raise TimeoutError(f"{request.method} {request.path}: no answer")
        return _Answer(200, {}, _documents(found))

    async def _watch(self, request: Request) -> _Answer:
        place, query = parse(request.path), request.query
        name = query.get("fieldSelector", "").removeprefix("metadata.name=")

        def is_selected(key: Key, manifest: Manifest) -> bool:
            labels = manifest["metadata"].get("labels") or {}
            fits = key[0] == place.kind.kind and place.namespace in ("", key[1]) and name in ("", key[2])
            return fits and selects(query.get("labelSelector", ""), labels)

        since = query.get("resourceVersion")
        events = self._watches.events(is_selected, int(since) if since else None, float(query["timeoutSeconds"]))
        try:
            # it says that the watch is accepted, as the client itself does
            await anext(events)
        except Refusal as refusal:
            return _refused(refusal, request)
        return _Answer(200, {}, _lines(events))


def _refused(refusal: Refusal, request: Request) -> _Answer:
    document = refusal.document
    if refusal.status == 404 and refusal.reason != NOT_SERVED:
        # where nothing of the kind is served, no object is named
        document |= {"details": {"name": request.path.rpartition("/")[2]}}
    return _Answer(refusal.status, {}, _documents(document))


async def _documents(*documents: Any) -> AsyncIterator[bytes]:
    for document in documents:
        yield json.dumps(document).encode() + b"\n"


async def _lines(events: AsyncGenerator[Event, None]) -> AsyncIterator[bytes]:
    try:
        async for event in events:
            yield json.dumps({"type": event.type, "object": event.object}).encode() + b"\n"
    finally:
        await events.aclose()
