"""Clients of Tablestore instances, shared by endpoint and key pair; and how the project's own one looks at tables.

A client has one pool of connections and one TLS context, so many objects on one instance with one key pair cost as much
as one. Calls to an instance take turns (`turns`), whatever their key pair.
"""

from __future__ import annotations

from collections.abc import Callable

from ots_tunnel.client.caller import ServiceCaller
from ots_tunnel.client.table import TableClient, TableDescription
from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.errors import ConnectError, ObjectNotExist, TunnelError
from ots_tunnel.model import Credentials
from ots_tunnel.protocol.http.operations import TABLE_OPERATIONS, TUNNEL_OPERATIONS
from ots_tunnel.stream.calls.client import StreamClient
from ots_tunnel.stream.calls.lease_table import LeaseTable
from ots_tunnel.tables import AsyncTableAdmin, TableAdmin, TableSchema
from ots_tunnel.transport.aio import AioTransport
from ots_tunnel_operator.turns.calls import Calls

#: Errors that a call to an instance may raise.
CALL_ERRORS = (TunnelError, TimeoutError, OSError)


#: Most bytes of an answer with rows: a page has 4 MiB, and more where one row is larger.
ROWS_BYTES = 8 << 20
#: Most bytes of any other answer; a channel takes some 150 in the description of its tunnel.
ANSWER_BYTES = 2 << 20
#: Paths of the calls that are answered with rows.
_WITH_ROWS = frozenset({TUNNEL_OPERATIONS["ReadRecords"].path, TABLE_OPERATIONS["GetRange"].path})


def answer_limit(path: str) -> int:
    """Most bytes of an answer: an endpoint is whatever an object names, and all objects share the operator's memory."""
    return ROWS_BYTES if path in _WITH_ROWS else ANSWER_BYTES


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
        transport = AioTransport(endpoint, max_connections=0, answer_limit=answer_limit)
        self.tunnels = TunnelClient(endpoint, instance, lambda: credentials, transport, on_retry=_give_up)
        self.rows = TableClient(endpoint, instance, lambda: credentials, transport, on_retry=_give_up)
        self.tables = AsyncTableAdmin.connect(endpoint, instance, lambda: credentials)
        self._caller = ServiceCaller(transport, instance, lambda: credentials, on_retry=_give_up)
        self.streams = StreamClient(endpoint, instance, lambda: credentials, caller=self._caller)

    def __repr__(self) -> str:
        return f"Instance({self.instance} at {self.endpoint})"

    def leases(self, table: str) -> LeaseTable:
        """A table of leases, for reading."""
        return LeaseTable(self._caller, table)

    async def close(self) -> None:
        """Close every connection."""
        await self.tunnels.close()
        await self.rows.close()
        await self.tables.close()


def _give_up(_operation: str, error: TunnelError) -> None:
    """Stop the client's retries when no connection opens: the object reports the cause, the next pass tries again."""
    if isinstance(error, ConnectError):
        raise error


class InstanceTables:
    """The tables of an instance, for the creation of a destination (`ots_tunnel.tables.interface.Tables`).

    They are looked at by the project's own client. The vendor's SDK takes several times the CPU for a look, in one of a
    few threads; only it creates a table.
    """

    def __init__(self, instance: Instance) -> None:
        self.endpoint = instance.endpoint
        self.instance = instance.instance
        self._rows = instance.rows
        self._admin = instance.tables

    async def describe(self, table: str) -> TableSchema | None:
        """The schema of a table; None where it does not exist."""
        try:
            return table_schema(await self._rows.describe_table(table))
        except ObjectNotExist:
            return None

    async def answers(self, table: str, schema: TableSchema) -> bool:
        """True where the table answers row calls.

        Raises:
            ServerUnavailable: it does not yet.
        """
        await self._rows.is_empty(table, schema.keys)
        return True

    async def create_by(self, send: Callable[[TableAdmin, TableSchema], bool], schema: TableSchema) -> bool:
        """See `AsyncTableAdmin.create_by`."""
        return await self._admin.create_by(send, schema)


def table_schema(found: TableDescription) -> TableSchema:
    """The schema in a description, as the vendor's SDK tells it."""
    return TableSchema(
        found.name,
        found.primary_key,
        found.defined_columns,
        found.time_to_live,
        found.max_versions,
        found.max_version_deviation,
        found.allow_update,
    )


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
            calls = self._calls.setdefault((endpoint, instance), Calls(self._failed))
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
