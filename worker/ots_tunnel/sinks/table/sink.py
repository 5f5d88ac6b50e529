"""A table as the sink: an equal copy with every cell version (docs/sinks.md, docs/architecture.md rule 14)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Self

from ots_tunnel.client.table import TableClient
from ots_tunnel.client.table_calls import TableDescription
from ots_tunnel.config import DeliveryConfig, SinkDocument, TablestoreSinkConfig
from ots_tunnel.credentials import CredentialsProvider, FileCredentials
from ots_tunnel.errors import (
    AuthFailed,
    CodecError,
    ObjectNotExist,
    PermissionDenied,
    ServiceError,
    SinkError,
    SinkRejected,
    WrongDestination,
)
from ots_tunnel.fence import Guard
from ots_tunnel.model import KeyColumn, key_type_name
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks import Batch, Contact, Immediate, OnRefused, PageCost
from ots_tunnel.sinks.grouping import Limits
from ots_tunnel.sinks.retries import write_backoff
from ots_tunnel.sinks.table.equality import SourceTable
from ots_tunnel.sinks.table.lifetime import Described, Lifetime
from ots_tunnel.sinks.table.requests import WriteCounts
from ots_tunnel.sinks.table.row_change import Change, Omissions
from ots_tunnel.sinks.table.waves import plan_requests
from ots_tunnel.sinks.table.writer import TableWriter
from ots_tunnel.sinks.tally import Tally
from ots_tunnel.transport import Transport
from ots_tunnel.transport.aio import AioTransport

#: Records whose requests are planned at a time: a few milliseconds of work, and far more than the lanes take.
PLANNED_RECORDS = 16_384


class TablestoreSink(Immediate):
    """Repeats records in an existing table.

    Args:
        client: the destination's instance; closed with the sink.
        table: destination table.
        delivery: sizes of requests and pauses between tries.
        lanes: requests in flight per channel.
        deadline: D, seconds that a request may take (docs/architecture.md rule 4).
        source: the table that the destination is compared with; None where somebody else has done that.
        clock: Unix seconds.
    """

    cost = PageCost(5, 250)

    def __init__(
        self,
        client: TableClient,
        table: str,
        *,
        delivery: DeliveryConfig,
        lanes: int,
        deadline: float,
        source: SourceTable | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._client = client
        self._source = source
        self._table = table
        self.omissions = Omissions()
        self._lifetime = Lifetime(self._describe, clock, self.omissions)
        self._limits = Limits(delivery.batch_max_rows, delivery.batch_max_bytes)
        self._writer = TableWriter(
            client,
            table,
            limits=self._limits,
            backoff=write_backoff(delivery.retry),
            lanes=lanes,
            deadline=deadline,
            revise=self._lifetime.revise,
        )
        #: The last description of the destination.
        self._found: TableDescription | None = None
        #: Key of the destination until it was compared with that of a record; empty afterwards.
        self._key: tuple[KeyColumn, ...] = ()

    @classmethod
    def from_config(
        cls,
        config: SinkDocument,
        section: TablestoreSinkConfig,
        *,
        transport: Transport | None = None,
        credentials: CredentialsProvider | None = None,
    ) -> Self:
        """The sink of a worker's document.

        Raises:
            ConfigError: files of credentials are missing.
        """
        client = TableClient(
            section.endpoint,
            section.instance,
            credentials
            or FileCredentials(section.credentials.directory).checked("sink.tablestore.credentials.directory"),
            transport or AioTransport(section.endpoint),
        )
        return cls(
            client,
            section.table,
            delivery=config.delivery,
            lanes=config.client.lanes_per_channel,
            deadline=config.client.write_deadline,
            source=SourceTable.of(config),
        )

    def __repr__(self) -> str:
        return f"TablestoreSink({self._table}, {self._writer.counts.rows} rows)"

    @property
    def counts(self) -> WriteCounts:
        """Rows, requests and retries so far."""
        return self._writer.counts

    async def open(self) -> None:
        """Describe the destination, and compare it with the source (`equality`).

        Its time to live decides which cells it accepts (`lifetime`).

        Raises:
            SinkRejected: the table does not exist, may not be read, or cannot be equal.
            SinkError, ServiceError, TransportError: the destination does not answer. SourceUnanswered: see
                `SourceTable.check`, also for a ServiceError.
        """
        await self._lifetime.renew(self._lifetime.now)
        if self._source is not None:
            assert self._found is not None, "a description has just been made"
            await self._source.check(self._found, self._where)

    async def _describe(self) -> Described:
        try:
            description = await self._client.describe_table(self._table)
        except ServiceError as error:
            if error.retryable:
                raise
            raise SinkRejected(error.code, self._explain(error)) from error
        except CodecError as error:
            # such as the page of a proxy with status 200, which says nothing about the table
            raise SinkError(f"{self._where}: {error}") from error
        self._key, self._found = description.primary_key, description
        self._writer.writes.looked()
        return Described(description.time_to_live, description.service_time)

    async def _check_destination(self, record: Record) -> None:
        """Refuse a destination that was replaced by a table with another key: it refuses every row, and not this one.

        Raises:
            WrongDestination, SinkRejected, SinkError, ServiceError, TransportError: see `open`.
        """
        await self._lifetime.renew(self._lifetime.now)
        self._check_key(record)

    @property
    def _where(self) -> str:
        return f"sink.tablestore.table {self._table!r} in instance {self._client.instance!r} at {self._client.endpoint}"

    def _check_key(self, record: Record) -> None:
        """Refuse a destination with another key than the source: it could store no record."""
        found = ", ".join(f"{column.name} {column.type.name}" for column in self._key)
        needed = ", ".join(f"{name} {key_type_name(value)}" for name, value in record.primary_key)
        if found != needed:
            text = f"{self._where}: primary key: found {found}, needed {needed}, as the source has it"
            raise WrongDestination("OTSInvalidPK", f"{text}: name a table that has it, or create one")
        self._key = ()

    def _explain(self, error: ServiceError) -> str:
        where = self._where
        match error:
            case ObjectNotExist():
                way_out = "create it with the key columns of the source, or correct the name"
            case AuthFailed():
                way_out = (
                    "correct the AccessKey in the folder of sink.tablestore.credentials.directory, or the instance"
                )
            case PermissionDenied():
                way_out = "let its owner grant the access to the AccessKey of the sink"
            case _:
                return f"{where}: {error.message}"
        return f"{where}: {error.message}: {way_out}"

    async def write(self, batch: Batch, guard: Guard) -> None:
        """See `Immediate.write`.

        Raises:
            WrongDestination: the destination has another key than the source; whatever is tolerated.
        """
        if self._key and batch.records:
            self._check_key(batch.records[0])
        refused: list[tuple[Record, str, str]] = []

        def keep(record: Record, code: str, message: str) -> None:
            refused.append((record, code, message))

        await self._write(batch, guard, None if batch.on_refused is None else keep)
        if refused and batch.on_refused is not None:
            await self._check_destination(refused[0][0])
            for refusal in refused:
                batch.on_refused(*refusal)

    async def _write(self, batch: Batch, guard: Guard, on_refused: OnRefused | None) -> None:
        arrived = self._lifetime.now
        for start in range(0, len(batch.records), PLANNED_RECORDS):
            if start:
                await asyncio.sleep(0)
            await self._write_planned(batch.records[start : start + PLANNED_RECORDS], arrived, guard, on_refused)

    async def _write_planned(
        self, records: Sequence[Record], arrived: int, guard: Guard, on_refused: OnRefused | None
    ) -> None:
        waves = plan_requests(records, self._limits) if self._lifetime.limit_ms is None else None
        if waves is not None:
            for wave in waves:
                await self._writer.repeat(wave, guard, on_refused)
            return

        def changes(record: Record) -> Iterator[Change]:
            return self._lifetime.changes(record, self._limits, arrived)

        await self._writer.write(records, guard, on_refused, changes)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()
        if self._source is not None:
            await self._source.close()

    def tally(self) -> Tally:
        """See `Channels.tally`."""
        return Tally(
            records_empty=self.omissions.empty_updates,
            cells_expired=self.omissions.expired_cells,
            write_retries=self.counts.retries,
        )

    def contact(self) -> Contact:
        """See `Channels.contact`."""
        return self._writer.writes.contact
