"""The workers' status pages, as the operator reads them: by the address of a pod."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

#: The document at a path of the process at an address; raises OSError where nobody answers.
Ask = Callable[[str, str], dict[str, Any]]


class Reports:
    """Stands for the reader of pages (`observe.worker_page.ReadPage`).

    Args:
        ask: answers for the processes.
        seconds: until the answer arrives; None where it never does.
    """

    def __init__(self, ask: Ask, seconds: Callable[[str], float | None]) -> None:
        self._ask = ask
        self._seconds = seconds

    async def read(self, address: str, path: str) -> bytes:
        """The page at an address."""
        seconds = self._seconds(address)
        await asyncio.sleep(1e9 if seconds is None else seconds)
        return json.dumps(self._ask(address, path)).encode()
