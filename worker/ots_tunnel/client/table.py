"""Table calls of the data path: batches of row changes, range scans, splits; as coroutines.

Rows pass through as bytes, so the vendor's SDK is not used here. Source: docs/data-plane.md 2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import cast

from ots_tunnel.client import table_calls as calls
from ots_tunnel.client.caller import REQUEST_TIMEOUT, RetryListener, ServiceCaller
from ots_tunnel.client.table_calls import KeyRange, RangePage, RowChange, RowOutcome, TableDescription
from ots_tunnel.credentials import CredentialsProvider
from ots_tunnel.endpoint import check_place
from ots_tunnel.model import KeyColumn, Marker, PrimaryKey
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.backoff import CALL_RETRY
from ots_tunnel.protocol.http.message import SummedBody
from ots_tunnel.protocol.http.operations import TABLE_OPERATIONS
from ots_tunnel.protocol.http.rpc import service_time
from ots_tunnel.transport import Transport
from ots_tunnel.transport.aio import AioTransport

__all__ = [
    "KeyRange",
    "RangePage",
    "RowChange",
    "RowOutcome",
    "TableClient",
    "TableDescription",
]


class TableClient:
    """Calls the tables of one instance; coroutines.

    Args:
        endpoint: `http(s)://host[:port]`.
        credentials: called before every try.
        transport: None creates one that keeps connections alive; it is closed with the client.
    """

    def __init__(
        self,
        endpoint: str,
        instance: str,
        credentials: CredentialsProvider,
        transport: Transport | None = None,
        *,
        on_retry: RetryListener | None = None,
    ) -> None:
        check_place(endpoint, instance)
        self.endpoint = endpoint
        self.instance = instance
        self._caller = ServiceCaller(transport or AioTransport(endpoint), instance, credentials, on_retry=on_retry)

    def __repr__(self) -> str:
        return f"TableClient({self.instance} at {self.endpoint})"

    async def batch_write(
        self,
        table: str,
        rows: Sequence[RowChange],
        *,
        timeout: float = REQUEST_TIMEOUT,
        before_send: Callable[[], None] | None = None,
    ) -> list[RowOutcome]:
        """Write up to 200 rows; returns one outcome per row, in order. Tried once: the sink decides what it repeats.

        Args:
            timeout: seconds in total.
            before_send: see `transport.Transport.send`.
        """
        answer, _ = await self._caller.call(
            TABLE_OPERATIONS["BatchWriteRow"],
            # As bytes: otherwise message and bytes stay in memory during the call.
            calls.batch_write_request(table, rows).SerializeToString(),
            timeout=timeout,
            before_send=before_send,
        )
        return calls.batch_write_outcomes(answer, len(rows))

    async def write_encoded(
        self,
        body: SummedBody,
        count: int,
        *,
        timeout: float = REQUEST_TIMEOUT,
        before_send: Callable[[], None] | None = None,
    ) -> list[RowOutcome] | None:
        """Write the rows of a BatchWriteRow that is encoded; None, the usual result, means that all are stored.

        Further arguments and number of tries as in `batch_write`.

        Args:
            body: made by `protocol.page.encode_batch_writes`.
            count: its rows.
        """
        outcomes, _ = await self._caller.call(
            TABLE_OPERATIONS["BatchWriteRow"],
            body,
            timeout=timeout,
            before_send=before_send,
            parse=partial(calls.outcomes_unless_stored, count),
        )
        return cast("list[RowOutcome] | None", outcomes)

    async def get_range(
        self,
        table: str,
        start: PrimaryKey,
        end: PrimaryKey,
        *,
        max_versions: int,
        limit: int | None = None,
        direction_forward: bool = True,
        columns: Sequence[str] = (),
        versions: tuple[int, int] | None = None,
    ) -> RangePage:
        """Whole rows from `start` (inclusive) to `end` (exclusive); the next page starts at `next_start`, if set.

        `calls.get_range_request` describes the arguments.
        """
        message = calls.get_range_request(
            table,
            start,
            end,
            max_versions=max_versions,
            limit=limit,
            direction_forward=direction_forward,
            columns=columns,
            versions=versions,
        )
        answer, _ = await self._caller.call(TABLE_OPERATIONS["GetRange"], message, retry=CALL_RETRY)
        while (rest := calls.rest_of_row(message, answer)) is not None:
            part, _ = await self._caller.call(TABLE_OPERATIONS["GetRange"], rest, retry=CALL_RETRY)
            answer = calls.join_parts(answer, part)
        return calls.get_range_page(answer)

    async def is_empty(self, table: str, keys: Sequence[KeyColumn]) -> bool:
        """Whether the table has no row; tried once, because a new table may not answer row calls for a minute.

        Raises:
            ServerUnavailable: it does not yet, or the service is busy.
        """
        low, high = (tuple((key.name, bound) for key in keys) for bound in (Marker.INF_MIN, Marker.INF_MAX))
        message = calls.get_range_request(table, low, high, max_versions=1, limit=1)
        while True:
            answer, _ = await self._caller.call(TABLE_OPERATIONS["GetRange"], message)
            if answer.rows or not answer.next_start_primary_key:
                return not answer.rows
            # a page without rows may come before the end (docs/data-plane.md 2.6)
            message.inclusive_start_primary_key = answer.next_start_primary_key

    async def compute_splits(
        self, table: str, size_units: int = 1, *, unit_bytes: int = calls.DEFAULT_SPLIT_UNIT_BYTES
    ) -> tuple[KeyRange, ...]:
        """The table in slices of about `size_units` x `unit_bytes`, in key order; at least one."""
        message = calls.compute_splits_request(table, size_units, unit_bytes)
        answer, _ = await self._caller.call(TABLE_OPERATIONS["ComputeSplitPointsBySize"], message, retry=CALL_RETRY)
        return calls.compute_splits_ranges(answer)

    async def describe_table(self, table: str) -> TableDescription:
        """Keys, options and stream of a table.

        Raises:
            ObjectNotExist: the table does not exist.
        """
        message = pb.DescribeTableRequest(table_name=table)
        answer, response = await self._caller.call(TABLE_OPERATIONS["DescribeTable"], message, retry=CALL_RETRY)
        return calls.describe_table_result(answer, service_time(response))

    async def close(self) -> None:
        """Close the transport."""
        await self._caller.close()
