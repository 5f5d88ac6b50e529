"""The frozen split list: what it holds, how it is merged, and what is refused."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ots_tunnel.client.table_calls import KeyRange
from ots_tunnel.errors import CodecError
from ots_tunnel.model import KeyValue, Marker, PrimaryKey
from ots_tunnel.protocol.plainbuffer.codec import encode_primary_key
from ots_tunnel.snapshot.splits import (
    MAX_BYTES,
    MAX_SPLITS,
    SplitList,
    deserialise,
    freeze,
    merge,
    most_splits,
    serialise,
    split_list,
)

NAMES = ("carrier", "flight")


def key(carrier: KeyValue, flight: KeyValue = Marker.INF_MIN) -> PrimaryKey:
    return (("carrier", carrier), ("flight", flight))


LOW, HIGH = key(Marker.INF_MIN), key(Marker.INF_MAX, Marker.INF_MAX)


def ranges(*points: PrimaryKey) -> tuple[KeyRange, ...]:
    bounds = [LOW, *points, HIGH]
    return tuple(KeyRange(start, end) for start, end in itertools.pairwise(bounds))


def numbered(count: int) -> SplitList:
    return SplitList(NAMES, tuple(encode_primary_key(key(f"c{i:06}")) for i in range(1, count)))


def test_a_table_without_points_is_one_split() -> None:
    splits = split_list(ranges())

    assert len(splits) == 1
    assert (splits.split(0).start, splits.split(0).end) == (LOW, HIGH)


def test_splits_are_the_ranges_of_the_service() -> None:
    given = ranges(key("AA"), key("B6", 7), key("zz\x00"))

    assert [(split.start, split.end) for split in split_list(given).splits()] == [(r.start, r.end) for r in given]


@pytest.mark.parametrize(
    "broken",
    [
        (KeyRange(LOW, key("AA")), KeyRange(key("B6"), HIGH)),
        (KeyRange(LOW, key("AA")),),
        (KeyRange(key("AA"), HIGH),),
    ],
    ids=["gap", "no end", "no start"],
)
def test_ranges_that_would_lose_rows_are_refused(broken: tuple[KeyRange, ...]) -> None:
    with pytest.raises(CodecError, match="without gaps"):
        split_list(broken)


@given(count=st.integers(1, 300), parts=st.integers(1, 300))
def test_merging_keeps_the_range_and_the_order(count: int, parts: int) -> None:
    splits = numbered(count)
    merged = merge(splits, parts)

    assert len(merged) == min(count, parts)
    assert list(merged.boundaries) == sorted(set(merged.boundaries) & set(splits.boundaries))


@given(count=st.integers(2, 300), parts=st.integers(1, 300))
def test_merged_splits_are_of_about_equal_size(count: int, parts: int) -> None:
    splits = numbered(count)
    merged = merge(splits, parts)
    places = [0, *(splits.boundaries.index(boundary) + 1 for boundary in merged.boundaries), count]
    sizes = [end - start for start, end in itertools.pairwise(places)]

    assert max(sizes) - min(sizes) <= 1


def test_more_splits_than_allowed_are_merged() -> None:
    frozen, payload = freeze(numbered(9_001))

    assert len(frozen) == MAX_SPLITS
    assert deserialise(payload) == frozen


def test_long_keys_are_merged_until_the_list_fits() -> None:
    entropy = random.Random(3)
    points = sorted(entropy.randbytes(900) for _ in range(3_000))
    splits = SplitList(("k",), tuple(encode_primary_key((("k", point),)) for point in points))

    frozen, payload = freeze(splits)

    assert len(payload) <= MAX_BYTES
    assert 500 < len(frozen) < len(splits)
    assert frozen.split(0).start == (("k", Marker.INF_MIN),)
    assert frozen.split(len(frozen) - 1).end == (("k", Marker.INF_MAX),)


def test_one_split_always_fits() -> None:
    frozen, _ = freeze(numbered(10), max_bytes=1)

    assert len(frozen) == 1


@given(st.lists(st.binary(min_size=1, max_size=40), unique=True, max_size=50))
def test_serialised_lists_are_read_back(points: list[bytes]) -> None:
    splits = SplitList(("k",), tuple(encode_primary_key((("k", point),)) for point in sorted(points)))

    assert deserialise(serialise(splits)) == splits
    assert serialise(splits) == serialise(splits)


@pytest.mark.parametrize("payload", [b"", b"no gzip", serialise(numbered(3))[:-9]])
def test_damaged_lists_are_refused(payload: bytes) -> None:
    with pytest.raises(CodecError, match="damaged"):
        deserialise(payload)


def test_indexes_outside_the_list_are_refused() -> None:
    with pytest.raises(IndexError, match="split 3 of 3"):
        numbered(3).split(3)


@pytest.mark.parametrize(
    ("units", "most"),
    # tables of 16 MiB, 1 TB, 2 TB and 10 TB in units of 16 MiB
    [(1, 4_000), (59_604, 4_000), (119_209, 7_450), (596_046, 20_000)],
)
def test_tables_whose_splits_would_be_large_have_more_of_them(units: int, most: int) -> None:
    assert most_splits(units, 16_777_216) == most
