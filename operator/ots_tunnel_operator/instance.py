"""Clients of Tablestore instances, shared by endpoint and key pair, and the budget and time limit of calls.

A client has one pool of connections and one TLS context, so many objects on one instance with one key pair cost as much
as one. Calls to an instance take turns, whatever their key pair: at most CALLS at once, and of the vendor's SDK, which
blocks threads, at most as many as there are threads. The time of a call begins with its turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any, TypeVar

from ots_tunnel.client.table import TableClient
from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.errors import ConnectError, ReadTimeout, TunnelError
from ots_tunnel.model import Credentials
from ots_tunnel.tables import POOL_THREADS, AsyncTableAdmin
from ots_tunnel.transport.aio import AioTransport

R = TypeVar("R")

#: Errors that a call to an instance may raise.
CALL_ERRORS = (TunnelError, TimeoutError, OSError)


#: Calls to one instance under way at once.
CALLS = 8


class Instance:
    """Clients of one instance with one set of credentials.

    Args:
        turns: bounds the calls to the instance.
        threads: bounds the calls of the vendor's SDK, of the whole process.
    """

    def __init__(
        self,
        endpoint: str,
        instance: str,
        credentials: Credentials,
        turns: asyncio.Semaphore,
        threads: asyncio.Semaphore,
    ) -> None:
        self.turns = turns
        self.threads = threads
        self.endpoint = endpoint
        self.instance = instance
        self.credentials = credentials
        transport = AioTransport(endpoint, max_connections=0)
        self.tunnels = TunnelClient(endpoint, instance, lambda: credentials, transport, on_retry=_give_up)
        self.rows = TableClient(endpoint, instance, lambda: credentials, transport, on_retry=_give_up)
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


class InstancePool:
    """The clients of all instances; who acquires one releases it, and the last one closes it."""

    def __init__(self) -> None:
        self._used: dict[tuple[str, str, Credentials], tuple[Instance, int]] = {}
        self._turns: dict[tuple[str, str], asyncio.Semaphore] = {}
        self._threads = asyncio.Semaphore(POOL_THREADS)

    def __len__(self) -> int:
        return len(self._used)

    def acquire(self, endpoint: str, instance: str, credentials: Credentials) -> Instance:
        """Clients of an instance with these credentials.

        Raises:
            ConfigError: endpoint, instance or credentials are not valid.
        """
        key = endpoint, instance, credentials
        found, users = self._used.get(key, (None, 0))
        if found is None:
            turns = self._turns.setdefault((endpoint, instance), asyncio.Semaphore(CALLS))
            found = Instance(endpoint, instance, credentials, turns, self._threads)
        self._used[key] = found, users + 1
        return found

    async def release(self, instance: Instance) -> None:
        """Give clients back; they close with their last user."""
        key = instance.endpoint, instance.instance, instance.credentials
        found, users = self._used.pop(key, (instance, 1))
        if users > 1:
            self._used[key] = found, users - 1
            return
        if not any(place[:2] == key[:2] for place in self._used):
            self._turns.pop(key[:2], None)
        await instance.close()


async def within(seconds: float, call: Awaitable[R], *turns: AbstractAsyncContextManager[Any]) -> R:
    """Await a call to an instance for at most a number of seconds, which begin when it has all of its turns.

    Raises:
        ReadTimeout: the call took longer.
        Exception: the call's own errors.
    """
    async with AsyncExitStack() as stack:
        for turn in turns:
            await stack.enter_async_context(turn)
        try:
            async with asyncio.timeout(seconds) as limit:
                return await call
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise ReadTimeout(f"no answer within {seconds:g} s") from error
