"""Tables through the vendor's SDK: describe, create, list, delete, and row writes for those who want them from it.

The only importer of `tablestore` (design rule 20). Its calls block, so `AsyncTableAdmin` runs them in one bounded
pool. Whatever the SDK raises is translated into the package's own errors here.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any, Self, TypeVar

import urllib3.exceptions

from ots_tunnel.credentials import CredentialsProvider
from ots_tunnel.errors import (
    CodecError,
    ConnectError,
    ConnectionLost,
    ObjectNotExist,
    ReadTimeout,
    ServiceError,
    TransportError,
    TunnelError,
    service_error,
)
from ots_tunnel.model import Action, CellOp, Column, Credentials, KeyType, PrimaryKey


@contextlib.contextmanager
def _quiet_import() -> Iterator[None]:
    """Silence what the SDK says about its compiled codec, which exists for one Python version only.

    It says it twice by a warning and twice through two loggers; the pure codec then does the work.
    """
    loggers = [logging.getLogger(name) for name in ("tablestore.encoder", "tablestore.decoder")]
    levels = [logger.level for logger in loggers]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="OTS C\\+\\+ SDK extension", category=ImportWarning)
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)


with _quiet_import():
    import tablestore as sdk
    from tablestore.retry import DefaultRetryPolicy

R = TypeVar("R")

# The SDK logs every refused call as an error, and below this level formats each request with its rows and headers,
# whether anybody reads that or not. Whatever goes wrong reaches our callers as an exception.
_SDK_LOGGER = logging.getLogger("ots_tunnel.tables.sdk")
_SDK_LOGGER.setLevel(logging.CRITICAL)

#: Threads for blocking calls; table calls are few (the service allows ten a second per instance).
POOL_THREADS = 4

#: Seconds a connection may take to open and an answer to arrive.
SOCKET_TIMEOUT = 15.0

#: Retries inside the SDK for throttling and read errors, some three seconds in all; callers have their own loops.
MAX_RETRIES = 4

#: Deviation of a table whose creator names none, in seconds (tablestore-api 2.4).
DEFAULT_DEVIATION = 86_400

_KEY_TYPES = {"INTEGER": KeyType.INTEGER, "STRING": KeyType.STRING, "BINARY": KeyType.BINARY}


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """One column of the primary key."""

    name: str
    type: KeyType
    auto_increment: bool = False


@dataclass(frozen=True, slots=True)
class TableSchema:
    """What a table is: keys in order, predefined columns, and its options (tablestore-api 2.4).

    `ttl_seconds` -1 means for ever. `deviation_seconds` is how far a cell's version may lie from the server's time.
    `defined_columns` are (name, type) with the service's type names, such as ``("price", "DOUBLE")``.
    """

    name: str
    keys: tuple[KeyColumn, ...]
    defined_columns: tuple[tuple[str, str], ...] = ()
    ttl_seconds: int = -1
    max_versions: int = 1
    deviation_seconds: int = DEFAULT_DEVIATION
    allow_update: bool = True


@dataclass(frozen=True, slots=True)
class RowWrite:
    """One row change in the vocabulary of the model; deletions carry no columns."""

    action: Action
    primary_key: PrimaryKey
    columns: tuple[Column, ...] = ()

    def __repr__(self) -> str:
        return f"RowWrite({self.action.name}, {len(self.columns)} columns)"


class TableAdmin:
    """Calls on the tables of one instance; every method blocks and may be called from any thread."""

    def __init__(self, endpoint: str, instance: str, credentials: CredentialsProvider) -> None:
        self.endpoint = endpoint.rstrip("/")
        self.instance = instance
        self._provider = credentials
        self._used: Credentials | None = None
        self._client: Any = None

    def __repr__(self) -> str:
        return f"TableAdmin({self.instance} at {self.endpoint})"

    def describe(self, table: str) -> TableSchema | None:
        """The table as it is, None when it does not exist.

        Raises:
            ServiceError, TransportError: as the service and the network say.
        """
        try:
            return _schema(self._call("describe_table", table))
        except ObjectNotExist:
            return None

    def create(self, schema: TableSchema) -> None:
        """Create a table; it may take a minute until it answers row calls.

        Raises:
            ObjectAlreadyExist: the name is taken.
            ServiceError, TransportError: as the service and the network say.
        """
        meta = sdk.TableMeta(schema.name, [_sdk_key(key) for key in schema.keys], list(schema.defined_columns))
        options = sdk.TableOptions(
            schema.ttl_seconds, schema.max_versions, schema.deviation_seconds, None if schema.allow_update else False
        )
        self._call("create_table", meta, options, sdk.ReservedThroughput(sdk.CapacityUnit(0, 0)))

    def list(self) -> tuple[str, ...]:
        """Names of all tables of the instance.

        Raises:
            ServiceError, TransportError: as the service and the network say.
        """
        return tuple(self._call("list_table"))

    def delete(self, table: str) -> None:
        """Delete a table with everything in it.

        Raises:
            ObjectNotExist: there is none.
            ServiceError, TransportError: as the service and the network say.
        """
        self._call("delete_table", table)

    def answers(self, table: str, schema: TableSchema) -> bool:
        """Whether the table answers row calls yet: reads at most one row.

        Raises:
            ServiceError, TransportError: anything but the errors of a table that is not ready.
        """
        return self._first_row(table, schema) is not None

    def is_empty(self, table: str, schema: TableSchema) -> bool:
        """Whether the table has no row.

        Raises:
            ServiceError, TransportError: as the service and the network say.
        """
        rows = self._first_row(table, schema)
        if rows is None:
            raise service_error("OTSTableNotReady", f"table {table!r} does not answer yet", http_status=404)
        return not rows

    def first_version(self, table: str, schema: TableSchema) -> int | None:
        """The oldest cell version of the table's first row, milliseconds; None when it has no cell.

        Raises:
            ServiceError, TransportError: as the service and the network say.
        """
        cells = [cell for row in self._first_row(table, schema) or () for cell in row.attribute_columns]
        return min((cell[2] for cell in cells), default=None)

    def write(self, table: str, rows: Sequence[RowWrite]) -> Sequence[ServiceError | None]:
        """Write at most 200 rows with different keys in one call; the outcome of each, None when it is stored.

        Raises:
            ServiceError, TransportError: the call as a whole failed; rows may be stored or not.
        """
        request = sdk.BatchWriteRowRequest()
        request.add(sdk.TableInBatchWriteRowItem(table, [_sdk_row(row) for row in rows]))
        response = self._call("batch_write_row", request)
        items = [*response.table_of_put[table], *response.table_of_update[table], *response.table_of_delete[table]]
        items.sort(key=lambda item: item.index)
        return tuple(None if item.is_ok else service_error(item.error_code, item.error_message) for item in items)

    def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        if self._client is not None:
            self._client.connection.pool.clear()
            self._client = None

    def _first_row(self, table: str, schema: TableSchema) -> Sequence[Any] | None:
        low = [(key.name, sdk.INF_MIN) for key in schema.keys]
        high = [(key.name, sdk.INF_MAX) for key in schema.keys]
        try:
            answer = self._call("get_range", table, sdk.Direction.FORWARD, low, high, None, 1, max_version=1)
        except ServiceError as error:
            if error.code in ("OTSTableNotReady", "OTSPartitionUnavailable"):
                return None
            raise
        rows: Sequence[Any] = answer[2]
        return rows

    def _call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        client = self._current_client()
        try:
            return getattr(client, name)(*args, **kwargs)
        except (sdk.OTSServiceError, sdk.OTSClientError, urllib3.exceptions.HTTPError, OSError) as error:
            raise translate(error) from error

    def _current_client(self) -> Any:
        """The SDK's client for the credentials of now: a rotated Secret needs no restart."""
        credentials = self._provider()
        if self._client is None or credentials != self._used:
            policy = DefaultRetryPolicy()
            policy.max_retry_times = MAX_RETRIES
            self._client = sdk.OTSClient(
                self.endpoint,
                credentials.access_key_id,
                credentials.access_key_secret,
                self.instance,
                sts_token=credentials.security_token,
                socket_timeout=SOCKET_TIMEOUT,
                logger_name=_SDK_LOGGER.name,
                max_connection=POOL_THREADS,
                retry_policy=policy,
            )
            # the pool of connections would try four times, SOCKET_TIMEOUT each, in one of few threads
            self._client.connection.pool.connection_pool_kw["retries"] = False
            self._used = credentials
        return self._client


class AsyncTableAdmin:
    """The same calls as coroutines."""

    def __init__(self, admin: TableAdmin) -> None:
        self.admin = admin

    @classmethod
    def connect(cls, endpoint: str, instance: str, credentials: CredentialsProvider) -> Self:
        """For an instance, as `TableAdmin`."""
        return cls(TableAdmin(endpoint, instance, credentials))

    def __repr__(self) -> str:
        return f"AsyncTableAdmin({self.admin!r})"

    async def describe(self, table: str) -> TableSchema | None:
        """See `TableAdmin.describe`."""
        return await run_blocking(self.admin.describe, table)

    async def create(self, schema: TableSchema) -> None:
        """See `TableAdmin.create`."""
        await run_blocking(self.admin.create, schema)

    async def list(self) -> tuple[str, ...]:
        """See `TableAdmin.list`."""
        return await run_blocking(self.admin.list)

    async def delete(self, table: str) -> None:
        """See `TableAdmin.delete`."""
        await run_blocking(self.admin.delete, table)

    async def is_empty(self, table: str, schema: TableSchema) -> bool:
        """See `TableAdmin.is_empty`."""
        return await run_blocking(self.admin.is_empty, table, schema)

    async def close(self) -> None:
        """See `TableAdmin.close`."""
        self.admin.close()


async def run_blocking(call: Callable[..., R], *args: Any) -> R:
    """Run a blocking call in the pool that all table calls of the process share.

    A cancelled caller stops waiting; the call itself ends by its own timeouts.
    """
    return await asyncio.get_running_loop().run_in_executor(_pool(), call, *args)


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(POOL_THREADS, thread_name_prefix="table-admin")


def translate(error: Exception) -> TunnelError:
    """The package's error for what the SDK, urllib3 or the socket raised."""
    match error:
        case sdk.OTSServiceError():
            return service_error(error.code, error.message, error.request_id or "", error.http_status)
        case sdk.OTSClientError():
            return CodecError(f"the SDK refused a request or an answer: {error}")
        case urllib3.exceptions.MaxRetryError() if error.reason is not None:
            return translate(error.reason)
        case urllib3.exceptions.NewConnectionError() | urllib3.exceptions.ConnectTimeoutError():
            return ConnectError(str(error))
        case urllib3.exceptions.ReadTimeoutError():
            return ReadTimeout(str(error))
        case urllib3.exceptions.ProtocolError():
            return ConnectionLost(str(error))
        case _:
            return TransportError(str(error))


def _schema(response: Any) -> TableSchema:
    meta, options = response.table_meta, response.table_options
    return TableSchema(
        name=meta.table_name,
        keys=tuple(_key_column(*key) for key in meta.schema_of_primary_key),
        defined_columns=tuple((name, kind) for name, kind in meta.defined_columns or ()),
        ttl_seconds=options.time_to_live,
        max_versions=options.max_version,
        deviation_seconds=options.max_time_deviation,
        allow_update=options.allow_update,
    )


def _key_column(name: str, kind: str, option: object = None) -> KeyColumn:
    return KeyColumn(name, _KEY_TYPES[kind], option is sdk.PK_AUTO_INCR)


def _sdk_key(key: KeyColumn) -> tuple[Any, ...]:
    return (key.name, key.type.name, sdk.PK_AUTO_INCR) if key.auto_increment else (key.name, key.type.name)


def _sdk_row(row: RowWrite) -> Any:
    condition = sdk.Condition(sdk.RowExistenceExpectation.IGNORE)
    key = [(name, _sdk_value(value)) for name, value in row.primary_key]
    match row.action:
        case Action.PUT:
            cells = [_sdk_cell(column) for column in row.columns]
            return sdk.PutRowItem(sdk.Row(key, cells), condition)
        case Action.UPDATE:
            return sdk.UpdateRowItem(sdk.Row(key, _sdk_update(row.columns)), condition)
        case Action.DELETE:
            return sdk.DeleteRowItem(sdk.Row(key), condition)


def _sdk_update(columns: Sequence[Column]) -> dict[str, list[tuple[Any, ...]]]:
    cells: dict[str, list[tuple[Any, ...]]] = {}
    for column in columns:
        match column.op:
            case CellOp.PUT:
                cells.setdefault("PUT", []).append(_sdk_cell(column))
            case CellOp.DELETE_ONE_VERSION:
                # Three members: with two the SDK sends the version as a value (tablestore-api 3.4).
                cells.setdefault("DELETE", []).append((column.name, None, column.timestamp_ms))
            case CellOp.DELETE_ALL_VERSIONS:
                cells.setdefault("DELETE_ALL", []).append((column.name, None))
            case CellOp.INCREMENT:
                cells.setdefault("INCREMENT", []).append((column.name, column.value))
    return cells


def _sdk_cell(column: Column) -> tuple[Any, ...]:
    value = _sdk_value(column.value)
    return (column.name, value) if column.timestamp_ms is None else (column.name, value, column.timestamp_ms)


def _sdk_value(value: Any) -> Any:
    # The SDK sends bytes as a string; only a bytearray becomes binary (tablestore-api 3.4).
    return bytearray(value) if isinstance(value, bytes) else value
