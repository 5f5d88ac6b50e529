"""The workers' status pages, as the operator's HTTP session reads them: by the address of a pod."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import aiohttp

#: The document at a path of the process at an address; raises OSError where nobody answers.
Ask = Callable[[str, str], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Page:
    """An answer."""

    status: int
    text: str

    @property
    def content_length(self) -> int:
        """Bytes of the answer."""
        return len(self.text)

    async def json(self, content_type: str | None = None) -> Any:
        """The document."""
        return json.loads(self.text)


class Reports:
    """Stands for `aiohttp.ClientSession`.

    Args:
        ask: answers for the processes.
        seconds: until the answer arrives; None where it never does.
    """

    def __init__(self, ask: Ask, seconds: Callable[[str], float | None]) -> None:
        self._ask = ask
        self._seconds = seconds

    @asynccontextmanager
    async def get(self, url: str, timeout: aiohttp.ClientTimeout) -> AsyncIterator[Page]:
        """The page at an address."""
        place = urlsplit(url)
        address = place.hostname or ""
        seconds = self._seconds(address)
        async with asyncio.timeout(timeout.total):
            await asyncio.sleep(1e9 if seconds is None else seconds)
        try:
            yield Page(200, json.dumps(self._ask(address, place.path)))
        except OSError as error:
            raise aiohttp.ClientConnectionError(str(error)) from error

    async def close(self) -> None:
        """Nothing is open."""
