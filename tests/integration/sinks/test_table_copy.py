"""A table copied through a tunnel and the table sink is equal in every row, cell and version."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import islice

import pytest

from ots_emulator import Settings
from ots_emulator.server.faults import FaultRule
from ots_tunnel.config import DeliveryConfig, RetryConfig
from ots_tunnel.demo.changes import changes
from ots_tunnel.demo.flights import flights_schema
from ots_tunnel.errors import SinkRejected
from ots_tunnel.model import Action, CellOp, ChannelId, ChannelType, TunnelType
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks import Batch
from ots_tunnel.tables import RowWrite
from ots_tunnel.verify.compare import Difference
from tests.support.copy_scene import COPY, SOURCE, TablePair, flight_key, pair_of_tables, row_change
from tests.support.guards import OpenGuard

ROWS = 120
SMALL = DeliveryConfig(
    batch_max_rows=17, batch_max_bytes=5000, retry=RetryConfig(backoff_seconds=0.001, backoff_max_seconds=0.002)
)


async def filled(pair: TablePair) -> int:
    """Load rows as the demo does; returns the version of their cells."""
    base = int(pair.emulator.clock.now() * 1000)
    await pair.create(flights_schema(SOURCE))
    rows = [
        RowWrite(Action.PUT, flight_key(number), (Column("year", 2013, base), Column("tailnum", "N1", base)))
        for number in range(ROWS)
    ]
    await pair.load(rows)
    return base


@pytest.mark.parametrize("seed", range(4))
async def test_replays_rewinds_and_faults_end_in_equal_tables(seed: int) -> None:
    chance = random.Random(seed)
    async with pair_of_tables(Settings(page_rows=110)) as pair:
        base = await filled(pair)
        stream = changes(seed, [flight_key(number) for number in range(ROWS)], base_version_ms=base)
        await pair.apply(islice(stream, 100))
        await pair.create_tunnel()
        await pair.apply(islice(stream, 1200))
        pair.flaky.chance = random.Random(seed)
        faults = pair.emulator.faults
        faults.add(FaultRule("BatchWriteRow", count=3, code="OTSServerBusy"))
        faults.add(FaultRule("BatchWriteRow", count=9, drop_response=True))
        # lost answers cost the deadline each; a call that takes longer on a busy machine is one more of them
        sink = pair.sink(lanes=1 + seed % 3, delivery=SMALL, deadline=0.2)
        await sink.open()

        await pair.copy_all(sink, rewinds=chance)

        comparison = await pair.compare()
        assert comparison.first == []
        assert comparison.equal
        assert comparison.rows > ROWS // 2
        assert comparison.versions > comparison.cells > comparison.rows
        assert pair.records > 1200
        assert sink.counts.retries > 9


async def test_a_single_changed_version_is_seen() -> None:
    async with pair_of_tables() as pair:
        base = await filled(pair)
        await pair.create_tunnel()
        sink = pair.sink()
        await sink.open()
        await pair.copy_all(sink)
        assert (await pair.compare()).equal

        update = RowWrite(Action.UPDATE, flight_key(5), (Column("year", 2013, base + 1),))
        await pair.table.batch_write(COPY, [row_change(update)])
        comparison = await pair.compare()

        [row] = comparison.first
        assert (row.kind, row.primary_key) == (Difference.DIFFERENT, flight_key(5))


async def test_a_version_that_the_destination_refuses_names_its_row_and_the_rest_is_stored() -> None:
    async with pair_of_tables() as pair:
        await pair.create(flights_schema(SOURCE), replace(flights_schema(SOURCE), name=COPY))
        now = int(pair.emulator.clock.now() * 1000)
        rows = [RowWrite(Action.PUT, flight_key(number), (Column("year", 1, now),)) for number in range(100)]
        # The copy has the default deviation, which refuses a version of 1970.
        rows[37] = RowWrite(Action.PUT, flight_key(37), (Column("year", 1, 37),))
        sink = pair.sink()
        await sink.open()

        with pytest.raises(SinkRejected, match="Invalid timestamp") as caught:
            await sink.write(batch(rows), OpenGuard())

        assert caught.value.code == "OTSParameterInvalid"
        assert caught.value.keys == ("carrier='UA', flight=37, time_hour='2013-01-01T10:00:00Z'",)
        assert sink.counts.rows == 99


async def test_cells_past_the_destinations_lifetime_are_left_out() -> None:
    async with pair_of_tables() as pair:
        schema = replace(flights_schema(SOURCE), ttl_seconds=86_400)
        await pair.create(schema)
        now = int(pair.emulator.clock.now() * 1000)
        old = now - 86_400_000 - 5_000
        sink = pair.sink()
        await sink.open()

        await sink.write(
            batch([RowWrite(Action.PUT, flight_key(1), (Column("year", 1, old), Column("year", 2, now)))]), OpenGuard()
        )

        assert sink.omissions.expired_cells == 1
        assert sink.counts.rows == 1


async def test_rows_larger_than_a_request_arrive_in_pieces() -> None:
    async with pair_of_tables() as pair:
        await pair.create(flights_schema(SOURCE))
        now = int(pair.emulator.clock.now() * 1000)
        large = tuple(Column(f"c{number}", "x" * 1_500_000, now) for number in range(5))
        sink = pair.sink()
        await sink.open()

        await sink.write(batch([RowWrite(Action.PUT, flight_key(1), large)]), OpenGuard())
        page = await pair.table.get_range(
            COPY,
            flight_key(1),
            flight_key(2),
            max_versions=3,
        )

        assert sink.counts.requests == 3
        assert len(page.rows) > 7_500_000


async def test_a_missing_destination_is_refused_at_opening() -> None:
    async with pair_of_tables() as pair:
        with pytest.raises(SinkRejected, match=r"sink\.tablestore\.table 'flights_copy'"):
            await pair.sink().open()


async def test_an_update_that_empties_columns_passes() -> None:
    async with pair_of_tables() as pair:
        base = await filled(pair)
        await pair.create_tunnel(TunnelType.BaseAndStream)
        await pair.apply(
            [
                RowWrite(Action.UPDATE, flight_key(1), (Column("year", None, base, CellOp.DELETE_ONE_VERSION),)),
                RowWrite(Action.UPDATE, flight_key(2), (Column("year", None, None, CellOp.DELETE_ALL_VERSIONS),)),
                RowWrite(Action.DELETE, flight_key(3)),
                RowWrite(Action.PUT, flight_key(4)),
            ]
        )
        sink = pair.sink()
        await sink.open()
        await pair.copy_all(sink)

        comparison = await pair.compare()
        assert comparison.equal
        assert comparison.rows == ROWS - 1


def batch(rows: list[RowWrite]) -> Batch:
    records = [Record(row.action, row_change(row).body) for row in rows]
    return Batch(ChannelId("c"), ChannelType.STREAM, records)
