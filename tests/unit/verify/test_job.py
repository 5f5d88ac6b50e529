"""A comparison as a job: slices in parallel, resumed from a state, rechecks, ends."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ots_tunnel.client.table_calls import KeyRange, RangePage, StreamDescription, TableDescription
from ots_tunnel.errors import ConfigError, ConnectionLost
from ots_tunnel.model import KeyColumn, KeyType, Marker, PrimaryKey
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.verify.compare import compare_tables
from ots_tunnel.verify.comparison import Comparison
from ots_tunnel.verify.job import VerifyJob
from ots_tunnel.verify.recheck import MOST_SUSPECTS, READ_ONE_BY_ONE
from ots_tunnel.verify.slices import Side, cut_tables
from ots_tunnel.verify.state import VerifyState
from ots_tunnel.verify.state_document import TablePlace, VerifyTask
from tests.unit.verify.test_compare import Rows, Table, keys, order, primary_key, tables

PLACE = TablePlace(endpoint="http://h:1", instance="shop", table="orders")
LOW: PrimaryKey = (("a", Marker.INF_MIN), ("b", Marker.INF_MIN))
HIGH: PrimaryKey = (("a", Marker.INF_MAX), ("b", Marker.INF_MAX))


class Described(Table):
    """A table in memory that counts what is read; `after` replaces its rows from the recheck on."""

    after: Rows | None = None
    reads = 0
    error: Exception | None = None

    async def describe_table(self, table: str) -> TableDescription:
        keys = (KeyColumn("a", KeyType.STRING), KeyColumn("b", KeyType.INTEGER))
        return TableDescription(table, keys, -1, 3, 86_400, StreamDescription(False))

    async def get_range(self, table: str, start: PrimaryKey, end: PrimaryKey, *, max_versions: int) -> RangePage:
        assert max_versions == 3
        self.reads += 1
        await asyncio.sleep(0)
        if self.error is not None:
            raise self.error
        return await super().get_range(table, start, end, max_versions=max_versions)

    def replace(self, rows: Rows) -> None:
        self.rows = Table(rows).rows


def state_of(splits: list[tuple[str, int]] | None = None, **changes: object) -> VerifyState:
    inner = sorted((primary_key(key) for key in splits or ()), key=order)
    task = VerifyTask(source=PLACE, destination=PLACE.model_copy(update={"table": "copy"}), max_versions=3)
    return VerifyState(task.model_copy(update=changes), datetime(2026, 1, 1, tzinfo=UTC), (LOW, *inner, HIGH))


def job_of(a: Table, b: Table, state: VerifyState, **options: object) -> VerifyJob:
    return VerifyJob(Side(a, "a"), Side(b, "b"), state, **options)


@settings(deadline=None)
@given(tables, tables, st.lists(keys, max_size=4, unique=True), st.integers(1, 5), st.integers(0, 5), st.integers())
async def test_a_resumed_job_finds_what_a_whole_comparison_finds(
    a: Rows, b: Rows, splits: list[tuple[str, int]], parallel: int, stop: int, seed: int
) -> None:
    b = {**a, **b}
    state, ended = state_of(splits), 0

    def changed() -> None:
        nonlocal ended
        ended += 1
        if ended == stop:
            raise ConfigError("no room")

    try:
        await job_of(Described(a, seed), Described(b, seed), state, parallel=parallel, changed=changed).run()
    except ConfigError:
        state = VerifyState.read(state.document(), "here")
    result = await job_of(Described(a, seed + 1), Described(b, seed + 1), state, parallel=parallel).run()

    assert result == await compare_tables(Table(a), "a", Table(b), "b")
    assert state.waiting == ()


@pytest.mark.looptime
async def test_both_tables_are_read_at_once() -> None:
    class Slow(Described):
        async def get_range(self, table: str, start: PrimaryKey, end: PrimaryKey, *, max_versions: int) -> RangePage:
            await asyncio.sleep(1)
            return RangePage(*pages[start])

    rows = [primary_key(("k", number)) for number in range(3)]
    pages = {
        start: (encode_row(row), following)
        for start, row, following in zip([LOW, *rows[1:]], rows, [*rows[1:], None], strict=True)
    }
    loop = asyncio.get_running_loop()
    began = loop.time()

    assert (await job_of(Slow({}), Slow({}), state_of()).run()).rows == 3
    assert loop.time() - began == pytest.approx(3, abs=0.1)


async def test_finished_slices_are_not_read_again() -> None:
    a, b = Described({("k", 1): ()}), Described({("k", 1): ()})
    state = state_of([("k", 1), ("k", 2)])
    await job_of(a, b, state).run()
    a.reads = b.reads = 0
    again = job_of(a, b, VerifyState.read(state.document(), "here"))

    assert (await again.run()).rows == 1
    assert (a.reads, b.reads) == (0, 0)
    assert (again.meter.slices, again.meter.slices_done, again.meter.rows, again.meter.rows_before) == (3, 3, 1, 1)


async def test_only_chosen_slices_are_read() -> None:
    rows: Rows = {("k", number): () for number in range(10)}
    state = state_of([("k", number) for number in range(1, 10)], sample_percent=30.0, seed=1)

    result = await job_of(Described(rows), Described({}), state).run()

    assert (result.rows, result.missing) == (3, 3)
    assert [row.primary_key[1][1] for row in result.first] == list(state.chosen)


async def test_an_error_ends_the_job_unchanged_and_keeps_finished_slices() -> None:
    a, b = Described({}), Described({})
    state = state_of([("k", number) for number in range(9)])

    def break_down() -> None:
        b.error = ConnectionLost("gone")

    with pytest.raises(ConnectionLost):
        await job_of(a, b, state, parallel=3, changed=break_down).run()

    assert 0 < len(state.done) < 10


async def test_a_job_that_is_cancelled_leaves_nothing_behind() -> None:
    class Endless(Described):
        async def get_range(self, *arguments: object, **options: object) -> RangePage:
            await asyncio.Event().wait()
            raise AssertionError

    task = asyncio.create_task(job_of(Endless({}), Endless({}), state_of([("k", 1)])).run())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.looptime
@pytest.mark.parametrize("late", [3, READ_ONE_BY_ONE + 5])
async def test_only_rows_that_still_differ_in_the_recheck_count(late: int) -> None:
    whole: Rows = {("k", number): (Column("x", 1, 1),) for number in range(100)}
    behind: Rows = {key: cells for key, cells in whole.items() if not 10 <= key[1] < 10 + late}
    behind[("k", 5)] = (Column("x", 2, 1),)
    behind[("z", 1)] = ()
    a, b = Described(whole, 1), Described(behind, 2)
    state = state_of([("k", 50)], recheck_seconds=30.0)

    async def catch_up() -> None:
        await asyncio.sleep(29)
        # Row 60 was equal at the first look: this comparison ignores later changes of it.
        b.replace({**whole, ("k", 5): (), ("z", 1): (), ("k", 60): ()})

    loop = asyncio.get_running_loop()
    began = loop.time()
    task = asyncio.create_task(catch_up())
    result = await job_of(a, b, state).run()
    await task

    assert (result.missing, result.different, result.extra, result.settled) == (0, 1, 1, late)
    assert [str(row) for row in result.first] == ["different: a='k', b=5", "extra: a='z', b=1"]
    assert result.first[0].cells[0].second is None, "the rechecked row is shown"
    assert result.rows == 100
    assert loop.time() - began == pytest.approx(30, abs=1)


@pytest.mark.looptime
async def test_rechecks_do_not_delay_other_slices() -> None:
    rows: Rows = {("k", number): () for number in range(12)}
    state = state_of([("k", number) for number in range(1, 12)], recheck_seconds=60.0)
    loop = asyncio.get_running_loop()
    began = loop.time()

    result = await job_of(Described(rows), Described({}), state, parallel=1).run()

    assert result.missing == 12
    assert loop.time() - began == pytest.approx(60, abs=1)


@pytest.mark.looptime
async def test_too_many_suspects_are_rechecked_before_the_slice_is_read_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ots_tunnel.verify.job.MOST_SUSPECTS", 10)
    assert MOST_SUSPECTS > 10
    rows: Rows = {("k", number): () for number in range(40)}
    state = state_of(recheck_seconds=1.0)

    loop = asyncio.get_running_loop()
    began = loop.time()
    result = await job_of(Described(rows), Described({}), state).run()

    assert loop.time() - began >= 2, "one look at all of them would take one pause"
    assert (result.rows, result.missing, result.settled) == (40, 40, 0)
    assert [row.primary_key[1][1] for row in result.first] == list(range(10))


async def test_cells_near_their_expiry_follow_the_clock() -> None:
    a, b = Described({("k", 1): (Column("x", 1, 500_000),)}), Described({})

    def run(now: float) -> VerifyJob:
        return job_of(a, b, state_of(), time_to_live=1000, clock=lambda: now)

    young, old = await run(200).run(), await run(400).run()

    assert (young.missing, young.near_expiry) == (1, 0)
    assert (old.missing, old.near_expiry) == (0, 1)
    assert old == Comparison(rows=1, cells=1, versions=1, near_expiry=1)


class Sized:
    """A table that is cut by its size."""

    def __init__(self, size: int) -> None:
        self.size = size

    async def compute_splits(self, table: str, size_units: int = 1, *, unit_bytes: int = 0) -> tuple[KeyRange, ...]:
        count = max(1, self.size // (size_units * unit_bytes))
        bounds = [LOW, *((("a", f"{number:08}"), ("b", Marker.INF_MIN)) for number in range(1, count)), HIGH]
        return tuple(KeyRange(*ends) for ends in pairwise(bounds))


@pytest.mark.parametrize(
    ("size", "sampled", "slices"),
    [
        (0, False, 1),
        (80 << 20, False, 10),
        (80 << 20, True, 80),
        (30_000 << 20, True, 3750),
        (1_000_000 << 20, False, 10_000),
        (1_000_000 << 20, True, 10_000),
        (3_000_000 << 20, False, 10_000),
    ],
)
async def test_small_tables_are_cut_into_small_slices(size: int, sampled: bool, slices: int) -> None:
    side = Side(Sized(size), "t")

    assert len(await side.slices(sampled=sampled)) == slices


async def test_the_larger_table_gives_the_bounds() -> None:
    small, large = Side(Sized(1 << 20), "a"), Side(Sized(80 << 20), "b")

    assert len(await cut_tables(small, large, sampled=False)) == 11
    assert await cut_tables(small, large, sampled=False) == await cut_tables(large, small, sampled=False)
