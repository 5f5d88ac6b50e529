"""Calls and watches of the API server for the process that measures; it is not the operator's client."""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import aiohttp
import yaml

Document = dict[str, Any]
MERGE = "application/merge-patch+json"
TUNNELS = "/apis/ots-tunnel.dev/v1alpha1"
APPS = "/apis/apps/v1"
CORE = "/api/v1"
#: Seconds for which a call to a busy server is repeated.
PATIENCE = 60.0


class Api:
    """The API server of a kubeconfig with a token; many calls at once."""

    def __init__(self, kubeconfig: Path) -> None:
        document = yaml.safe_load(kubeconfig.read_text())
        cluster = document["clusters"][0]["cluster"]
        self._url = cluster["server"]
        self._tls = ssl.create_default_context(cafile=cluster["certificate-authority"])
        self._headers = {"Authorization": f"Bearer {document['users'][0]['user']['token']}"}
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(limit=0, ssl=self._tls)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=30)
        self._session = aiohttp.ClientSession(
            self._url, headers=self._headers, connector=connector, timeout=timeout, read_bufsize=1 << 22
        )
        return self

    async def __aexit__(self, *error: object) -> None:
        assert self._session is not None
        await self._session.close()

    async def call(
        self, method: str, path: str, body: Document | None = None, content: str = "application/json"
    ) -> Any:
        """Answer of a call.

        Raises:
            RuntimeError: it was refused.
        """
        assert self._session is not None
        data, give_up = None if body is None else json.dumps(body), time.monotonic() + PATIENCE
        while True:
            async with self._session.request(method, path, data=data, headers={"Content-Type": content}) as answer:
                text = await answer.text()
            if answer.status < 400:
                return json.loads(text)
            # a kind that was installed a moment ago, or a busy server
            if answer.status != 429 or time.monotonic() > give_up:
                raise RuntimeError(f"{method} {path}: {answer.status} {text[:300]}")
            await asyncio.sleep(1.0)

    async def follow(self, path: str, changed: Callable[[str, Document], None]) -> None:
        """Call a function with type and body of every object of a collection, now and whenever it changes; endless."""
        assert self._session is not None
        version = ""
        while True:
            if not version:
                listed = await self.call("GET", path)
                for item in listed["items"]:
                    changed("ADDED", item)
                version = listed["metadata"]["resourceVersion"]
            query = {
                "watch": "true",
                "allowWatchBookmarks": "true",
                "resourceVersion": version,
                "timeoutSeconds": "600",
            }
            async with self._session.get(path, params=query) as answer:
                async for line in answer.content:
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        version = ""
                        break
                    version = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] != "BOOKMARK":
                        changed(event["type"], event["object"])
            await asyncio.sleep(0.1)
