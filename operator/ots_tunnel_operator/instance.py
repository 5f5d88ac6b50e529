"""Clients of Tablestore instances, shared by endpoint and key pair.

A client has one pool of connections and one TLS context, so many objects on one instance with one key pair cost as much
as one. Calls to an instance take turns (`turns`), whatever their key pair.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ots_tunnel.client.table import TableClient
from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.errors import ConnectError, TunnelError
from ots_tunnel.model import Credentials
from ots_tunnel.tables import POOL_THREADS, AsyncTableAdmin
from ots_tunnel.transport.aio import AioTransport
from ots_tunnel_operator.turns.calls import Calls

#: Errors that a call to an instance may raise.
CALL_ERRORS = (TunnelError, TimeoutError, OSError)


class Instance:
    """Clients of one instance with one set of credentials.

    Args:
        calls: to the instance, with any credentials.
        before_write: called right before the bytes of a call that changes something leave; what it raises is raised.
    """

    def __init__(
        self,
        endpoint: str,
        instance: str,
        credentials: Credentials,
        calls: Calls,
        before_write: Callable[[], None] | None = None,
    ) -> None:
        self.calls = calls
        self.before_write = before_write
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
    """The clients of all instances; who acquires one releases it, and the last one closes it.

    Args:
        before_write: see `Instance`.
        failed: see `Calls`.
    """

    def __init__(
        self,
        before_write: Callable[[], None] | None = None,
        failed: Callable[[Exception], None] = lambda error: None,
    ) -> None:
        self._before_write = before_write
        self._failed = failed
        self._used: dict[tuple[str, str, Credentials], tuple[Instance, int]] = {}
        self._calls: dict[tuple[str, str], Calls] = {}
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
            calls = self._calls.setdefault((endpoint, instance), Calls(self._threads, self._failed))
            found = Instance(endpoint, instance, credentials, calls, self._before_write)
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
            self._calls.pop(key[:2], None)
        await instance.close()
