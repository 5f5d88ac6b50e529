"""Grouping: every change once, in order per key, no key twice in a request, bounded requests."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ots_tunnel.sinks.grouping import Grouping, Limits


@dataclass(frozen=True)
class Row:
    key: bytes
    number: int
    size: int = 10


rows = st.lists(st.tuples(st.integers(0, 6), st.integers(1, 60)), max_size=80).map(
    lambda items: [Row(bytes([key]), number, size) for number, (key, size) in enumerate(items)]
)


@settings(deadline=None)
@given(rows=rows, max_rows=st.integers(1, 9), max_bytes=st.integers(20, 200), seed=st.integers())
def test_every_change_is_taken_once_and_in_order_per_key(
    rows: list[Row], max_rows: int, max_bytes: int, seed: int
) -> None:
    chance = random.Random(seed)
    grouping: Grouping[Row] = Grouping(Limits(max_rows, max_bytes))
    taken: list[Row] = []
    in_flight: list[list[Row]] = []
    waiting = list(rows)
    while waiting or grouping.held_rows:
        added = chance.randint(0, 5)
        if chance.random() < 0.5:
            grouping.extend(waiting[:added])
        else:
            for row in waiting[:added]:
                grouping.add(row)
        del waiting[:added]
        request = list(grouping.take())
        if request:
            keys_under_way = {row.key for group in in_flight for row in group}
            assert len(request) <= max_rows
            assert len(request) == 1 or sum(row.size for row in request) <= max_bytes
            assert len({row.key for row in request}) == len(request)
            assert not keys_under_way & {row.key for row in request}
            taken += request
            in_flight.append(request)
        if in_flight and chance.random() < 0.7:
            group = chance.choice(in_flight)
            settled = chance.sample(group, chance.randint(1, len(group)))
            grouping.settle(settled)
            for row in settled:
                group.remove(row)
            in_flight = [group for group in in_flight if group]

    assert sorted(row.number for row in taken) == [row.number for row in rows]
    for key in {row.key for row in rows}:
        assert [row.number for row in taken if row.key == key] == [row.number for row in rows if row.key == key]
    assert (grouping.held_rows, grouping.held_bytes, grouping.ready_rows) == (0, 0, 0)


def test_full_requests_of_different_keys() -> None:
    grouping: Grouping[Row] = Grouping(Limits())
    for number in range(450):
        grouping.add(Row(str(number).encode(), number))

    assert [len(grouping.take()) for _ in range(4)] == [200, 200, 50, 0]


@pytest.mark.parametrize("count", [102, 252, 452])
def test_a_repeated_key_is_not_lost_at_a_full_request(count: int) -> None:
    # The vendor's Go helper loses the second change of a key here (docs/architecture.md 4.2).
    grouping: Grouping[Row] = Grouping(Limits())
    for number in range(count):
        grouping.add(Row(b"same" if number in (0, 100) else str(number).encode(), number))
    written = []
    while request := grouping.take():
        written += [row.number for row in request]
        grouping.settle(request)

    assert sorted(written) == list(range(count))
    assert written.index(0) < written.index(100)


def test_a_change_larger_than_a_request_goes_alone() -> None:
    grouping: Grouping[Row] = Grouping(Limits(10, 100))
    for number, size in enumerate((50, 400, 50)):
        grouping.add(Row(bytes([number]), number, size))

    assert [[row.number for row in grouping.take()] for _ in range(3)] == [[0], [1], [2]]


@pytest.mark.parametrize("keys", ["abc", "aba", "xbc", "bxb"])
def test_changes_that_are_added_at_once_are_those_added_one_after_the_other(keys: str) -> None:
    """With a change of the key x under way."""
    single, together = Grouping[Row](Limits(3, 1000)), Grouping[Row](Limits(3, 1000))
    rows = [Row(key.encode(), number) for number, key in enumerate(keys)]
    for grouping in (single, together):
        grouping.add(Row(b"x", 9))
        grouping.take()
    for row in rows:
        single.add(row)
    together.extend(rows)

    assert repr(together) == repr(single)
    assert together.held_bytes == single.held_bytes
    while request := single.take():
        assert together.take() == request
        single.settle(request)
        together.settle(request)
    for grouping in (single, together):
        grouping.settle([Row(b"x", 9)])
    assert together.take() == single.take()


def test_settling_what_was_never_taken_is_an_error() -> None:
    with pytest.raises(KeyError):
        Grouping[Row](Limits()).settle([Row(b"x", 1)])
