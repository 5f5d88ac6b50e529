"""The record of a snapshot's progress: its bitmap, and damaged records."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ots_tunnel.errors import CodecError
from ots_tunnel.snapshot.record import PROGRESS_LABEL, done_bitmap, done_splits, read_progress


@given(st.integers(1, 200).flatmap(lambda total: st.tuples(st.just(total), st.sets(st.integers(0, total - 1)))))
def test_bitmaps_are_read_back(case: tuple[int, set[int]]) -> None:
    total, done = case

    assert done_splits(done_bitmap(done, total), total) == done
    assert len(done_bitmap(done, total)) == (total + 7) // 8


def test_bits_beyond_the_end_and_missing_bytes_are_ignored() -> None:
    assert done_splits(b"\xff\xff", 10) == frozenset(range(10))
    assert done_splits(b"\x01", 100) == {0}


@pytest.mark.parametrize(
    ("data", "binary", "message"),
    [
        ({"total": "x"}, {}, "data.total"),
        ({"total": "0"}, {}, "data.total"),
        ({"total": "2", "updated": "yesterday"}, {}, "data.updated"),
        ({"total": "2", "updated": "2026-01-01T00:00:00+00:00"}, {"done.bitmap": "%%"}, "done.bitmap"),
        ({"total": "2", "updated": "2026-01-01T00:00:00+00:00", "omittedCells": "-1"}, {}, "data.omittedCells"),
        ({"total": "2", "updated": "2026-01-01T00:00:00+00:00", "writeDeadlineSeconds": "nan"}, {}, "writeDeadline"),
    ],
)
def test_damaged_records_are_refused(data: dict[str, str], binary: dict[str, str], message: str) -> None:
    stored = {
        "metadata": {"labels": {PROGRESS_LABEL: "t"}},
        "data": {"label": "t", **data},
        "binaryData": binary,
    }
    stored["data"]["splits"] = "orders-snapshot-splits-1"
    with pytest.raises(CodecError, match=message):
        read_progress(stored)


@pytest.mark.parametrize("item", [{"splits": "orders-snapshot-splits-1"}, {}], ids=["beside it", "in itself"])
def test_a_record_of_this_release_and_of_an_earlier_one_are_read(item: dict[str, str]) -> None:
    stored = {
        "metadata": {"labels": {PROGRESS_LABEL: "t"}},
        "data": {"label": "t", "total": "9", "updated": "2026-01-01T00:00:00+00:00", "error": "no", **item},
        "binaryData": {"done.bitmap": "BQ==", **({} if item else {"splits.json.gz": "eA=="})},
    }

    progress = read_progress(stored)

    assert (progress.done, progress.total, progress.error) == (2, 9, "no")
