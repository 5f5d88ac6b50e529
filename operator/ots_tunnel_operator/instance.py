"""Clients of one Tablestore instance, and the time limit of calls to it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from ots_tunnel.client.table import TableClient
from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.errors import ConnectError, ReadTimeout, TunnelError
from ots_tunnel.model import Credentials
from ots_tunnel.tables import AsyncTableAdmin

R = TypeVar("R")

#: Errors that a call to an instance may raise.
CALL_ERRORS = (TunnelError, TimeoutError, OSError)


class Instance:
    """Clients of one instance with one set of credentials."""

    def __init__(self, endpoint: str, instance: str, credentials: Credentials) -> None:
        self.endpoint = endpoint
        self.instance = instance
        self.credentials = credentials
        self.tunnels = TunnelClient(endpoint, instance, lambda: credentials, on_retry=_give_up)
        self.rows = TableClient(endpoint, instance, lambda: credentials, on_retry=_give_up)
        self.tables = AsyncTableAdmin.connect(endpoint, instance, lambda: credentials)

    def __repr__(self) -> str:
        return f"Instance({self.instance} at {self.endpoint})"

    async def close(self) -> None:
        """Close every connection."""
        await self.tunnels.close()
        await self.rows.close()
        await self.tables.close()


def _give_up(_operation: str, error: TunnelError) -> None:
    """Stop the client's retries when no connection opens: the object reports the cause, the next pass tries again."""
    if isinstance(error, ConnectError):
        raise error


async def within(seconds: float, call: Awaitable[R]) -> R:
    """Await a call to an instance for at most a number of seconds.

    Raises:
        ReadTimeout: the call took longer.
        Exception: the call's own errors.
    """
    try:
        async with asyncio.timeout(seconds) as limit:
            return await call
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise ReadTimeout(f"no answer within {seconds:g} s") from error
