"""Steps of a work that end early with the order to stop: reads and pauses."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

_T = TypeVar("_T")


class Steps:
    """The steps of one work, one after the other."""

    def __init__(self) -> None:
        self._stopping = False
        #: Limit of the step under way, which `stop` ends.
        self._limit: asyncio.Timeout | None = None

    def __repr__(self) -> str:
        return f"Steps(stopping={self._stopping})"

    def stop(self) -> None:
        """End the step under way, and begin no other one."""
        self._stopping = True
        if self._limit is not None and not self._limit.expired():
            self._limit.reschedule(asyncio.get_running_loop().time())

    async def unless_stopped(self, step: Coroutine[Any, Any, _T]) -> _T | None:
        """The step's result; None where the order to stop has ended it."""
        if self._stopping:
            step.close()
            return None
        try:
            async with asyncio.timeout(None) as limit:
                self._limit = limit
                return await step
        except TimeoutError:
            if not limit.expired():
                raise
            return None
        finally:
            self._limit = None
