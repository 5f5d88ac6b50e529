"""Table calls that block, for the executors of Spark. Source: docs/data-plane.md 2."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import cast

from ots_tunnel.client import table_calls as calls
from ots_tunnel.client.caller import REQUEST_TIMEOUT, SyncServiceCaller
from ots_tunnel.client.table_calls import KeyRange, RangePage, RowChange, RowOutcome, TableDescription
from ots_tunnel.credentials import CredentialsProvider
from ots_tunnel.endpoint import check_place
from ots_tunnel.model import PrimaryKey
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.backoff import CALL_RETRY
from ots_tunnel.protocol.http.operations import TABLE_OPERATIONS
from ots_tunnel.protocol.http.rpc import service_time
from ots_tunnel.protocol.page import encode_batch_writes
from ots_tunnel.protocol.record import Record
from ots_tunnel.transport.sync import BlockingTransport, SyncTransport


class SyncTableClient:
    """The calls of `TableClient`, blocking; threads can share a client."""

    def __init__(
        self,
        endpoint: str,
        instance: str,
        credentials: CredentialsProvider,
        transport: BlockingTransport | None = None,
    ) -> None:
        check_place(endpoint, instance)
        self.endpoint = endpoint
        self.instance = instance
        self._caller = SyncServiceCaller(transport or SyncTransport(endpoint), instance, credentials)

    def __repr__(self) -> str:
        return f"SyncTableClient({self.instance} at {self.endpoint})"

    def batch_write(
        self,
        table: str,
        rows: Sequence[RowChange],
        *,
        timeout: float = REQUEST_TIMEOUT,
        before_send: Callable[[], None] | None = None,
    ) -> list[RowOutcome]:
        """See `TableClient.batch_write`."""
        answer, _ = self._caller.call(
            TABLE_OPERATIONS["BatchWriteRow"],
            calls.batch_write_request(table, rows),
            timeout=timeout,
            before_send=before_send,
        )
        return calls.batch_write_outcomes(answer, len(rows))

    def repeat_records(
        self,
        table: str,
        records: Sequence[Record],
        *,
        timeout: float = REQUEST_TIMEOUT,
        before_send: Callable[[], None] | None = None,
    ) -> list[RowOutcome] | None:
        """Write up to 200 records unchanged; None, the usual result, means that all are stored.

        Further arguments and number of tries as in `batch_write`.
        """
        (body,) = encode_batch_writes(table, [list(records)])
        outcomes, _ = self._caller.call(
            TABLE_OPERATIONS["BatchWriteRow"],
            body,
            timeout=timeout,
            before_send=before_send,
            parse=partial(calls.outcomes_unless_stored, len(records)),
        )
        return cast("list[RowOutcome] | None", outcomes)

    def get_range(
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
        """See `TableClient.get_range`."""
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
        answer, _ = self._caller.call(TABLE_OPERATIONS["GetRange"], message, retry=CALL_RETRY)
        while (rest := calls.rest_of_row(message, answer)) is not None:
            part, _ = self._caller.call(TABLE_OPERATIONS["GetRange"], rest, retry=CALL_RETRY)
            answer = calls.join_parts(answer, part)
        return calls.get_range_page(answer)

    def compute_splits(
        self, table: str, size_units: int = 1, *, unit_bytes: int = calls.DEFAULT_SPLIT_UNIT_BYTES
    ) -> tuple[KeyRange, ...]:
        """See `TableClient.compute_splits`."""
        message = calls.compute_splits_request(table, size_units, unit_bytes)
        answer, _ = self._caller.call(TABLE_OPERATIONS["ComputeSplitPointsBySize"], message, retry=CALL_RETRY)
        return calls.compute_splits_ranges(answer)

    def describe_table(self, table: str) -> TableDescription:
        """See `TableClient.describe_table`."""
        message = pb.DescribeTableRequest(table_name=table)
        answer, response = self._caller.call(TABLE_OPERATIONS["DescribeTable"], message, retry=CALL_RETRY)
        return calls.describe_table_result(answer, service_time(response))

    def close(self) -> None:
        """Close the transport."""
        self._caller.close()
