"""Both writers against a table in memory that fails in every way of the service."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence

import pytest

from ots_tunnel.client.table_calls import RowChange, RowOutcome
from ots_tunnel.config import RetryConfig
from ots_tunnel.errors import ConnectionLost, OwnershipLost, SinkRejected, TunnelError
from ots_tunnel.model import Action
from ots_tunnel.protocol.backoff import Backoff
from ots_tunnel.protocol.plainbuffer.codec import decode_row, encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.record import Record
from ots_tunnel.protocol.service_codes import service_error
from ots_tunnel.sinks.grouping import Limits
from ots_tunnel.sinks.table.blocking_writer import SyncTableWriter
from ots_tunnel.sinks.table.row_change import Change, unaltered_change
from ots_tunnel.sinks.table.writer import TableWriter
from tests.support.guards import LimitedGuard, OpenGuard

NO_PAUSE = Backoff(1e-9, 1.0, 1e-9, 0.0)
TRANSIENT = ("OTSServerBusy", "OTSRowOperationConflict", "OTSTimeout", "OTSNotEnoughCapacityUnit")


class FailingTable:
    """Applies changes per key in the order of arrival; fails as `chance` says, before or after applying."""

    def __init__(self, seed: int, failures: float = 0.3) -> None:
        self.chance = random.Random(seed)
        self.failures = failures
        self.applied: dict[object, list[int]] = {}
        self.under_way: set[object] = set()
        self.most_under_way = 0
        self.requests = 0

    def begin(self, rows: Sequence[RowChange]) -> list[tuple[object, int]]:
        self.requests += 1
        decoded = [decode_row(row.body) for row in rows]
        changes = [(row.primary_key, int(str(row.columns[0].value))) for row in decoded]
        keys = {key for key, _ in changes}
        assert len(keys) == len(changes), "a key twice in one request"
        assert not keys & self.under_way, "a key in two requests at once"
        assert len(changes) <= 200
        self.under_way |= keys
        self.most_under_way = max(self.most_under_way, len(self.under_way))
        return changes

    def end(self, changes: list[tuple[object, int]]) -> list[RowOutcome]:
        self.under_way -= {key for key, _ in changes}
        dice = self.chance.random()
        if dice < self.failures / 3:
            raise service_error("OTSServerUnavailable", "", http_status=503)
        outcomes = []
        for key, number in changes:
            if self.chance.random() < self.failures:
                outcomes.append(RowOutcome(self.chance.choice(TRANSIENT)))
            else:
                self.applied.setdefault(key, []).append(number)
                outcomes.append(RowOutcome(None))
        if dice < self.failures * 2 / 3:
            raise ConnectionLost("the answer was lost")
        return outcomes


class AsyncClient:
    def __init__(self, table: FailingTable) -> None:
        self.table = table

    async def batch_write(
        self,
        table: str,
        rows: Sequence[RowChange],
        *,
        timeout: float,
        before_send: Callable[[], None] | None = None,
    ) -> list[RowOutcome]:
        assert before_send is not None
        before_send()
        changes = self.table.begin(rows)
        for _ in range(self.table.chance.randint(0, 3)):
            await asyncio.sleep(0)
        return self.table.end(changes)


class SyncClient:
    def __init__(self, table: FailingTable) -> None:
        self.table = table

    def batch_write(
        self,
        table: str,
        rows: Sequence[RowChange],
        *,
        timeout: float,
        before_send: Callable[[], None] | None = None,
    ) -> list[RowOutcome]:
        assert before_send is not None
        before_send()
        return self.table.end(self.table.begin(rows))

    def repeat_records(
        self,
        table: str,
        records: Sequence[Record],
        *,
        timeout: float,
        before_send: Callable[[], None] | None = None,
    ) -> list[RowOutcome] | None:
        changes = [RowChange(record.action, record.write_body) for record in records]
        outcomes = self.batch_write(table, changes, timeout=timeout, before_send=before_send)
        return None if all(outcome.code is None for outcome in outcomes) else outcomes


def rows(seed: int, count: int, keys: int) -> list[RowChange]:
    chance = random.Random(seed)
    return [
        RowChange(Action.PUT, encode_row((("pk", chance.randrange(keys)),), (Column("n", number, 1),)))
        for number in range(count)
    ]


def expected(changes: Sequence[RowChange]) -> dict[object, list[int]]:
    result: dict[object, list[int]] = {}
    for change in changes:
        row = decode_row(change.body)
        result.setdefault(row.primary_key, []).append(int(str(row.columns[0].value)))
    return result


def without_repeats(applied: dict[object, list[int]]) -> dict[object, list[int]]:
    """Applied changes without repeated ones; fails where a repeated change is not the last one of its key."""
    result: dict[object, list[int]] = {}
    for key, numbers in applied.items():
        kept: list[int] = []
        for number in numbers:
            if kept and number == kept[-1]:
                continue
            assert number not in kept, "an old change was repeated after a newer one"
            kept.append(number)
        result[key] = kept
    return result


def writer(client: AsyncClient, lanes: int = 4, limits: Limits | None = None) -> TableWriter:
    return TableWriter(client, "t", limits=limits or Limits(), backoff=NO_PAUSE, lanes=lanes, deadline=0)


def records(changes: Sequence[RowChange]) -> list[Record]:
    return [Record(change.action, change.body) for change in changes]


def planned(changes: Sequence[RowChange]) -> list[Change]:
    return [unaltered_change(record) for record in records(changes)]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("keys", [3, 400])
async def test_everything_arrives_in_order_per_key_whatever_fails(seed: int, keys: int) -> None:
    table = FailingTable(seed)
    changes = rows(seed, 600, keys)

    target = writer(AsyncClient(table))
    await target.write(records(changes), OpenGuard())

    assert without_repeats(table.applied) == expected(changes)
    assert target.counts.rows == 600
    assert target.counts.requests == table.requests


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("keys", [3, 400])
def test_the_blocking_writer_does_the_same(seed: int, keys: int) -> None:
    table = FailingTable(seed)
    changes = rows(seed, 3000, keys)
    target = SyncTableWriter(
        SyncClient(table), "t", Limits(), RetryConfig(), OpenGuard(), deadline=0, sleep=lambda _: None
    )

    counts = target.write(iter(planned(changes)))

    assert without_repeats(table.applied) == expected(changes)
    assert counts.rows == 3000
    assert table.most_under_way <= 200


@pytest.mark.parametrize("seed", range(4))
def test_the_blocking_writer_repeats_records_until_each_is_stored(seed: int) -> None:
    table = FailingTable(seed)
    changes = [RowChange(Action.PUT, encode_row((("pk", n),), (Column("n", n, 1),))) for n in range(1_000)]
    target = SyncTableWriter(
        SyncClient(table), "t", Limits(), RetryConfig(), OpenGuard(), deadline=0, sleep=lambda _: None
    )
    found = records(changes)

    counts = target.repeat([found[start : start + 200] for start in range(0, 1_000, 200)])

    assert without_repeats(table.applied) == expected(changes)
    assert counts.rows == 1_000
    assert counts.requests == table.requests


def test_the_blocking_writer_repeats_nothing_that_its_guard_forbids() -> None:
    table = FailingTable(1, failures=0)
    changes = [RowChange(Action.PUT, encode_row((("pk", n),), (Column("n", n, 1),))) for n in range(4)]
    target = SyncTableWriter(SyncClient(table), "t", Limits(), RetryConfig(), LimitedGuard(2), deadline=0)

    with pytest.raises(OwnershipLost):
        target.repeat([[record] for record in records(changes)])
    assert table.requests == 2


def test_the_blocking_writer_reads_only_as_much_as_it_needs() -> None:
    read = 0

    def source() -> object:
        nonlocal read
        for change in planned(rows(1, 5000, 10**6)):
            read += 1
            yield change

    class Watching(SyncClient):
        def batch_write(self, *args: object, **kwargs: object) -> list[RowOutcome]:
            assert read <= target.counts.rows + 800
            return super().batch_write(*args, **kwargs)

    target = SyncTableWriter(Watching(FailingTable(1, 0)), "t", Limits(), RetryConfig(), OpenGuard())
    target.write(source())

    assert read == 5000
    assert target.counts.requests == 25


@pytest.mark.looptime
@pytest.mark.parametrize("failure", [ConnectionLost("reset"), service_error("OTSTimeout", "", http_status=504)])
async def test_a_request_that_takes_effect_late_never_overtakes_later_changes(failure: TunnelError) -> None:
    applied: list[object] = []
    late: list[asyncio.Task[None]] = []

    class Late(AsyncClient):
        """The first request fails at once, and takes effect just before its deadline."""

        async def batch_write(
            self,
            table: str,
            rows: Sequence[RowChange],
            *,
            timeout: float,
            before_send: Callable[[], None] | None = None,
        ) -> list[RowOutcome]:
            assert before_send is not None
            before_send()
            numbers = [decode_row(row.body).columns[0].value for row in rows]

            async def apply(after: float) -> None:
                await asyncio.sleep(after)
                applied.extend(numbers)

            if not late:
                late.append(asyncio.create_task(apply(timeout * 0.9)))
                raise failure
            await apply(0.001)
            return [RowOutcome(None) for _ in rows]

    target = TableWriter(Late(FailingTable(1)), "t", limits=Limits(), backoff=NO_PAUSE, lanes=8, deadline=10)
    await target.write(records(rows(1, 3, keys=1)), OpenGuard())
    await asyncio.gather(*late)

    assert applied == [0, 0, 1, 2]


async def test_lanes_run_at_the_same_time() -> None:
    table = FailingTable(1, failures=0)
    await writer(AsyncClient(table), lanes=3).write(records(rows(1, 2000, 10**6)), OpenGuard())

    assert table.most_under_way > 200
    assert table.most_under_way <= 600


async def test_the_fence_is_asked_before_every_request_and_ends_the_write() -> None:
    table = FailingTable(1, failures=0)
    fence = LimitedGuard(passes=2)

    with pytest.raises(OwnershipLost):
        await writer(AsyncClient(table), lanes=1).write(records(rows(1, 2000, 10**6)), fence)

    assert table.requests == 2
    assert table.under_way == set()


async def test_a_refused_row_ends_the_write_with_its_key() -> None:
    class Refusing(AsyncClient):
        async def batch_write(self, *args: object, **kwargs: object) -> list[RowOutcome]:
            outcomes = await super().batch_write(*args, **kwargs)
            return [RowOutcome("OTSOutOfRowSizeLimit", "too large"), *outcomes[1:]]

    with pytest.raises(SinkRejected) as caught:
        await writer(Refusing(FailingTable(1, 0)), lanes=2).write(records(rows(1, 2000, 10**6)), OpenGuard())

    assert caught.value.code == "OTSOutOfRowSizeLimit"
    assert 1 <= len(caught.value.keys) <= 2
    assert caught.value.keys[0].startswith("pk=")


async def test_cancelling_leaves_nothing_under_way() -> None:
    started = asyncio.Event()
    begun = ended = 0

    class Hanging(AsyncClient):
        async def batch_write(self, *args: object, **kwargs: object) -> list[RowOutcome]:
            nonlocal begun, ended
            begun += 1
            if begun == 3:
                started.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended += 1
            raise AssertionError

    task = asyncio.create_task(writer(Hanging(FailingTable(1)), lanes=3).write(records(rows(1, 900, 900)), OpenGuard()))
    await asyncio.wait_for(started.wait(), 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert ended == 3


async def test_nothing_to_write_sends_nothing() -> None:
    table = FailingTable(1)
    await writer(AsyncClient(table)).write([], OpenGuard())

    assert table.requests == 0
