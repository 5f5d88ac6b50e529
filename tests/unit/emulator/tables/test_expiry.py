"""Expired cells disappear at their time, and rows whose time has not come are not parsed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ots_emulator.tables.cells import cells_of, has_versions, scan_image
from ots_emulator.tables.keys import TOP_KEY
from ots_emulator.tables.rows import Rows
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from tests.support.emulator.emulator_driver import Driver, delete_all, put

DAY = 86_400


def image_of(key: int, *times_ms: int) -> bytes:
    """A row with cells of these times."""
    return encode_row(
        (("k", key),), [Column(f"c{place}", 0, time) for place, time in enumerate(times_ms)], header=False
    )


def rows_with(*rows: tuple[int, ...], ttl: int = 1) -> Rows:
    """Keys, each with the times of its cells."""
    found = Rows(ttl, lambda key, image, versioned: None)
    for key, *times_ms in rows:
        found.store((key,), image_of(key, *times_ms), versioned=False)
    return found


def times_of(rows: Rows) -> dict[int, list[int]]:
    return {
        key: [cell.timestamp_ms for cell in cells_of(scan_image(image))] for (key,), image in rows.scan((), TOP_KEY)
    }


def test_cells_live_as_long_as_they_may_and_no_longer() -> None:
    rows = rows_with((1, 5000, 5001), (2, 5000), (3, 7000))

    rows.expire(6000)
    assert times_of(rows) == {1: [5000, 5001], 2: [5000], 3: [7000]}
    rows.expire(6001)
    assert times_of(rows) == {1: [5001], 3: [7000]}
    assert rows.size_bytes == len(image_of(1, 5001)) + len(image_of(3, 7000))
    rows.expire(10**9)
    assert (len(rows), rows.size_bytes) == (0, 0)


def test_rows_that_never_had_cells_stay() -> None:
    rows = rows_with((1,))
    rows.expire(10**9)

    assert times_of(rows) == {1: []}


def test_rows_whose_time_has_not_come_are_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = rows_with(*((key, 5000) for key in range(100)), (100, 1000))
    seen = []
    monkeypatch.setattr("ots_emulator.tables.rows.scan_image", lambda image: seen.append(image) or scan_image(image))

    for _ in range(3):
        rows.expire(3000)

    assert seen == [image_of(100, 1000)]


def test_rows_that_are_written_again_live_on() -> None:
    rows = rows_with((1, 1000), (1, 5000), (2, 5000), (2, 1000))
    rows.expire(3000)

    assert times_of(rows) == {1: [5000]}
    rows.expire(7000)
    assert times_of(rows) == {}


def test_a_shorter_time_to_live_applies_to_existing_rows() -> None:
    rows = rows_with((1, 1000), (2, 5000), ttl=-1)
    rows.change_time_to_live(2)
    rows.expire(4000)

    assert times_of(rows) == {2: [5000]}


def test_a_row_costs_one_date_however_often_it_is_written() -> None:
    rows = rows_with(*((1, time_ms) for time_ms in range(1000)))

    assert rows.expiry_dates == 1


def test_dates_of_rows_that_are_gone_do_not_pile_up() -> None:
    rows = rows_with((7, 3000), (8, 5000))
    for number in range(10_000):
        rows.store((9,), image_of(9, number), versioned=False)
        rows.remove((9,))

    assert rows.expiry_dates < 2000
    rows.expire(4001)
    assert times_of(rows) == {8: [5000]}


def test_dates_of_deleted_rows_go_without_further_rows() -> None:
    rows = rows_with(*((key, 3000) for key in range(5000)), (5000, 5000))
    for key in range(5000):
        rows.remove((key,))

    assert rows.expiry_dates < 2000
    rows.expire(4001)
    assert times_of(rows) == {5000: [5000]}


changes = st.lists(
    st.tuples(st.integers(0, 3), st.none() | st.lists(st.integers(0, 6000), max_size=3), st.integers(0, 500)),
    max_size=30,
)


@given(changes, st.sampled_from([1, 2, 5]))
def test_rows_equal_those_of_a_scan_of_every_cell(changes: list[tuple[int, list[int] | None, int]], ttl: int) -> None:
    rows, model, now_ms = rows_with(ttl=ttl), dict[int, list[int]](), 0
    for key, times_ms, passed_ms in changes:
        now_ms += passed_ms
        rows.expire(now_ms)
        if times_ms is None:
            rows.remove((key,))
            model.pop(key, None)
        else:
            rows.store((key,), image_of(key, *times_ms), versioned=False)
            model[key] = times_ms
        rows.expire(now_ms)
        alive = {key: [time for time in times if now_ms - time <= ttl * 1000] for key, times in model.items()}
        model = {key: alive[key] for key, times in model.items() if alive[key] or not times}
        assert times_of(rows) == model
        assert all(rows.single_versions((key,)) for key in model)


async def with_ttl(driver: Driver) -> Driver:
    await driver.create_table(max_versions=3, ttl=DAY)
    return driver


async def test_expired_cells_do_not_return_with_a_longer_lifetime(make_driver: Callable[..., Driver]) -> None:
    driver = await with_ttl(make_driver())
    await driver.put(1, put("a", 1))
    await driver.put(2, put("a", 1))
    driver.clock.advance(DAY + 1)
    await driver.call("UpdateTable", table_name="t", table_options={"time_to_live": -1})

    assert await driver.get(1) is None
    assert (await driver.range((("k", 0),), (("k", 9),)))[0] == []


async def test_an_expired_version_is_no_base_for_updates(make_driver: Callable[..., Driver]) -> None:
    driver = await with_ttl(make_driver())
    await driver.put(1, put("a", 1), put("b", 1))
    driver.clock.advance(DAY / 2)
    await driver.update(1, put("b", 2))
    driver.clock.advance(DAY / 2 + 1)
    await driver.update(1, put("c", 3), delete_all("d"))

    cells = await driver.cells(1)
    assert [(name, value) for name, value, _ in cells] == [("b", 2), ("c", 3)]
    table = driver.emulator.instances["demo"].tables["t"]
    image = table.get((1,), driver.now_ms)
    assert image is not None
    assert table.single_versions((1,)) != has_versions(cells_of(scan_image(image)))


async def test_cells_expire_within_a_transaction(make_driver: Callable[..., Any]) -> None:
    driver = await with_ttl(make_driver())
    await driver.put(1, put("a", 1))
    driver.clock.advance(DAY - 10)
    await driver.put(1, put("a", 1, driver.now_ms - (DAY - 10) * 1000), put("b", 1))
    table = driver.emulator.instances["demo"].tables["t"]
    copy = table.fork(1)
    driver.clock.advance(11)

    image = copy.get((1,), driver.now_ms)
    assert image is not None
    assert [cell.name for cell in cells_of(scan_image(image))] == [b"b"]
