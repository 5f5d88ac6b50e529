"""A destination's time to live while a worker runs: it is changed, or cells pass it while they wait."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ots_tunnel.client.table import TableClient
from ots_tunnel.client.table_calls import RowChange
from ots_tunnel.config import DeliveryConfig
from ots_tunnel.model import Action, TunnelType
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.http.message import HttpRequest, HttpResponse
from ots_tunnel.protocol.http.operations import TABLE_OPERATIONS
from ots_tunnel.protocol.http.rpc import error_body
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.sinks import Sink
from ots_tunnel.sinks.middleware.base import behind
from ots_tunnel.sinks.middleware.permanent_errors import Tolerant
from ots_tunnel.sinks.table.sink import TablestoreSink
from ots_tunnel.transport.inprocess import InProcessTransport
from ots_tunnel.verify.compare import Comparison, compare_tables
from tests.support.emulator.emulator_scene import COPY, CREDENTIALS, TABLE, create_table_request
from tests.support.emulator.virtual_scene import VirtualScene
from tests.support.waiting import until

pytestmark = pytest.mark.looptime

DAY = 86_400
ANY_VERSION = 9_223_372_036_854


class Copying:
    """A table that is followed into a copy, whose service may be busy.

    Args:
        skew: seconds by which the worker's clock is ahead.
    """

    def __init__(self, policy: str, skew: float = 0.0, **settings: Any) -> None:
        self.scene = VirtualScene(**settings)
        self.busy_until = 0.0
        client = TableClient("http://emulator", "demo", CREDENTIALS, InProcessTransport(self._handle))
        self.table = TablestoreSink(
            client, COPY, delivery=DeliveryConfig(), lanes=1, deadline=10, clock=lambda: self.scene.clock.now() + skew
        )
        self._sink: Sink = self.table if policy == "Fail" else behind(Tolerant(), self.table)
        self._worker: asyncio.Task[None] | None = None

    async def _handle(self, request: HttpRequest) -> HttpResponse:
        if request.path == "/BatchWriteRow" and asyncio.get_running_loop().time() < self.busy_until:
            return HttpResponse(503, {"x-ots-requestid": "r"}, error_body("OTSServerBusy", "busy"))
        return await self.scene.emulator.handle(request)

    async def create(self, table: str, time_to_live: int) -> None:
        request = create_table_request(table)
        request.table_options.time_to_live = time_to_live
        request.table_options.deviation_cell_version_in_sec = ANY_VERSION
        await self.scene.caller.call(TABLE_OPERATIONS["CreateTable"], request)

    async def change(self, table: str, time_to_live: int) -> None:
        request = pb.UpdateTableRequest(table_name=table)
        request.table_options.time_to_live = time_to_live
        await self.scene.caller.call(TABLE_OPERATIONS["UpdateTable"], request)

    async def put(self, key: str, **ages: float) -> None:
        """Write a row; cells by name, each as old as this in seconds."""
        now_ms = int(self.scene.clock.now() * 1000)
        cells = tuple(Column(name, 1, timestamp_ms=now_ms - int(age * 1000)) for name, age in ages.items())
        outcomes = await self.scene.table.batch_write(TABLE, [RowChange(Action.PUT, encode_row((("pk", key),), cells))])
        assert outcomes[0].code is None, outcomes

    def start(self) -> None:
        worker = self.scene.worker(self._sink)
        self._worker = asyncio.create_task(worker.run())
        self._close = worker.close

    async def stop(self) -> None:
        assert self._worker is not None
        self._close()
        await asyncio.gather(self._worker, return_exceptions=True)

    async def until_copied(self, rows: int) -> None:
        """Wait until checkpoints have passed so many rows; the worker must not end meanwhile."""

        async def are_copied() -> bool:
            assert self._worker is not None
            assert not self._worker.done(), self._worker.exception()
            return sum(channel.rows for channel in (await self.scene.describe()).channels) == rows

        async with asyncio.timeout(900):
            await until(are_copied)

    async def compared(self) -> Comparison:
        return await compare_tables(self.scene.table, TABLE, self.scene.table, COPY)


async def test_a_raised_time_to_live_counts_from_the_next_change_on() -> None:
    copying = Copying("Fail")
    for table in (TABLE, COPY):
        await copying.create(table, DAY)
    await copying.scene.create_tunnel(TunnelType.Stream)
    copying.start()
    try:
        await copying.put("before", x=0)
        await copying.until_copied(1)
        for table in (TABLE, COPY):
            await copying.change(table, -1)
        await copying.put("after", x=2 * DAY)
        await copying.until_copied(2)

        assert (await copying.compared()).equal
        assert copying.table.omissions.expired_cells == 0
    finally:
        await copying.stop()


@pytest.mark.parametrize("policy", ["Fail", "Skip"])
@pytest.mark.parametrize("outage", [20, 150])
async def test_a_cell_that_expires_during_an_outage_does_not_take_its_row_along(policy: str, outage: float) -> None:
    copying = Copying(policy)
    for table in (TABLE, COPY):
        await copying.create(table, DAY)
    await copying.scene.create_tunnel(TunnelType.Stream)
    await copying.put("both", living=0, old=DAY - 100)
    await copying.put("old", old=DAY - 100)
    copying.busy_until = asyncio.get_running_loop().time() + outage
    copying.start()
    try:
        await copying.until_copied(2)

        # the service removes a row with its last cell
        assert (await copying.compared()).equal
        assert copying.table.omissions.expired_cells == (2 if outage > 100 else 0)
        assert copying.table.tally().records_skipped == 0
    finally:
        await copying.stop()


@pytest.mark.parametrize("policy", ["Fail", "Skip"])
async def test_a_lowered_time_to_live_leaves_out_cells_alone(policy: str) -> None:
    copying = Copying(policy)
    for table in (TABLE, COPY):
        await copying.create(table, -1)
    await copying.scene.create_tunnel(TunnelType.Stream)
    copying.start()
    try:
        await copying.put("before", x=0)
        await copying.until_copied(1)
        await copying.put("after", living=0, old=2 * DAY)
        await copying.change(COPY, DAY)
        await copying.until_copied(2)

        await copying.change(TABLE, DAY)
        assert (await copying.compared()).equal
        assert copying.table.omissions.expired_cells == 1
    finally:
        await copying.stop()


async def test_a_time_to_live_that_was_raised_during_an_outage_counts_for_the_rest_of_the_page() -> None:
    """The page's first cell is left out, and its first request is busy for hours; its last cell expires meanwhile."""
    rows, outage = 300, 2400.0
    copying = Copying("Fail", page_rows=1000)
    for table in (TABLE, COPY):
        await copying.create(table, DAY)
    await copying.scene.create_tunnel(TunnelType.Stream)
    await copying.put("a", living=0, old=DAY - 10)
    for number in range(rows):
        await copying.put(f"m{number:03}", living=0)
    await copying.put("z", living=0, edge=DAY - 1800)
    await asyncio.sleep(30)
    copying.busy_until = asyncio.get_running_loop().time() + outage
    copying.start()
    try:
        await asyncio.sleep(60)
        for table in (TABLE, COPY):
            await copying.change(table, -1)
        await asyncio.sleep(outage)
        await copying.until_copied(rows + 2)

        page = await copying.scene.table.get_range(COPY, (("pk", "z"),), (("pk", "zz"),), max_versions=1)
        assert b"edge" in page.rows
        assert copying.table.omissions.expired_cells == 1
    finally:
        await copying.stop()


@pytest.mark.parametrize("policy", ["Fail", "Skip"])
@pytest.mark.parametrize("skew", [-600, 600], ids=["behind", "ahead"])
async def test_a_wrong_clock_of_the_worker_loses_no_cell(policy: str, skew: float) -> None:
    """The service takes requests whose dates are up to fifteen minutes off."""
    copying = Copying(policy, skew)
    for table in (TABLE, COPY):
        await copying.create(table, DAY)
    await copying.scene.create_tunnel(TunnelType.Stream)
    await copying.put("living", old=DAY - 500)
    await copying.put("both", living=0, old=DAY - 20)
    await asyncio.sleep(30)
    copying.start()
    try:
        await copying.until_copied(2)
        compared = await copying.compared()
        assert compared.equal, compared
        assert copying.table.omissions.expired_cells == 1
    finally:
        await copying.stop()
