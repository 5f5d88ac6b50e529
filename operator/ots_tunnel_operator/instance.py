"""Calls to an instance: how long they may take, and what they raise."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from ots_tunnel.errors import ReadTimeout, TunnelError

R = TypeVar("R")

#: What a failed call to an instance may raise.
CALL_ERRORS = (TunnelError, TimeoutError, OSError)


async def within(seconds: float, call: Awaitable[R]) -> R:
    """The answer to a call.

    Raises:
        ReadTimeout: it took longer. Everything else: as the call.
    """
    try:
        async with asyncio.timeout(seconds):
            return await call
    except TimeoutError as error:
        raise ReadTimeout(f"not within {seconds:g} s") from error
