"""Calls on tables, blocking."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ots_tunnel.credentials import CredentialsProvider
from ots_tunnel.endpoint import check_place
from ots_tunnel.errors import ObjectNotExist, ServiceError
from ots_tunnel.model import Credentials
from ots_tunnel.protocol.service_codes import service_error
from ots_tunnel.tables.schema import RowWrite, TableSchema
from ots_tunnel.tables.sdk import ERRORS, connect, sdk, translate
from ots_tunnel.tables.sdk_values import schema_of, sdk_key, sdk_row


class TableAdmin:
    """Calls on the tables of one instance; every method blocks and can be called from any thread."""

    def __init__(self, endpoint: str, instance: str, credentials: CredentialsProvider) -> None:
        check_place(endpoint, instance)
        self.endpoint = endpoint.rstrip("/")
        self.instance = instance
        self._provider = credentials
        self._used: Credentials | None = None
        self._client: Any = None

    def __repr__(self) -> str:
        return f"TableAdmin({self.instance} at {self.endpoint})"

    def describe(self, table: str) -> TableSchema | None:
        """The schema of a table; None if the table does not exist.

        Raises:
            ServiceError, TransportError: the call failed.
        """
        try:
            return schema_of(self._call("describe_table", table))
        except ObjectNotExist:
            return None

    def create(self, schema: TableSchema) -> None:
        """Create a table; it may take a minute before it answers row calls.

        Raises:
            ObjectAlreadyExist: a table of this name exists.
            ServiceError, TransportError: the call failed.
        """
        meta = sdk.TableMeta(schema.name, [sdk_key(key) for key in schema.keys], list(schema.defined_columns))
        options = sdk.TableOptions(
            schema.ttl_seconds, schema.max_versions, schema.deviation_seconds, None if schema.allow_update else False
        )
        self._call("create_table", meta, options, sdk.ReservedThroughput(sdk.CapacityUnit(0, 0)))

    def list(self) -> tuple[str, ...]:
        """Names of all tables of the instance.

        Raises:
            ServiceError, TransportError: the call failed.
        """
        return tuple(self._call("list_table"))

    def delete(self, table: str) -> None:
        """Delete a table with its rows.

        Raises:
            ObjectNotExist: the table does not exist.
            ServiceError, TransportError: the call failed.
        """
        self._call("delete_table", table)

    def answers(self, table: str, schema: TableSchema) -> bool:
        """Whether the table answers row calls; reads at most one row.

        Raises:
            ServiceError, TransportError: any error except those of a table that is not ready.
        """
        return self._first_row(table, schema) is not None

    def is_empty(self, table: str, schema: TableSchema) -> bool:
        """Whether the table has no row.

        Raises:
            ServiceError, TransportError: the call failed.
        """
        rows = self._first_row(table, schema)
        if rows is None:
            raise service_error("OTSTableNotReady", f"table {table!r} does not answer yet", http_status=404)
        return not rows

    def first_version(self, table: str, schema: TableSchema) -> int | None:
        """The oldest cell version of the table's first row, milliseconds; None if it has no cell.

        Raises:
            ServiceError, TransportError: the call failed.
        """
        cells = [cell for row in self._first_row(table, schema) or () for cell in row.attribute_columns]
        return min((cell[2] for cell in cells), default=None)

    def write(self, table: str, rows: Sequence[RowWrite]) -> Sequence[ServiceError | None]:
        """Write at most 200 rows with different keys in one call; returns an error or, if stored, None for each.

        Raises:
            ServiceError, TransportError: the whole call failed; each row may be stored or not.
        """
        request = sdk.BatchWriteRowRequest()
        request.add(sdk.TableInBatchWriteRowItem(table, [sdk_row(row) for row in rows]))
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
            while True:
                answer = self._call("get_range", table, sdk.Direction.FORWARD, low, high, None, 1, max_version=1)
                low, rows = answer[1], answer[2]
                if rows or not low:  # a page without rows may come before the end (docs/data-plane.md 2.6)
                    break
        except ServiceError as error:
            if error.code in ("OTSTableNotReady", "OTSPartitionUnavailable"):
                return None
            raise
        found: Sequence[Any] = rows
        return found

    def _call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        client = self._current_client()
        try:
            return getattr(client, name)(*args, **kwargs)
        except ERRORS as error:
            raise translate(error) from error

    def _current_client(self) -> Any:
        """The SDK's client for the current credentials, so that a rotated Secret needs no restart."""
        credentials = self._provider()
        if self._client is None or credentials != self._used:
            self._client = connect(self.endpoint, self.instance, credentials)
            self._used = credentials
        return self._client
